// A grammar with subcategories laid out for charts: rules grouped by their children, blocks of weights
// with the parent's subcategories side by side, and the closure of the unary rules.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "chart/pair_blocks.h"

namespace treelm {

// The arrays of a grammar as they are stored; blocks of weights are k_A x k_B (x k_C), row by row.
struct GrammarArrays {
  std::uint32_t phrasal = 0;
  std::span<const std::int32_t> substates;     // one per symbol
  std::span<const std::int32_t> unary_rules;   // rows of 2
  std::span<const std::int32_t> binary_rules;  // rows of 3
  std::span<const double> unary_weights, binary_weights;
};

// Throws Error(argument) unless the arrays fit together and hold finite weights, none negative.
void check_grammar(const GrammarArrays& arrays);

// Subcategories of one symbol are stored side by side in so many numbers; the rest is zero. Small
// counts stay as they are, larger ones fill whole vectors.
constexpr std::uint32_t padded(std::uint32_t count) { return count <= 4 ? count : (count + 7) / 8 * 8; }

// 2 to a power; 0 where it is too small, and the largest power where it is too large.
template <class Real>
Real power_of_two(int exponent) {
  constexpr int largest = std::numeric_limits<Real>::max_exponent - 1;
  constexpr int bits = std::numeric_limits<Real>::digits - 1;
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  if (exponent < 1 - largest) return 0;
  if (exponent > largest) exponent = largest;
  return std::bit_cast<Real>(static_cast<Bits>(static_cast<Bits>(exponent + largest) << bits));
}

// A rule as its child or children see it.
struct ParentRule {
  std::uint32_t parent;
  std::uint32_t rule;  // its number among the rules of its kind
  std::size_t block;   // where its weights begin
  std::size_t rows;    // of a binary rule: where its list of rows begins
};

template <class Real>
class ChartGrammar {
 public:
  // Throws Error(argument) if the unary rules have no closure: chains that do not grow less probable.
  explicit ChartGrammar(const GrammarArrays& arrays);

  std::uint32_t symbols() const { return static_cast<std::uint32_t>(count_.size()); }
  std::uint32_t phrasal() const { return phrasal_; }
  std::uint32_t count(std::uint32_t symbol) const { return count_[symbol]; }
  std::uint32_t width(std::uint32_t symbol) const { return padded(count_[symbol]); }
  // Places of a symbol's subcategories: padded, and numbered through without gaps.
  std::uint32_t place(std::uint32_t symbol) const { return place_[symbol]; }
  std::uint32_t places() const { return place_.back(); }
  std::uint32_t number(std::uint32_t symbol) const { return number_[symbol]; }
  std::uint32_t numbers() const { return number_.back(); }
  bool is_plain() const { return numbers() == symbols(); }

  // Pairs of children, ordered by left then right child; those of a left child lie together.
  std::uint32_t pairs() const { return static_cast<std::uint32_t>(pair_right_.size()); }
  std::uint32_t first_pair(std::uint32_t left) const { return left_first_[left]; }
  std::uint32_t pair_left(std::uint32_t pair) const { return pair_left_[pair]; }
  std::uint32_t pair_right(std::uint32_t pair) const { return pair_right_[pair]; }
  const std::uint32_t* pair_rights() const { return pair_right_.data(); }
  // Whether the other grammar numbers the same pairs in the same way.
  bool has_pairs_of(const ChartGrammar& other) const {
    return pair_left_ == other.pair_left_ && pair_right_ == other.pair_right_;
  }
  // The pair of two children, or none.
  std::uint32_t find_pair(std::uint32_t left, std::uint32_t right) const {
    return pair_table_.empty() ? search_pair(left, right) : pair_table_[std::size_t{left} * count_.size() + right];
  }
  // Binary rules of a pair; a block is rows of width(A), one for every two subcategories of the children
  // that have a weight at all: in split grammars few have.
  std::span<const ParentRule> rules_of_pair(std::uint32_t pair) const {
    return std::span(pair_rules_).subspan(pair_first_[pair], pair_first_[pair + 1] - pair_first_[pair]);
  }
  const Real* binary_block(const ParentRule& rule) const { return binary_.data() + rule.block; }
  // The first row of every subcategory of the left child, and the number of rows.
  const std::uint32_t* row_starts(const ParentRule& rule) const { return row_starts_.data() + rule.rows; }
  // The subcategory of the right child, by row.
  const std::uint32_t* row_rights(const ParentRule& rule, std::uint32_t left) const {
    return row_starts(rule) + count_[left] + 1;
  }
  // Of a plain grammar: how often a symbol is expected in a tree.
  Real frequency(std::uint32_t symbol) const { return frequency_[symbol]; }
  // Of a plain grammar: the pairs a parent is made of, and their weights.
  struct WeightedPair {
    std::uint32_t pair;
    Real weight;
  };
  std::span<const WeightedPair> pairs_of_parent(std::uint32_t parent) const {
    return std::span(parent_pairs_).subspan(parent_first_[parent], parent_first_[parent + 1] - parent_first_[parent]);
  }

  // Of a plain grammar: the pairs in blocks.
  const PairBlocks<Real>& pair_blocks() const { return pair_blocks_; }

  // Unary rules by child; a block is k_B rows of width(A).
  std::span<const ParentRule> unary_rules(std::uint32_t child) const {
    return std::span(unary_rules_).subspan(unary_first_[child], unary_first_[child + 1] - unary_first_[child]);
  }
  const Real* unary_block(const ParentRule& rule) const { return unary_.data() + rule.block; }
  // Chains of one or more unary rules, summed, by their lowest child.
  std::span<const ParentRule> chains(std::uint32_t child) const {
    return std::span(chains_).subspan(chain_first_[child], chain_first_[child + 1] - chain_first_[child]);
  }
  const Real* chain_block(const ParentRule& chain) const { return chain_weights_.data() + chain.block; }

 private:
  std::uint32_t search_pair(std::uint32_t left, std::uint32_t right) const;
  void group_binary(const GrammarArrays& arrays);
  void group_unary(const GrammarArrays& arrays);
  void count_symbols(const GrammarArrays& arrays);
  void add_rows(std::size_t parents, std::size_t lefts, std::size_t rights, std::span<const double> weights);

  std::uint32_t phrasal_;
  std::vector<std::uint32_t> count_, place_, number_;
  std::vector<std::uint32_t> pair_left_, pair_right_, left_first_, pair_first_, parent_first_;
  std::vector<std::uint32_t> pair_table_;  // symbols x symbols where there are few
  std::vector<ParentRule> pair_rules_, unary_rules_, chains_;
  std::vector<std::uint32_t> row_starts_;  // per binary rule: k_B + 1 starts, then the right subcategories
  std::vector<WeightedPair> parent_pairs_;
  PairBlocks<Real> pair_blocks_;
  std::vector<Real> frequency_;
  std::vector<std::uint32_t> unary_first_, chain_first_;
  std::vector<Real> binary_, unary_, chain_weights_;
};

extern template class ChartGrammar<float>;
extern template class ChartGrammar<double>;

// One block of the closure: all chains of one or more rules from a parent down to a child, summed.
struct Chain {
  std::uint32_t parent, child;
  std::vector<double> weights;  // k_A x k_C
};

// The closure of the unary rules, ordered by child then parent; chains of zero weight are left out.
// Throws Error(argument) if it does not exist, that is if chains do not grow less probable.
std::vector<Chain> unary_closure(const GrammarArrays& arrays);

}  // namespace treelm
