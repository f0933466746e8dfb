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
  double largest_emission(std::int32_t row) const { return rows_[static_cast<std::size_t>(row + 1)].largest; }
  // The sum of the emissions of a row.
  double summed_emission(std::int32_t row) const { return rows_[static_cast<std::size_t>(row + 1)].sum; }

  // A symbol that a left child can make at a level before the word.
  struct Parent {
    std::uint32_t symbol;
    std::uint32_t first, tags, last;  // rules of the grammar; those from `tags` on have a tag on the right
    double sum;                       // that any of them is taken and the word comes
    double largest;                   // the same for the likeliest right child and tag, where the right child is none
    double tag_sum;                   // the same for all right children that are tags
    std::uint32_t first_listed, listed;
  };
  // A rule by its right child, which is no tag and can begin with the word.
  struct Rule {
    std::uint32_t right;
    std::int32_t row;
    double value;
  };
  // The place of the parents of a left child at a level.
  std::uint32_t find_parents(std::uint32_t level, std::uint32_t left);
  // Those of a place, in ascending order; finding others may move them.
  std::span<const Parent> parents(std::uint32_t place) const {
    return {parents_.data() + pieces_[place].first, pieces_[place].size};
  }
  // Lists the rules of a parent at a level, once.
  void list(const Parent& parent, std::uint32_t level);
  // Those listed, in the order of the right child; listing others may move them.
  std::span<const Rule> listed(const Parent& parent) const {
    return {rules_.data() + parent.first_listed, parent.listed};
  }

 private:
  // A piece of the parents.
  struct Piece {
    std::uint32_t level, left, first, size;
  };
  void add_parents(std::uint32_t level, std::uint32_t left);

  const HhmmGrammar& grammar_;
  std::vector<Emission> emissions_;
  std::vector<double> tag_value_;  // by tag, from the first
  std::vector<std::uint32_t> row_start_;
  struct RowEmissions {
    double sum = 0, largest = 0;
  };
  std::vector<RowEmissions> rows_;  // the first stands for no row
  std::vector<Emission> row_emissions_;
  HashedPlaces piece_places_;
  std::vector<Piece> pieces_;
  std::vector<Parent> parents_;
  std::vector<Rule> rules_;
  static constexpr std::uint32_t not_listed = 0xFFFFFFFFu;
};

}  // namespace treelm
