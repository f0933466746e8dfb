#include "hhmm/word.h"

#include <algorithm>

#include "base/random.h"

namespace treelm {

WordView::WordView(const HhmmGrammar& grammar)
    : grammar_(grammar),
      tag_value_(grammar.symbols() - grammar.phrasal(), 0.0),
      row_start_(grammar.rows() + 2, 0),
      largest_(grammar.rows(), 0.0),
      sum_(grammar.rows(), 0.0) {}

void WordView::show(std::span<const Emission> emissions) {
  piece_places_.clear();
  pieces_.clear();
  left_rules_.clear();
  for (const auto& [tag, value] : emissions_) tag_value_[tag - grammar_.phrasal()] = 0;
  emissions_.assign(emissions.begin(), emissions.end());
  for (const auto& [tag, value] : emissions_) tag_value_[tag - grammar_.phrasal()] = value;

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

std::size_t WordView::bytes() const {
  const auto bytes = [](const auto& values) { return values.capacity() * sizeof(values[0]); };
  return bytes(emissions_) + bytes(tag_value_) + bytes(row_start_) + bytes(largest_) + bytes(sum_) +
         bytes(row_emissions_) + piece_places_.bytes() + bytes(pieces_) + bytes(left_rules_);
}

std::span<const WordView::Rule> WordView::left_rules(std::uint32_t level, std::uint32_t left) {
  const auto hash = [](std::uint32_t level, std::uint32_t left) { return mix64(std::uint64_t{level} << 32 | left); };
  std::uint32_t place = piece_places_.find(hash(level, left), [&](std::uint32_t each) {
    return pieces_[each].left == left && pieces_[each].level == level;
  });
  if (place == HashedPlaces::none) {
    place = static_cast<std::uint32_t>(pieces_.size());
    pieces_.push_back({level, left, static_cast<std::uint32_t>(left_rules_.size()), 0});
    piece_places_.add(place, [&](std::uint32_t each) { return hash(pieces_[each].level, pieces_[each].left); });
    const auto [first, last] = grammar_.by_left(left);
    const double* values = grammar_.left_values(level);
    const std::int32_t* rights = grammar_.left_rights(level);
    for (std::size_t rule = first; rule < last; ++rule) {
      const std::int32_t right = rights[rule];
      if (right == -1 || values[rule] == 0) continue;
      const bool is_row = right >= 0;
      const auto index = static_cast<std::size_t>(is_row ? right : -2 - right);
      const double largest = is_row ? largest_[index] : tag_value_[index - grammar_.phrasal()];
      if (largest == 0) continue;
      const std::uint32_t pair = grammar_.left_pair(rule);
      const double value = values[rule];
      left_rules_.push_back(
          {pair, grammar_.pair_parent(pair), right, value, value * (is_row ? sum_[index] : largest), value * largest});
    }
    pieces_[place].size = static_cast<std::uint32_t>(left_rules_.size()) - pieces_[place].first;
  }
  return {left_rules_.data() + pieces_[place].first, pieces_[place].size};
}

}  // namespace treelm
