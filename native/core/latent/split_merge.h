// Expectation steps of latent grammars on trees whose labels are known and whose subcategories are not
// (Petrov et al. 2006; equations as in pcfg-la.md, sections 4 and 5).
//
// Nodes of all trees are grouped by rule at every height, so that a rule's block is loaded once for many
// nodes. Results do not depend on the number of threads: every sum is made by one thread in a fixed order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "latent/rules.h"
#include "latent/scores.h"

namespace treelm {

class LatentTrees {
 public:
  // Called now and then by the thread that waits; may throw to stop the work.
  using Interrupt = std::function<void()>;

  // Per node the index of its rule and of its children (no_child where there is none); the nodes of tree t are
  // those from tree_start[t] to tree_start[t + 1], its root is the first, and children stand behind parents.
  // Throws Error(argument) if anything does not fit together.
  LatentTrees(std::vector<LatentRule> rules, std::vector<std::uint32_t> node_rule, std::vector<std::uint32_t> node_left,
              std::vector<std::uint32_t> node_right, std::vector<std::uint32_t> tree_start);

  ~LatentTrees();

  std::size_t trees() const { return tree_start_.size() - 1; }
  std::size_t nodes() const { return node_rule_.size(); }
  std::span<const LatentRule> rules() const { return rules_; }

  // The E step, (4.1)-(4.4): fills `counts`, one for each weight, and returns the log probability of every tree,
  // minus infinity where the grammar cannot make it. Throws Error(not_a_number) naming a tree that overflows.
  std::vector<double> expect(std::span<const std::int32_t> substates, std::span<const double> weights,
                             std::span<double> counts, ThreadPool& pool, const Interrupt& interrupt) const;

  // The log probability of every tree, (4.3).
  std::vector<double> log_probs(std::span<const std::int32_t> substates, std::span<const double> weights,
                                ThreadPool& pool, const Interrupt& interrupt) const;

  // For every subcategory 2i of a symbol: the logarithm of (5.4) if it is merged with 2i + 1, whose weights
  // `shares` gives; at other places 0.
  std::vector<double> merge_gains(std::span<const std::int32_t> substates, std::span<const double> weights,
                                  std::span<const double> shares, ThreadPool& pool, const Interrupt& interrupt) const;

 private:
  // Large arrays are kept for the next call: giving them back and forth would cost as much as the work.
  struct Memory;
  struct Lender;

  void check() const;
  void add_piece(std::size_t first_tree, std::size_t last_tree);
  template <typename Plan, typename Use>
  void score_pieces(const RuleBlocks& shapes, std::span<const double> weights, bool outside, std::span<double> log_prob,
                    ThreadPool& pool, const Interrupt& interrupt, const Plan& plan, const Use& use) const;
  std::vector<CountedRows> plan_counts(const ActiveBlocks& blocks, std::size_t threads) const;

  std::vector<LatentRule> rules_;
  std::vector<std::uint32_t> node_rule_, node_left_, node_right_, tree_start_;
  std::vector<TreePiece> pieces_;
  std::vector<std::size_t> instances_;  // per rule
  std::unique_ptr<Lender> lender_;
};

}  // namespace treelm
