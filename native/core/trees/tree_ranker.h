// Weights of features that put the trees of a sentence in order, and what they are learned from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hashed_places.h"
#include "trees/packed_trees.h"
#include "trees/profile.h"

namespace treelm {

// Weights by the hashes of features.
class TreeRanker {
 public:
  // Throws Error(argument) unless the features ascend and each has a weight.
  TreeRanker(std::vector<std::uint64_t> features, std::vector<float> weights);

  // The weighted sum of the features of every tree.
  std::vector<double> score(const PackedTrees& trees, const Profile& profile, std::size_t threads) const;
  // The weight of a feature; 0 for one that has none.
  float weight(std::uint64_t feature) const;

 private:
  std::vector<std::uint64_t> features_;
  std::vector<float> weights_;
  std::vector<std::uint32_t> begin_;  // by the first bits of a hash, where features that begin so are
  int shift_ = 63;
};

// Lists of trees, each over one sentence, of which some are the best. Kept are only the features that tell the trees
// of a list apart.
class RankingLists {
 public:
  // Adds lists: list i is trees[starts[i]..starts[i+1]). Each tree has the score that a parser gives it, and is one of
  // the best of its list or not; each list has one that is.
  void add(const PackedTrees& trees, const Profile& profile, std::span<const std::uint64_t> starts,
           std::span<const double> scores, std::span<const std::uint8_t> best, std::size_t threads);

  std::size_t size() const { return list_start_.size() - 1; }
  std::size_t tree_count() const { return score_.size(); }
  // The hashes, ascending, of the features that tell trees apart in at least `least` lists.
  std::vector<std::uint64_t> frequent(std::uint32_t least) const;
  // Drops all other features and numbers these, which must ascend; nothing can be added any more.
  void keep(std::span<const std::uint64_t> features);

  // The negative log likelihood of the best trees, where a tree has the parser's score and the weighted sum of its
  // features; its gradient is added up in parts whose number does not depend on the threads. After keep().
  double loss(std::span<const double> weights, std::vector<double>& gradient, std::size_t threads) const;
  // The weights with the least loss and half of `regularization` times their squared norm, by at most `iterations`
  // steps of L-BFGS from `weights`. After keep().
  std::vector<double> fit(std::vector<double> weights, double regularization, std::size_t iterations,
                          std::size_t threads) const;
  // The place in its list of the tree with the highest score, for each list; the first of several. After keep().
  std::vector<std::uint32_t> choose(std::span<const double> weights) const;

 private:
  struct Entry {
    std::uint32_t feature;
    std::uint32_t count;
  };
  void append(std::span<const std::uint64_t> hashes, std::span<const std::uint32_t> counts);
  void check_weights(std::size_t weights) const;
  double score_of(std::size_t tree, std::span<const double> weights) const;

  std::vector<std::uint64_t> list_start_{0}, entry_start_{0};  // of trees, of entries
  std::vector<Entry> entries_;
  std::vector<double> score_;
  std::vector<std::uint8_t> best_;
  std::vector<std::uint64_t> features_;  // by number
  std::vector<std::uint32_t> lists_, last_list_;
  HashedPlaces places_;
  bool is_kept_ = false;
};

}  // namespace treelm
