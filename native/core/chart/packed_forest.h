// A pruned chart as arrays: symbols on spans, the rules between them, and how often each is expected.
#pragma once

#include <cstdint>
#include <vector>

#include "chart/grammar.h"
#include "chart/k_best.h"
#include "chart/lexicon.h"
#include "chart/refined_chart.h"

namespace treelm {

// Nodes are ordered by their last word, their first word, and their symbol. A node with a tag is a leaf.
// Edges are binary, or unary with `none` for the right tail; those of equal weight are tried in their order.
struct PackedForest {
  std::uint32_t words = 0;
  std::vector<std::uint32_t> symbol, first, last;  // per node; its span ends before word `last`
  std::vector<double> expected;                    // per node: its expected number, given the words
  std::vector<std::uint32_t> head, left, right;    // per edge: nodes
  std::vector<float> weight;                       // per edge: its expected number
};

// Throws Error(argument) unless every edge joins spans as rules do, nodes are in order, weights are numbers
// above zero, and the last node of symbol 0 spans all words.
void check_packed_forest(const PackedForest& forest, std::uint32_t symbols, std::uint32_t phrasal);

// What is left of a chart that has kept its rules: all trees of rules that are expected at least so often.
void pack_forest(const RefinedChart<float>& chart, const ChartGrammar<float>& grammar, double least, PackedForest& out);

// Natural logarithm of the sum of the probabilities of all trees of a checked forest together with its words,
// under a grammar of the same symbols; chains of unary rules may go round. Minus infinity if there is none.
double forest_log_prob(const PackedForest& forest, const ChartGrammar<double>& grammar, const ChartLexicon& lexicon,
                       std::span<const std::uint32_t> words);

// Trees of a checked forest by the product of expected numbers.
class StoredForest final : public ForestSource {
 public:
  StoredForest(const PackedForest& forest, std::uint32_t phrasal, std::uint32_t max_unary);

  std::uint32_t slots() const override { return static_cast<std::uint32_t>(forest_.symbol.size()); }
  std::uint32_t root() const override { return root_; }
  std::uint32_t symbol(std::uint32_t slot) const override { return forest_.symbol[slot]; }
  bool is_leaf(std::uint32_t slot) const override { return symbol(slot) >= phrasal_; }
  LongScore highest(std::uint32_t slot) const override { return highest_[slot]; }
  LongScore highest_without_unary(std::uint32_t slot) const override { return base_[slot]; }
  void list_binary(std::uint32_t slot, std::vector<ForestEdge>& out) override { list(slot, false, out); }
  void list_unary(std::uint32_t slot, std::vector<ForestEdge>& out) override { list(slot, true, out); }

 private:
  void list(std::uint32_t slot, bool unary, std::vector<ForestEdge>& out) const;

  const PackedForest& forest_;
  std::uint32_t phrasal_, root_;
  std::vector<std::uint32_t> start_, order_;  // edges by head
  std::vector<LongScore> highest_, base_;
};

}  // namespace treelm
