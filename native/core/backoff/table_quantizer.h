// From a table of floats to one of codes: rows, index and links stay as they are, and every
// probability and weight becomes the code of the bin that it falls into.
//
// Bins of a region are about equally full, half by the number of values and half by their range, and
// stand for the mean of their logarithms. What a value means is kept: 0, 1 and -1, the mark of an
// absent entry, that of a row that is not a context, and the sign of a probability. A region with no
// more different values than codes is exact, to single precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backoff/table.h"
#include "base/progress.h"

namespace treelm {

// How far the values of one kind have moved, in binary logarithms; those without one do not count.
struct ValueChange {
  std::uint64_t values = 0;
  double sum = 0, largest = 0;
};

struct QuantizedTable {
  std::shared_ptr<const BackoffTable> table;
  ValueChange probabilities, weights;
};

// Returns the table with codes of 4 to 8 or 16 bits, each in one or two bytes. The result does not depend on `threads`;
// Progress is told in rows.
QuantizedTable quantize(const BackoffTable& table, unsigned bits, std::size_t threads,
                        const ProgressCallback& progress);

}  // namespace treelm
