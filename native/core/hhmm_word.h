// What a grammar can do with the word that comes next: worked out when asked for, once a word.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hhmm_grammar.h"

namespace treelm {

class WordView {
 public:
  explicit WordView(const HhmmGrammar& grammar);

  // Turns to a word with these tags; the view keeps a copy.
  void show(std::span<const Emission> emissions);

  double tag_value(std::uint32_t tag) const { return tag_value_[tag]; }
  // The tags of the word below a row of progeny, with the probability to come to them and to emit the word.
  std::span<const Emission> row_emissions(std::int32_t row);
  // The largest of these, 0 for none.
  double largest_emission(std::int32_t row);
  // Whether a symbol awaited at a level can begin with the word.
  bool emits(std::uint32_t level, std::uint32_t awaited);

  struct Rule {
    std::uint32_t pair;
    double value;
  };
  // The rules with this left child at this level whose right child can begin with the word.
  std::span<const Rule> left_rules(std::uint32_t level, std::uint32_t left);

 private:
  // A piece of an arena that belongs to the word whose number is `stamp`.
  struct Piece {
    std::uint64_t stamp = 0;
    std::uint32_t first = 0, size = 0;
    double largest = 0;
  };

  const HhmmGrammar& grammar_;
  std::vector<Emission> emissions_;
  std::uint64_t stamp_ = 0;
  std::vector<double> tag_value_;
  std::vector<Piece> row_piece_, left_piece_;
  std::vector<Emission> row_emissions_;
  std::vector<Rule> left_rules_;
};

}  // namespace treelm
