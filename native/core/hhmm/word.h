// What a grammar can do with the word that comes next: worked out when asked for, once per word.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hashed_places.h"
#include "hhmm/grammar.h"

namespace treelm {

class WordView {
 public:
  explicit WordView(const HhmmGrammar& grammar);

  // Turns to a word with these tags; the view keeps a copy.
  void show(std::span<const Emission> emissions);

  std::size_t bytes() const;

  double tag_value(std::uint32_t tag) const { return tag_value_[tag - grammar_.phrasal()]; }
  // The tags of the word below a row of progeny, with the probability to come to them and to emit the word.
  std::span<const Emission> row_emissions(std::int32_t row) const {
    if (row < 0) return {};
    const auto place = static_cast<std::size_t>(row);
    return {row_emissions_.data() + row_start_[place], row_start_[place + 1] - row_start_[place]};
  }
  // The largest of these, 0 for none.
  double largest_emission(std::int32_t row) const { return row < 0 ? 0.0 : largest_[static_cast<std::size_t>(row)]; }
  // Whether a symbol awaited at a level can begin with the word.
  bool emits(std::uint32_t level, std::uint32_t awaited) const {
    if (grammar_.is_tag(awaited)) return tag_value(awaited) > 0;
    return largest_emission(grammar_.row(level + 1, awaited)) > 0;
  }

  // A rule, with the probability that it is taken and the word comes: below all tags together (`sum`), and below
  // the likeliest one.
  struct Rule {
    std::uint32_t pair, parent;
    std::int32_t right;  // a row, or a tag as -2 - symbol
    double value, sum, largest;
  };
  // The rules with this left child at this level whose right child can begin with the word.
  std::span<const Rule> left_rules(std::uint32_t level, std::uint32_t left);

 private:
  // A piece of the rules.
  struct Piece {
    std::uint32_t level, left, first, size;
  };

  const HhmmGrammar& grammar_;
  std::vector<Emission> emissions_;
  std::vector<double> tag_value_;  // by tag, from the first
  std::vector<std::uint32_t> row_start_;
  std::vector<double> largest_, sum_;
  std::vector<Emission> row_emissions_;
  HashedPlaces piece_places_;
  std::vector<Piece> pieces_;
  std::vector<Rule> left_rules_;
};

}  // namespace treelm
