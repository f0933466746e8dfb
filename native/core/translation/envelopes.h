// Upper envelopes of lines, for minimum error rate training (Och 2003).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace treelm {

// Where the highest of some lines changes, group by group, and within a group in no order.
struct EnvelopeBends {
  std::vector<std::int64_t> first;          // per group, the highest line at minus infinity
  std::vector<double> place;                // of every bend
  std::vector<std::int64_t> before, after;  // the highest lines there
};

// Line i has the height offset[i] + x * slope[i]; group g has the lines from starts[g] to starts[g + 1], at least one.
// Of equal lines the first counts. Throws Error(argument) unless everything fits together.
EnvelopeBends upper_envelopes(std::span<const double> offset, std::span<const double> slope,
                              std::span<const std::int64_t> starts);

}  // namespace treelm
