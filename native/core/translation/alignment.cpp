#include "translation/alignment.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/starts.h"

namespace treelm {

namespace {

// The links of one sentence pair as a matrix of marks, with the words that have one.
class LinkMatrix {
 public:
  void reset(std::size_t rows, std::size_t columns) {
    columns_ = columns;
    rows_ = rows;
    cells_.assign(rows * columns, 0);
    source_.assign(rows, false);
    target_.assign(columns, false);
  }
  char& at(std::size_t row, std::size_t column) { return cells_[row * columns_ + column]; }
  bool has(std::ptrdiff_t row, std::ptrdiff_t column) const {
    return row >= 0 && column >= 0 && static_cast<std::size_t>(row) < rows_ &&
           static_cast<std::size_t>(column) < columns_ &&
           cells_[static_cast<std::size_t>(row) * columns_ + static_cast<std::size_t>(column)] == linked;
  }
  void link(std::size_t row, std::size_t column) {
    at(row, column) = linked;
    source_[row] = target_[column] = true;
  }
  bool source_linked(std::size_t row) const { return source_[row]; }
  bool target_linked(std::size_t column) const { return target_[column]; }

  static constexpr char one_side = 1, linked = 4;

 private:
  std::size_t rows_ = 0, columns_ = 0;
  std::vector<char> cells_;
  std::vector<bool> source_, target_;
};

constexpr std::array<std::array<int, 2>, 8> neighbours{
    {{-1, 0}, {0, -1}, {1, 0}, {0, 1}, {-1, -1}, {-1, 1}, {1, -1}, {1, 1}}};

void grow(LinkMatrix& matrix, std::size_t rows, std::size_t columns) {
  for (bool added = true; added;) {
    added = false;
    for (std::size_t row = 0; row < rows; ++row) {
      poll_interrupt();
      for (std::size_t column = 0; column < columns; ++column) {
        if (matrix.at(row, column) != LinkMatrix::linked) continue;
        for (const auto& [down, right] : neighbours) {
          const std::size_t r = row + static_cast<std::size_t>(down), c = column + static_cast<std::size_t>(right);
          if (r >= rows || c >= columns || matrix.at(r, c) != LinkMatrix::one_side) continue;
          if (matrix.source_linked(r) && matrix.target_linked(c)) continue;
          matrix.link(r, c);
          added = true;
        }
      }
    }
  }
}

}  // namespace

void check_aligned_text(const AlignedText& text) {
  check_starts(text.source_starts, text.source.size(), "the starts of source sentences do not fit their words");
  check_starts(text.target_starts, text.target.size(), "the starts of target sentences do not fit their words");
  check_starts(text.link_starts, text.links.size() / 2, "the starts of alignments do not fit their links");
  if (text.source_starts.size() != text.target_starts.size() || text.source_starts.size() != text.link_starts.size() ||
      text.links.size() % 2 != 0)
    throw Error(ErrorCode::argument, "every sentence pair needs one alignment");
  for (std::size_t s = 0; s < text.sentences(); ++s) {
    const std::uint64_t rows = text.source_starts[s + 1] - text.source_starts[s],
                        columns = text.target_starts[s + 1] - text.target_starts[s];
    for (std::uint64_t at = text.link_starts[s]; at < text.link_starts[s + 1]; ++at)
      if (text.links[2 * at] >= rows || text.links[2 * at + 1] >= columns)
        throw Error(ErrorCode::argument, "a link of sentence pair " + std::to_string(s + 1) + " leads outside it");
  }
}

Links grow_diag_final_and(std::span<const std::uint64_t> source_starts, std::span<const std::uint64_t> target_starts,
                          const Links& forward, const Links& backward) {
  Links found;
  found.starts.push_back(0);
  LinkMatrix matrix;
  for (std::size_t s = 0; s + 1 < source_starts.size(); ++s) {
    const std::size_t rows = source_starts[s + 1] - source_starts[s], columns = target_starts[s + 1] - target_starts[s];
    matrix.reset(rows, columns);
    for (std::uint64_t at = forward.starts[s]; at < forward.starts[s + 1]; ++at)
      matrix.at(forward.places[2 * at], forward.places[2 * at + 1]) = LinkMatrix::one_side;
    for (std::uint64_t at = backward.starts[s]; at < backward.starts[s + 1]; ++at) {
      const std::size_t row = backward.places[2 * at], column = backward.places[2 * at + 1];
      if (matrix.at(row, column) == 0)
        matrix.at(row, column) = LinkMatrix::one_side;
      else
        matrix.link(row, column);
    }
    grow(matrix, rows, columns);
    // What is left of either direction, forward first, links words that have no link at all.
    for (const Links* each : {&forward, &backward})
      for (std::uint64_t at = each->starts[s]; at < each->starts[s + 1]; ++at) {
        const std::size_t row = each->places[2 * at], column = each->places[2 * at + 1];
        if (!matrix.source_linked(row) && !matrix.target_linked(column)) matrix.link(row, column);
      }
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column)
        if (matrix.at(row, column) == LinkMatrix::linked) {
          found.places.push_back(static_cast<std::uint32_t>(row));
          found.places.push_back(static_cast<std::uint32_t>(column));
        }
    found.starts.push_back(found.places.size() / 2);
  }
  return found;
}

}  // namespace treelm
