// A sequence table from given probabilities and weights.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backoff/table.h"

namespace treelm {

// What is wrong with a row of an ARPA file.
enum class RowProblem : std::uint8_t { duplicate, no_context };

// A sequence table from rows with probabilities and weights, as in an ARPA file. `problem(order,
// index, what)` is called for a row that cannot be used; it throws.
struct SequenceRows {
  std::vector<std::uint32_t> rows;                  // (word, word before, ...), one behind the other
  std::vector<float> log_probability, log_backoff;  // log10
};
using RowProblemCallback = std::function<void(std::size_t, std::size_t, RowProblem)>;
std::shared_ptr<const BackoffTable> build_sequences(TableShape shape, std::vector<SequenceRows> levels,
                                                    std::size_t threads, const RowProblemCallback& problem);

}  // namespace treelm
