// The best tree of a chart by the expected numbers of its rules.
#pragma once

#include <cstdint>
#include <vector>

#include "refined_chart.h"

namespace treelm {

// A tree of nodes with at most two children, in preorder; `none` where there is no child.
struct DecodedTree {
  std::vector<std::uint32_t> symbol, left, right;

  void clear() { symbol.clear(), left.clear(), right.clear(); }
};

// Product of expected numbers; their sum; product of their shares of the parent's expected number.
enum class Objective : std::uint8_t { product, sum, variational };

// Without logarithms: a number between 2^-400 and 1 times a power of 2^400.
struct LongScore {
  double value = 0;
  std::int32_t exponent = 0;

  friend bool operator<(const LongScore& a, const LongScore& b) {
    if (a.value == 0 || b.value == 0) return a.value < b.value;
    return a.exponent != b.exponent ? a.exponent < b.exponent : a.value < b.value;
  }
  double log() const;
};

template <class Real>
class MaxRuleDecoder {
 public:
  // Finds the best tree in which no unary chain is longer than `max_unary` (the rule of the root not
  // counted) or repeats a symbol; false if there is none. The chart must have kept its rules.
  bool decode(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar, Objective objective,
              std::uint32_t max_unary, DecodedTree& out);
  // Of the best tree: natural logarithm of the product, or the sum.
  double score() const { return score_; }

 private:
  // The best way to make an item with so many unary rules on top.
  struct Best {
    LongScore score;
    std::uint32_t left = none_, right = none_;  // items; for a unary rule the child
  };
  static constexpr std::uint32_t none_ = 0xFFFFFFFFu;

  Best& best(std::size_t item, std::uint32_t layer) { return best_[item * layers_ + layer]; }
  bool in_chain(const RefinedChart<Real>& chart, std::uint32_t item, std::uint32_t layer, std::uint32_t symbol);
  void close_cell(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar, std::size_t cell, bool is_top);
  void build(const RefinedChart<Real>& chart, std::uint32_t root, DecodedTree& out);
  double weight(const ChartGrammar<Real>& grammar, const RefinedChart<Real>& chart, std::uint32_t parent,
                double expected) const;
  LongScore joined(double weight, const LongScore& a, const LongScore& b) const;
  LongScore extended(double weight, const LongScore& a) const;

  Objective objective_ = Objective::product;
  std::uint32_t layers_ = 0;
  std::vector<Best> best_;
  std::vector<std::uint32_t> top_layer_;  // per item: the layer of its best way, or none_
  double score_ = 0;
};

extern template class MaxRuleDecoder<float>;
extern template class MaxRuleDecoder<double>;

}  // namespace treelm
