#include "hhmm/word.h"

#include <algorithm>

#include "base/random.h"

namespace treelm {

WordView::WordView(const HhmmGrammar& grammar)
    : grammar_(grammar),
      tag_value_(grammar.symbols() - grammar.phrasal(), 0.0),
      row_start_(grammar.rows() + 2, 0),
      rows_(grammar.rows() + 1) {}

void WordView::show(std::span<const Emission> emissions) {
  piece_places_.clear();
  pieces_.clear();
  parents_.clear();
  rules_.clear();
  for (const auto& [tag, value] : emissions_) tag_value_[tag - grammar_.phrasal()] = 0;
  emissions_.assign(emissions.begin(), emissions.end());
  for (const auto& [tag, value] : emissions_) tag_value_[tag - grammar_.phrasal()] = value;

  // Rows are filled from the columns of the tags: counted, placed, written.
  std::fill(row_start_.begin(), row_start_.end(), 0u);
  std::fill(rows_.begin(), rows_.end(), RowEmissions{});
  for (const auto& [tag, value] : emissions_)
    for (const std::uint32_t row : grammar_.tag_column(tag).rows) ++row_start_[row + 2];
  for (std::size_t row = 2; row < row_start_.size(); ++row) row_start_[row] += row_start_[row - 1];
  row_emissions_.resize(row_start_.back());
  for (const auto& [tag, value] : emissions_) {
    const auto [rows, values] = grammar_.tag_column(tag);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double expected = values[i] * value;
      row_emissions_[row_start_[rows[i] + 1]++] = {tag, expected};
      RowEmissions& row = rows_[rows[i] + 1];
      row.largest = std::max(row.largest, expected);
      row.sum += expected;
    }
  }
}

std::size_t WordView::bytes() const {
  const auto bytes = [](const auto& values) { return values.capacity() * sizeof(values[0]); };
  return bytes(emissions_) + bytes(tag_value_) + bytes(row_start_) + bytes(rows_) + bytes(row_emissions_) +
         piece_places_.bytes() + bytes(pieces_) + bytes(parents_) + bytes(rules_);
}

std::uint32_t WordView::find_parents(std::uint32_t level, std::uint32_t left) {
  const auto hash = [](std::uint32_t level, std::uint32_t left) { return mix64(std::uint64_t{level} << 32 | left); };
  const std::uint32_t known = piece_places_.find(hash(level, left), [&](std::uint32_t each) {
    return pieces_[each].left == left && pieces_[each].level == level;
  });
  if (known != HashedPlaces::none) return known;
  const auto place = static_cast<std::uint32_t>(pieces_.size());
  pieces_.push_back({level, left, static_cast<std::uint32_t>(parents_.size()), 0});
  piece_places_.add(place, [&](std::uint32_t each) { return hash(pieces_[each].level, pieces_[each].left); });
  add_parents(level, left);
  pieces_[place].size = static_cast<std::uint32_t>(parents_.size()) - pieces_[place].first;
  return place;
}

void WordView::add_parents(std::uint32_t level, std::uint32_t left) {
  const double* values = grammar_.left_values(level);
  const std::int32_t* rows = grammar_.left_rows(level);
  const auto parents = grammar_.left_parents(left);
  for (std::size_t i = 0; i + 1 < parents.size(); ++i) {
    const auto [symbol, first, tags] = parents[i];
    Parent parent{symbol, first, tags, parents[i + 1].first, 0, 0, 0, not_listed, 0};
    for (std::uint32_t rule = first; rule < tags; ++rule) {
      const RowEmissions& row = rows_[static_cast<std::size_t>(rows[rule] + 1)];
      parent.sum += values[rule] * row.sum;
      parent.largest = std::max(parent.largest, values[rule] * row.largest);
    }
    for (std::uint32_t rule = tags; rule < parent.last; ++rule)
      parent.tag_sum += values[rule] * tag_value(grammar_.left_right(rule));
    parent.sum += parent.tag_sum;
    if (parent.sum > 0) parents_.push_back(parent);
  }
}

void WordView::list(const Parent& parent, std::uint32_t level) {
  if (parent.first_listed != not_listed) return;
  Parent& own = parents_[static_cast<std::size_t>(&parent - parents_.data())];
  own.first_listed = static_cast<std::uint32_t>(rules_.size());
  const double* values = grammar_.left_values(level);
  const std::int32_t* rows = grammar_.left_rows(level);
  for (std::uint32_t rule = parent.first; rule < parent.tags; ++rule)
    if (values[rule] * largest_emission(rows[rule]) > 0)
      rules_.push_back({grammar_.left_right(rule), rows[rule], values[rule]});
  own.listed = static_cast<std::uint32_t>(rules_.size()) - own.first_listed;
}

}  // namespace treelm
