// The best tree of a chart by the expected numbers of its rules.
#pragma once

#include <cstdint>
#include <vector>

#include "base/symbols.h"
#include "chart/long_score.h"
#include "chart/refined_chart.h"

namespace treelm {

// A tree of nodes with at most two children, in preorder; `none` where there is no child.
struct DecodedTree {
  std::vector<std::uint32_t> symbol, left, right;

  void clear() { symbol.clear(), left.clear(), right.clear(); }
  // Adds a node below `parent`, or the root for `none`; returns its place.
  std::uint32_t add(std::uint32_t label, std::uint32_t parent, bool is_right) {
    const auto node = static_cast<std::uint32_t>(symbol.size());
    symbol.push_back(label);
    left.push_back(none);
    right.push_back(none);
    if (parent != none) (is_right ? right : left)[parent] = node;
    return node;
  }
};

// Product of expected numbers; their sum; product of their shares of the parent's expected number.
enum class Objective : std::uint8_t { product, sum, variational };

template <class Real>
class MaxRuleDecoder {
 public:
  // Finds the best tree in which no unary chain is longer than `max_unary` (the rule of the root not
  // counted) or repeats a symbol; false if there is none. The chart must have kept its rules.
  bool decode(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar, Objective objective,
              std::uint32_t max_unary, DecodedTree& out);
  // The same without a look at repeated symbols and without a tree: fills the bounds below.
  void bound(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar, Objective objective,
             std::uint32_t max_unary);
  // Of the best tree: natural logarithm of the product, or the sum.
  double score() const { return score_; }
  // No way to make an item has a higher score than this one, nor does one that ends in no unary rule.
  LongScore highest(std::size_t item) const {
    return top_layer_[item] == none ? LongScore{} : best_[item * layers_ + top_layer_[item]].score;
  }
  LongScore highest_without_unary(std::size_t item) const { return best_[item * layers_].score; }
  // What a rule at one place counts.
  static double rule_weight(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar, Objective objective,
                            std::uint32_t parent, double expected);

 private:
  // The best way to make an item with so many unary rules on top.
  struct Best {
    LongScore score;
    std::uint32_t left = none, right = none;  // items; for a unary rule the child
  };

  Best& best(std::size_t item, std::uint32_t layer) { return best_[item * layers_ + layer]; }
  bool in_chain(const RefinedChart<Real>& chart, std::uint32_t item, std::uint32_t layer, std::uint32_t symbol);
  void close_cell(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar, std::size_t cell, bool is_top);
  void fill(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar, Objective objective,
            std::uint32_t max_unary);
  void build(const RefinedChart<Real>& chart, std::uint32_t root, DecodedTree& out);
  double weight(const ChartGrammar<Real>& grammar, const RefinedChart<Real>& chart, std::uint32_t parent,
                double expected) const {
    return rule_weight(chart, grammar, objective_, parent, expected);
  }
  LongScore joined(double weight, const LongScore& a, const LongScore& b) const;
  LongScore extended(double weight, const LongScore& a) const;

  Objective objective_ = Objective::product;
  bool repeats_ = false;  // whether symbols may come again in a chain
  std::uint32_t layers_ = 0;
  std::vector<Best> best_;
  std::vector<std::uint32_t> top_layer_;  // per item: the layer of its best way, or none
  double score_ = 0;
};

extern template class MaxRuleDecoder<float>;
extern template class MaxRuleDecoder<double>;

}  // namespace treelm
