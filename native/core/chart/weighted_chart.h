// Best trees of many sentences under a grammar with arbitrary real weights, without items that fit
// no tree of the sentence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/progress.h"
#include "chart/sentence_grammar.h"
#include "chart/weighted_cky.h"

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

  void add(const WeightedTree& tree);
};

// A grammar prepared for many sentences. The result is that of `plain_weighted_tree`, to the last bit: each
// sentence sees the rules that its tags allow, and an item is left out only if its symbol can never stand
// between the words on its two sides.
class WeightedChart {
 public:
  explicit WeightedChart(const WeightedGrammar& grammar);
  // With `plain`, by dense charts: slower, for comparison.
  WeightedTrees parse(const WeightedSentences& sentences, std::size_t threads, const ProgressCallback& progress,
                      bool plain = false) const;

 private:
  struct Workspace;
  using Bits = std::vector<std::uint64_t>;

  Bits corners(int child) const;
  Bits neighbours(int near, int far) const;
  void parse_one(const WeightedTags& words, Workspace& work, WeightedTree& found) const;
  void mark_allowed(const WeightedTags& words, Workspace& work) const;
  void fill_cell(std::size_t start, std::size_t last, const WeightedTags& words, Workspace& work) const;
  void read_tree(std::size_t words, std::uint32_t top, const Workspace& work, WeightedTree& found) const;

  WeightedGrammar grammar_;  // of the caller, who keeps it
  std::size_t symbols_, blocks_;
  RuleLists lists_;
  // By tag, then by the border of the sentence: the symbols that may stand before it, and after it.
  Bits before_, after_;
};

}  // namespace treelm
