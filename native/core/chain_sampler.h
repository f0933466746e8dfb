// Exact draws from a back-off chain: a level is chosen by its weight, then an outcome seen there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backoff_table.h"

namespace treelm {

class ChainSampler {
 public:
  // Looks once at every entry of the table. `base`: where the base is not uniform, its probability for
  // every entry of the last level, in the order of BackoffTable::each_entry. `never`: an outcome that
  // the uniform base does not give.
  ChainSampler(std::shared_ptr<const BackoffTable> table, std::span<const double> base, std::uint32_t never = none);

  // The outcome that draw `counter` of `stream` gives after a context of all columns; `none` where
  // the draw falls to a base that is not uniform.
  std::size_t context_columns() const { return table_->shape().widths.front(); }
  std::uint32_t draw(const std::uint32_t* context, std::uint64_t seed, std::uint64_t stream,
                     std::uint64_t counter) const;

 private:
  std::uint32_t draw_by_inversion(std::size_t j, const std::uint32_t* context, double place) const;

  std::shared_ptr<const BackoffTable> table_;
  std::uint32_t never_;
  // Outcomes by context.
  std::vector<std::uint64_t> start_;
  std::vector<std::uint32_t> outcome_;
  std::vector<double> upto_;            // masses summed within a context
  std::vector<bool> not_interpolated_;  // a stored p is below its share of the lower level
};

}  // namespace treelm
