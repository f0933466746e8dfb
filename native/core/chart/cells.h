// Where the cells of a chart lie, one for each span of words.
#pragma once

#include <cstddef>

namespace treelm {

// Cells lie by columns: all spans that end at the same word are neighbours.
constexpr std::size_t cell_of(std::size_t first, std::size_t last) { return last * (last - 1) / 2 + first; }
constexpr std::size_t cells_of(std::size_t words) { return words * (words + 1) / 2; }

}  // namespace treelm
