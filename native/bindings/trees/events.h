// What the bindings of tree events and tree scores share.
#pragma once

#include <vector>

#include "base/counter.h"
#include "base/symbols.h"
#include "base/thread_pool.h"
#include "bindings/bindings.h"
#include "trees/list_scores.h"
#include "trees/packed_trees.h"

namespace treelm::bindings {

inline nb::list strings(const Symbols& symbols) {
  nb::list result;
  for (std::uint32_t i = 0; i < symbols.size(); ++i) result.append(nb::str(symbols[i].data(), symbols[i].size()));
  return result;
}

// (log probabilities, forms, nodes, distinct subtrees).
inline nb::tuple scores_of(ListScores scores) {
  return nb::make_tuple(give(std::move(scores.log_probability)), give(std::move(scores.form)), scores.nodes,
                        scores.scored);
}

// The scores of several batches, each one list of trees over the same words.
template <class Score>
nb::list score_each(const nb::list& batches, std::size_t threads, const Score& score) {
  check_threads(threads);
  std::vector<const PackedTrees*> trees;
  for (nb::handle batch : batches) trees.push_back(&nb::cast<const PackedTrees&>(batch));
  std::vector<ListScores> found(trees.size());
  {
    const Unlocked unlocked;
    ThreadPool pool(threads);
    pool.map(trees.size(), [&](std::size_t i, std::size_t) {
      const std::uint64_t starts[] = {0, trees[i]->tree_count()};
      found[i] = score(*trees[i], starts);
    });
  }
  nb::list result;
  for (ListScores& scores : found) result.append(scores_of(std::move(scores)));
  return result;
}

// One counter for each kind of rows, with as many columns.
template <class Columns>
void check_counters(const nb::list& counters, const Columns& columns) {
  if (counters.size() != columns.size()) throw Error(ErrorCode::argument, "every kind of event needs a counter");
  for (std::size_t i = 0; i < columns.size(); ++i)
    check_columns(nb::cast<const EventCounter&>(counters[i]).columns(), columns[i]);
}

// Extracts the rows of batches of trees and adds them to one counter each.
template <class Extractor>
void count_rows(Extractor& extractor, const nb::list& batches, const nb::list& counters, std::size_t threads) {
  check_threads(threads);
  std::vector<const PackedTrees*> trees;
  for (nb::handle batch : batches) trees.push_back(&nb::cast<const PackedTrees&>(batch));
  std::vector<EventCounter*> into;
  for (nb::handle counter : counters) into.push_back(&nb::cast<EventCounter&>(counter));
  const Unlocked unlocked;
  std::vector<std::vector<std::uint32_t>> rows(into.size());
  ThreadPool pool(threads);
  extractor.extract(trees, pool, rows);
  for (std::size_t i = 0; i < into.size(); ++i) {
    into[i]->add(rows[i].data(), rows[i].size() / into[i]->columns());
    std::vector<std::uint32_t>().swap(rows[i]);
  }
}

}  // namespace treelm::bindings
