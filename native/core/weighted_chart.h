// Best trees of many sentences under a grammar with arbitrary real weights, without items that fit
// no tree of the sentence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "progress.h"
#include "weighted_cky.h"

namespace treelm {

// Words of all sentences one after the other; those of sentence s begin at starts[s].
struct WeightedSentences {
  WeightedTags words;
  std::span<const std::int64_t> starts;
};

// What was found, sentence after sentence; without a tree the score is minus infinity.
struct WeightedTrees {
  std::vector<double> scores;
  std::vector<std::int64_t> branching;
  std::vector<std::int64_t> starts{0};        // first node of each tree
  std::vector<std::uint32_t> symbols, rules;  // of all nodes, in preorder
};

// A grammar prepared for many sentences. The result is that of `best_weighted_tree`, to the last bit:
// an item is left out only if its symbol can never stand between the words on its two sides.
class WeightedChart {
 public:
  explicit WeightedChart(const WeightedGrammar& grammar);
  WeightedTrees parse(const WeightedSentences& sentences, std::size_t threads, const ProgressCallback& progress) const;

 private:
  struct Workspace;
  struct Found;
  // Rules with the same children.
  struct Pair {
    std::uint32_t right, first, last;
  };
  struct Rule {
    std::uint32_t parent, id;
    double weight;
  };
  using Bits = std::vector<std::uint64_t>;

  void list_rules(const WeightedGrammar& grammar);
  Bits corners(const WeightedGrammar& grammar, int child) const;
  Bits neighbours(const WeightedGrammar& grammar, int near, int far) const;
  void parse_one(const WeightedTags& words, Workspace& work, Found& found) const;
  void mark_allowed(const WeightedTags& words, Workspace& work) const;
  void fill_cell(std::size_t start, std::size_t last, const WeightedTags& words, Workspace& work) const;
  void read_tree(std::size_t words, std::uint32_t top, const Workspace& work, Found& found) const;

  std::size_t symbols_, blocks_;
  std::vector<double> root_weights_;
  std::vector<std::int32_t> rule_symbols_;  // rows (A, B, C)
  std::vector<std::uint32_t> first_pair_;   // by left child
  std::vector<Pair> pairs_;
  std::vector<Rule> rules_;
  // By tag, then by the border of the sentence: the symbols that may stand before it, and after it.
  Bits before_, after_;
};

}  // namespace treelm
