// Tree-substitution grammars: fragments sampled from trees, and the best way to cut a tree into them.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/progress.h"

namespace treelm {

// Trees one after the other, nodes in preorder. A rule is a label with the labels of its children, or a tag
// with its word; -1 stands for one that is not known.
struct RuleTrees {
  std::span<const std::int64_t> starts;  // first node of each tree, and the number of nodes
  std::span<const std::int32_t> rules;   // per node
  std::span<const std::int32_t> labels;  // per node
  std::span<const std::int32_t> sizes;   // per node: nodes below it and itself
};

// Refuse trees that do not fit together, and numbers of rules or labels from `rules` or `labels` on.
void check_rule_trees(const RuleTrees& trees, std::size_t rules, std::size_t labels);

// A fragment is written as its rules in preorder, with `frontier` for each child that is left open.
inline constexpr std::int32_t frontier = -1;

struct Fragments {
  std::vector<std::int64_t> starts{0};
  std::vector<std::int32_t> tokens;
  std::vector<std::uint64_t> counts;
};

struct SamplerOptions {
  double concentration = 10;  // of the Dirichlet process
  double stop = 0.8;          // chance that a child is left open, in the base distribution
  std::uint64_t sweeps = 10;
  std::uint64_t seed = 0;
};

// Gibbs sampling of the nodes at which trees are cut (Cohn et al. 2009, Post and Gildea 2009). Returns the
// fragments of the last sweep, sorted, and every rule of the trees as a fragment with a count of at least one.
Fragments sample_fragments(const RuleTrees& trees, std::span<const double> rule_log_probs, std::size_t labels,
                           const SamplerOptions& options, const ProgressCallback& progress);

// How trees were cut: the fragments of each, in preorder of their roots.
struct Derivations {
  std::vector<std::int64_t> starts{0};
  std::vector<std::int32_t> fragments;  // -1 for a rule that is in no fragment
  std::vector<std::int32_t> heights, open;
};

// Finds the most probable way to cut trees; fragments have their relative frequencies among those with the same
// root, and an unknown rule 1 / (n + 1) if its label is the root of n.
class FragmentCover {
 public:
  // `rule_labels` gives the label above each rule.
  FragmentCover(std::span<const std::int64_t> starts, std::span<const std::int32_t> tokens,
                std::span<const std::uint64_t> counts, std::span<const std::int32_t> rule_labels, std::size_t labels);
  Derivations derive(const RuleTrees& trees, std::size_t threads, const ProgressCallback& progress) const;

 private:
  struct Cut;
  void derive_one(const RuleTrees& trees, std::size_t tree, Derivations& out) const;
  std::uint32_t step(std::uint32_t state, std::int32_t token) const;

  std::vector<std::int64_t> starts_;
  std::vector<std::int32_t> tokens_;
  std::vector<double> log_probs_;
  std::vector<double> unknown_;  // by label
  std::size_t rules_;
  std::unordered_map<std::uint64_t, std::uint32_t> steps_;  // state and token -> state
  std::vector<std::int32_t> ends_;                          // by state: the fragment, or -1
};

}  // namespace treelm
