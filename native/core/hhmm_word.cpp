#include "hhmm_word.h"

#include <algorithm>

namespace treelm {

WordView::WordView(const HhmmGrammar& grammar)
    : grammar_(grammar),
      tag_value_(grammar.symbols(), 0.0),
      row_piece_(grammar.rows()),
      left_piece_(std::size_t{grammar.symbols()} * (grammar.depth() + 1)) {}

void WordView::show(std::span<const Emission> emissions) {
  ++stamp_;
  row_emissions_.clear();
  left_rules_.clear();
  for (const auto& [tag, value] : emissions_) tag_value_[tag] = 0;
  emissions_.assign(emissions.begin(), emissions.end());
  for (const auto& [tag, value] : emissions_) tag_value_[tag] = value;
}

std::span<const Emission> WordView::row_emissions(std::int32_t row) {
  if (row < 0) return {};
  Piece& piece = row_piece_[static_cast<std::size_t>(row)];
  if (piece.stamp != stamp_) {
    piece = {stamp_, static_cast<std::uint32_t>(row_emissions_.size()), 0, 0.0};
    for (const auto& [tag, value] : emissions_) {
      const double expected = grammar_.progeny(row, tag) * value;
      if (expected > 0) row_emissions_.push_back({tag, expected});
      piece.largest = std::max(piece.largest, expected);
    }
    piece.size = static_cast<std::uint32_t>(row_emissions_.size()) - piece.first;
  }
  return {row_emissions_.data() + piece.first, piece.size};
}

double WordView::largest_emission(std::int32_t row) {
  return row_emissions(row).empty() ? 0.0 : row_piece_[static_cast<std::size_t>(row)].largest;
}

bool WordView::emits(std::uint32_t level, std::uint32_t awaited) {
  if (grammar_.is_tag(awaited)) return tag_value_[awaited] > 0;
  return !row_emissions(grammar_.row(level + 1, awaited)).empty();
}

std::span<const WordView::Rule> WordView::left_rules(std::uint32_t level, std::uint32_t left) {
  Piece& piece = left_piece_[std::size_t{level} * grammar_.symbols() + left];
  if (piece.stamp != stamp_) {
    piece = {stamp_, static_cast<std::uint32_t>(left_rules_.size()), 0, 0.0};
    const auto [first, last] = grammar_.by_left(left);
    const double* values = grammar_.left_values(level);
    for (std::size_t place = first; place < last; ++place) {
      const std::uint32_t pair = grammar_.left_pair(place);
      if (values[place] > 0 && emits(level, grammar_.pair_right(pair))) left_rules_.push_back({pair, values[place]});
    }
    piece.size = static_cast<std::uint32_t>(left_rules_.size()) - piece.first;
  }
  return {left_rules_.data() + piece.first, piece.size};
}

}  // namespace treelm
