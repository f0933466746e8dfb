// Inside and outside scores of subcategories at the nodes of trees, and the counts that follow from them
// (equations (4.1) to (4.4) of pcfg-la.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "latent/active_blocks.h"
#include "latent/rule_contraction.h"

namespace treelm {

inline constexpr std::uint32_t no_child = 0xFFFFFFFF;

// Some trees whose scores are in memory at the same time. Nodes have slots, ordered by height, rule and
// number, so that the words come first and the instances of a rule at one height are neighbours.
struct TreePiece {
  std::size_t first_tree = 0, last_tree = 0;
  std::uint32_t words = 0;                                    // slots of words
  std::vector<std::uint32_t> rule, left, right, tree;         // per slot; children as slots
  std::vector<std::uint32_t> root;                            // per tree, its slot
  std::vector<std::vector<std::uint32_t>> levels;             // per height, cuts of the slots into pieces of work
  std::vector<std::pair<std::uint32_t, std::uint32_t>> runs;  // slots of one rule and height, by rule
  std::vector<std::uint32_t> rule_runs;                       // where the runs of a rule begin, for rules that occur
};

// The largest number of vectors that one rule needs, kept by one worker.
struct LatentScratch {
  std::vector<Lanes> left, right, to_left, to_right, pairs, parents, sums;
};

// Rows of the blocks of neighbouring rules: from `first_row` of the first one up to and without `last_row` of the
// last one. Rows are those of active blocks.
struct CountedRows {
  std::size_t first_rule = 0, first_row = 0, last_rule = 0, last_row = 0;
};

// Inside and outside scores of the nodes of one piece; outside scores are divided by the tree's probability.
class LatentScores {
 public:
  // Makes room for the scores of a piece, which must outlive their use, as must the blocks.
  void begin(const ActiveBlocks& blocks, const TreePiece& piece);
  // Both take the scratch of every worker of the pool.
  void inside(ThreadPool& pool, std::span<LatentScratch> scratch);
  void outside(ThreadPool& pool, std::span<LatentScratch> scratch);
  void roots(std::span<double> log_prob);
  // Throws Error(not_a_number) for the first tree with scores that overflowed.
  void check_numbers(ThreadPool& pool) const;
  // Adds the expected counts of some rows to `counts`.
  void count(const CountedRows& rows, std::span<double> counts, LatentScratch& scratch) const;

  const double* inside_of(std::uint32_t slot) const { return values_.data() + place_[slot].inside; }
  const double* outside_of(std::uint32_t slot) const { return values_.data() + place_[slot].outside; }

 private:
  struct Place {
    std::uint32_t inside, outside;
  };
  // Where the scores of the children of an inner node lie.
  struct Children {
    Place left, right;
  };
  std::size_t size_of(std::int32_t symbol) const { return blocks_->shapes().count(symbol); }
  const Children& children(std::uint32_t slot) const { return children_[slot - piece_->words]; }
  void prefetch_children(std::size_t rule, std::uint32_t first, std::uint32_t last) const;
  void gather_children(std::size_t rule, std::uint32_t first, std::size_t count, Lanes* left, Lanes* right) const;
  void gather_parents(const ActiveBlock& block, std::uint32_t first, std::size_t count, Lanes* parents) const;
  void inside_group(std::uint32_t first, std::size_t count, LatentScratch& scratch);
  void outside_group(std::uint32_t first, std::size_t count, LatentScratch& scratch);
  void count_rows(std::span<const std::pair<std::uint32_t, std::uint32_t>> runs, std::size_t first_row,
                  std::size_t last_row, std::span<double> counts, LatentScratch& scratch) const;
  template <typename Body>
  void for_each_group(std::uint32_t first, std::uint32_t last, const Body& body) const;
  template <typename Body>
  void run_level(const std::vector<std::uint32_t>& cuts, ThreadPool& pool, std::span<LatentScratch> scratch,
                 const Body& body);

  const ActiveBlocks* blocks_ = nullptr;
  const TreePiece* piece_ = nullptr;
  std::vector<double> values_;
  std::vector<double> nothing_;     // zeros for lanes without an instance
  std::vector<Place> place_;        // per slot
  std::vector<Children> children_;  // per slot of an inner node
  std::vector<double> scale_;       // per slot of an inner node: 2^-exponent
  std::vector<std::int32_t> exponent_;
};

}  // namespace treelm
