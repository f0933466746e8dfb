// Trees drawn from a treelet model, depth first and from left to right.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backoff/chain_sampler.h"
#include "treelet/scorer.h"
#include "treelet/yield_model.h"
#include "trees/packed_trees.h"

namespace treelm {

struct SampledTrees {
  PackedTrees trees;  // those that were complete
  enum Outcome : std::uint8_t { complete, too_long, too_deep };
  std::vector<std::uint8_t> outcome;    // of every number
  std::vector<double> log_probability;  // of every complete tree
};

class TreeletSampler {
 public:
  // `is_tag`: whether each label stands over a word. Throws Error(table) if a label that is not a tag was
  // never seen as a parent, so that nothing can be drawn below it.
  TreeletSampler(std::shared_ptr<const TreeletModel> model, std::vector<std::uint8_t> is_tag);

  // One tree for each of `count` numbers from `first` on; it depends on the seed and on its number alone.
  SampledTrees draw(std::uint64_t seed, std::uint64_t first, std::size_t count, std::size_t max_words,
                    std::size_t max_depth, std::size_t threads) const;

 private:
  struct Drawn {
    std::vector<std::uint32_t> label, size, word;  // as in PackedTrees, words as ids
    SampledTrees::Outcome outcome = SampledTrees::complete;
    double log_probability = 0;
  };
  Drawn draw_one(std::uint64_t seed, std::uint64_t number, std::size_t max_words, std::size_t max_depth) const;

  std::shared_ptr<const TreeletModel> model_;
  std::vector<std::uint8_t> is_tag_;
  std::uint32_t root_;
  ChainSampler nonterminal_, terminal_;
  YieldSampler yields_;
};

}  // namespace treelm
