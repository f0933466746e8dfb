#include "hhmm_word.h"

#include <algorithm>

namespace treelm {

WordView::WordView(const HhmmGrammar& grammar)
    : grammar_(grammar),
      tag_value_(grammar.symbols(), 0.0),
      row_start_(grammar.rows() + 2, 0),
      largest_(grammar.rows(), 0.0),
      sum_(grammar.rows(), 0.0),
      left_piece_(std::size_t{grammar.symbols()} * (grammar.depth() + 1)) {}

void WordView::show(std::span<const Emission> emissions) {
  ++stamp_;
  left_rules_.clear();
  for (const auto& [tag, value] : emissions_) tag_value_[tag] = 0;
  emissions_.assign(emissions.begin(), emissions.end());
  for (const auto& [tag, value] : emissions_) tag_value_[tag] = value;

  // Rows are filled from the columns of the tags: counted, placed, written.
  std::fill(row_start_.begin(), row_start_.end(), 0u);
  std::fill(largest_.begin(), largest_.end(), 0.0);
  std::fill(sum_.begin(), sum_.end(), 0.0);
  for (const auto& [tag, value] : emissions_)
    for (const std::uint32_t row : grammar_.tag_column(tag).rows) ++row_start_[row + 2];
  for (std::size_t row = 2; row < row_start_.size(); ++row) row_start_[row] += row_start_[row - 1];
  row_emissions_.resize(row_start_.back());
  for (const auto& [tag, value] : emissions_) {
    const auto [rows, values] = grammar_.tag_column(tag);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double expected = values[i] * value;
      row_emissions_[row_start_[rows[i] + 1]++] = {tag, expected};
      largest_[rows[i]] = std::max(largest_[rows[i]], expected);
      sum_[rows[i]] += expected;
    }
  }
}

std::span<const WordView::Rule> WordView::left_rules(std::uint32_t level, std::uint32_t left) {
  Piece& piece = left_piece_[std::size_t{level} * grammar_.symbols() + left];
  if (piece.stamp != stamp_) {
    piece = {stamp_, static_cast<std::uint32_t>(left_rules_.size()), 0};
    const auto [first, last] = grammar_.by_left(left);
    const double* values = grammar_.left_values(level);
    const std::int32_t* rights = grammar_.left_rights(level);
    for (std::size_t place = first; place < last; ++place) {
      const std::int32_t right = rights[place];
      if (right == -1 || values[place] == 0) continue;
      const bool is_row = right >= 0;
      const auto index = static_cast<std::size_t>(is_row ? right : -2 - right);
      const double largest = is_row ? largest_[index] : tag_value_[index];
      if (largest == 0) continue;
      const std::uint32_t pair = grammar_.left_pair(place);
      const double value = values[place];
      left_rules_.push_back(
          {pair, grammar_.pair_parent(pair), right, value, value * (is_row ? sum_[index] : largest), value * largest});
    }
    piece.size = static_cast<std::uint32_t>(left_rules_.size()) - piece.first;
  }
  return {left_rules_.data() + piece.first, piece.size};
}

}  // namespace treelm
