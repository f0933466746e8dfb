// Scores of trees that come in lists, all trees of a list over the same words, by any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "base/starts.h"
#include "base/thread_pool.h"
#include "trees/shared_trees.h"

namespace treelm {

struct ListScores {
  std::vector<double> log_probability;  // of every tree
  std::vector<std::uint32_t> form;      // equal numbers within a list: the same transformed tree
  std::uint64_t nodes = 0, scored = 0;  // nodes of all trees, and distinct subtrees that were scored
};

// List i is trees[starts[i]..starts[i+1]). A Scorer is made from (model, SharedTrees&), visits shared nodes,
// is told of a new sentence by begin(), and gives total(node) and size().
template <class Scorer, class Model>
ListScores score_lists(const Model& model, const TreeRecipe& recipe, const PackedTrees& trees,
                       std::span<const std::uint64_t> starts, std::size_t threads) {
  check_starts(starts, trees.tree_count(), "the starts of lists do not fit the trees");
  const PreparedTrees prepared(recipe, trees);
  ListScores scores;
  scores.log_probability.resize(trees.tree_count());
  scores.form.resize(trees.tree_count());
  std::atomic<std::uint64_t> scored = 0;
  ThreadPool pool(threads);
  const std::size_t lists = starts.size() - 1;
  // Several short lists per piece make up for the start of each.
  const std::size_t piece = std::clamp<std::size_t>(lists / (4 * pool.size()), 1, 64);
  pool.map((lists + piece - 1) / piece, [&](std::size_t i, std::size_t) {
    SharedTrees shared(prepared.recipe());
    Scorer scorer(model, shared);
    std::vector<double> known;
    for (std::size_t list = i * piece; list < std::min(lists, (i + 1) * piece); ++list) {
      if (starts[list] == starts[list + 1]) continue;
      shared.begin(prepared.trees(), starts[list]);
      scorer.begin();
      known.clear();
      for (std::uint64_t tree = starts[list]; tree < starts[list + 1]; ++tree) {
        poll_interrupt();
        const std::uint32_t form = shared.add(tree, scorer);
        if (form >= known.size()) known.resize(form + 1, std::numeric_limits<double>::quiet_NaN());
        if (std::isnan(known[form])) known[form] = scorer.total(form);
        scores.form[tree] = form;
        scores.log_probability[tree] = known[form];
      }
      scored += scorer.size();
    }
  });
  scores.nodes = trees.label.size();
  scores.scored = scored;
  return scores;
}

}  // namespace treelm
