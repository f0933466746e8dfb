#include "latent/split_merge.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <string>
#include <tuple>

#include "base/error.h"
#include "latent/active_blocks.h"

namespace treelm {

namespace {

// Nodes whose scores one thread keeps at the same time; the last tree of a piece may exceed it.
constexpr std::size_t piece_nodes = std::size_t{1} << 15;
// Nodes in one piece of work of a level.
constexpr std::size_t work_nodes = 64;

}  // namespace

struct LatentTrees::Memory {
  ActiveBlocks blocks;
  std::vector<LatentScores> scores;  // one for each thread
};

struct LatentTrees::Lender {
  std::mutex mutex;
  std::unique_ptr<Memory> free;

  std::unique_ptr<Memory> take() {
    const std::lock_guard lock(mutex);
    return free ? std::move(free) : std::make_unique<Memory>();
  }
  void give(std::unique_ptr<Memory> memory) {
    const std::lock_guard lock(mutex);
    free = std::move(memory);
  }
};

LatentTrees::~LatentTrees() = default;

LatentTrees::LatentTrees(std::vector<LatentRule> rules, std::vector<std::uint32_t> node_rule,
                         std::vector<std::uint32_t> node_left, std::vector<std::uint32_t> node_right,
                         std::vector<std::uint32_t> tree_start)
    : rules_(std::move(rules)),
      node_rule_(std::move(node_rule)),
      node_left_(std::move(node_left)),
      node_right_(std::move(node_right)),
      tree_start_(std::move(tree_start)),
      lender_(std::make_unique<Lender>()) {
  check();
  std::size_t first = 0;
  for (std::size_t tree = 0; tree < trees(); ++tree) {
    if (tree_start_[tree + 1] - tree_start_[first] < piece_nodes && tree + 1 < trees()) continue;
    add_piece(first, tree + 1);
    first = tree + 1;
  }
}

void LatentTrees::check() const {
  const std::size_t nodes = node_rule_.size();
  const auto fail = [](const std::string& what) { throw Error(ErrorCode::argument, what); };
  if (nodes >= no_child || node_left_.size() != nodes || node_right_.size() != nodes)
    fail("rules and children of nodes do not fit together");
  if (tree_start_.empty() || tree_start_.front() != 0 || tree_start_.back() != nodes)
    fail("trees do not cover the nodes");
  for (std::size_t tree = 0; tree < trees(); ++tree)
    if (tree_start_[tree] >= tree_start_[tree + 1]) fail("tree " + std::to_string(tree) + " has no node");
  std::vector<bool> has_parent(nodes, false);
  for (std::size_t tree = 0; tree < trees(); ++tree) {
    const std::uint32_t end = tree_start_[tree + 1];
    has_parent[tree_start_[tree]] = true;
    for (std::uint32_t node = tree_start_[tree]; node < end; ++node) {
      const std::string place = "node " + std::to_string(node) + " of tree " + std::to_string(tree);
      if (node_rule_[node] >= rules_.size()) fail(place + " has an unknown rule");
      const LatentRule& rule = rules_[node_rule_[node]];
      const auto check_child = [&](std::uint32_t child, std::int32_t symbol) {
        if ((symbol == no_symbol) != (child == no_child)) fail(place + " has more or fewer children than its rule");
        if (child == no_child) return;
        if (child <= node || child >= end || has_parent[child]) fail(place + " has a child that is out of place");
        if (node_rule_[child] >= rules_.size() || rules_[node_rule_[child]].parent != symbol)
          fail(place + " has a child that differs from its rule");
        has_parent[child] = true;
      };
      check_child(node_left_[node], rule.left);
      check_child(node_right_[node], rule.right);
    }
  }
  if (std::find(has_parent.begin(), has_parent.end(), false) != has_parent.end()) fail("a node belongs to no tree");
}

void LatentTrees::add_piece(std::size_t first_tree, std::size_t last_tree) {
  TreePiece piece;
  piece.first_tree = first_tree;
  piece.last_tree = last_tree;
  const std::uint32_t first = tree_start_[first_tree], last = tree_start_[last_tree], size = last - first;
  std::vector<std::uint32_t> height(size, 0), order(size), slot(size), tree(size);
  for (std::uint32_t node = last; node-- > first;)
    for (const std::uint32_t child : {node_left_[node], node_right_[node]})
      if (child != no_child) height[node - first] = std::max(height[node - first], height[child - first] + 1);
  for (std::size_t t = first_tree; t < last_tree; ++t)
    std::fill(tree.begin() + (tree_start_[t] - first), tree.begin() + (tree_start_[t + 1] - first),
              static_cast<std::uint32_t>(t));
  std::iota(order.begin(), order.end(), first);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(height[a - first], node_rule_[a], a) < std::tuple(height[b - first], node_rule_[b], b);
  });
  for (std::uint32_t i = 0; i < size; ++i) slot[order[i] - first] = i;
  const auto slot_of = [&](std::uint32_t node) { return node == no_child ? no_child : slot[node - first]; };
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint32_t node = order[i], level = height[node - first];
    piece.rule.push_back(node_rule_[node]);
    piece.left.push_back(slot_of(node_left_[node]));
    piece.right.push_back(slot_of(node_right_[node]));
    piece.tree.push_back(tree[node - first]);
    const bool new_level = i == 0 || level != height[order[i - 1] - first];
    if (new_level || piece.rule[i] != piece.rule[i - 1]) piece.runs.emplace_back(i, i);
    piece.runs.back().second = i + 1;
    if (level == 0) {
      piece.words = i + 1;
    } else if (new_level) {
      if (!piece.levels.empty()) piece.levels.back().push_back(i);
      piece.levels.push_back({i});
    } else if (i - piece.levels.back().back() == work_nodes) {
      piece.levels.back().push_back(i);
    }
  }
  if (!piece.levels.empty()) piece.levels.back().push_back(size);
  for (std::size_t t = first_tree; t < last_tree; ++t) piece.root.push_back(slot_of(tree_start_[t]));
  std::stable_sort(piece.runs.begin(), piece.runs.end(),
                   [&](const auto& a, const auto& b) { return piece.rule[a.first] < piece.rule[b.first]; });
  for (std::uint32_t i = 0; i < piece.runs.size(); ++i)
    if (i == 0 || piece.rule[piece.runs[i].first] != piece.rule[piece.runs[i - 1].first]) piece.rule_runs.push_back(i);
  piece.rule_runs.push_back(static_cast<std::uint32_t>(piece.runs.size()));
  pieces_.push_back(std::move(piece));
}

// Scores one piece of trees on each thread, then hands these pieces to `use`, in order.
template <typename Use>
void LatentTrees::score_pieces(const RuleBlocks& shapes, std::span<const double> weights, bool outside,
                               std::span<double> log_prob, ThreadPool& pool, const Interrupt& interrupt,
                               const Use& use) const {
  std::unique_ptr<Memory> memory = lender_->take();
  auto& [blocks, scores] = *memory;
  if (scores.size() < pool.size()) scores.resize(pool.size());
  blocks.pack(shapes, weights, pool);
  for (std::size_t first = 0; first < pieces_.size(); first += pool.size()) {
    interrupt();
    const std::size_t count = std::min(pool.size(), pieces_.size() - first);
    // A piece alone has all threads for itself.
    if (count == 1) {
      score_piece(blocks, pieces_[first], scores[0], pool.size(), outside, log_prob, pool);
    } else {
      pool.map(count, [&](std::size_t i, std::size_t) {
        ThreadPool own(1);
        score_piece(blocks, pieces_[first + i], scores[i], pool.size(), outside, log_prob, own);
      });
    }
    for (std::size_t i = 0; i < count; ++i) use(pieces_[first + i], scores[i]);
  }
  lender_->give(std::move(memory));
}

void LatentTrees::score_piece(const ActiveBlocks& blocks, const TreePiece& piece, LatentScores& scores,
                              std::size_t workers, bool outside, std::span<double> log_prob, ThreadPool& pool) {
  scores.begin(blocks, piece, workers);
  scores.inside(pool);
  scores.roots(log_prob);
  if (!outside) return;
  scores.outside(pool);
  scores.check_numbers(pool);
  scores.plan_counts();
}

std::vector<double> LatentTrees::expect(std::span<const std::int32_t> substates, std::span<const double> weights,
                                        std::span<double> counts, ThreadPool& pool, const Interrupt& interrupt) const {
  const RuleBlocks shapes(rules_, substates);
  check_weights(shapes, weights, pool);
  if (counts.size() != weights.size()) throw Error(ErrorCode::argument, "there must be a count for every weight");
  for_each_part(counts.size(), pool, [&](std::size_t first, std::size_t last) {
    std::fill(counts.data() + first, counts.data() + last, 0.0);
  });
  std::vector<double> result(trees());
  score_pieces(shapes, weights, true, result, pool, interrupt,
               [&](const TreePiece&, LatentScores& scores) { scores.count(counts, pool); });
  return result;
}

std::vector<double> LatentTrees::log_probs(std::span<const std::int32_t> substates, std::span<const double> weights,
                                           ThreadPool& pool, const Interrupt& interrupt) const {
  const RuleBlocks shapes(rules_, substates);
  check_weights(shapes, weights, pool);
  std::vector<double> result(trees());
  score_pieces(shapes, weights, false, result, pool, interrupt, [](const TreePiece&, LatentScores&) {});
  return result;
}

std::vector<double> LatentTrees::merge_gains(std::span<const std::int32_t> substates, std::span<const double> weights,
                                             std::span<const double> shares, ThreadPool& pool,
                                             const Interrupt& interrupt) const {
  const RuleBlocks shapes(rules_, substates);
  check_weights(shapes, weights, pool);
  if (shares.size() != shapes.substates())
    throw Error(ErrorCode::argument, "there must be a share for every subcategory");
  std::vector<double> result(shapes.substates(), 0.0), unused(trees());
  const auto add = [&](const TreePiece& piece, const LatentScores& scores) {
    for (std::uint32_t slot = 0; slot < piece.rule.size(); ++slot) {
      const std::int32_t symbol = rules_[piece.rule[slot]].parent;
      const std::size_t first = shapes.first_substate(symbol), size = shapes.count(symbol);
      const double *in = scores.inside_of(slot), *out = scores.outside_of(slot);
      double together = 0;
      for (std::size_t x = 0; x < size; ++x) together += in[x] * out[x];
      if (together == 0) continue;  // of a tree that the grammar cannot make
      for (std::size_t x = 0; x + 1 < size; x += 2) {
        const double apart = in[x] * out[x] + in[x + 1] * out[x + 1];
        const double merged = (shares[first + x] * in[x] + shares[first + x + 1] * in[x + 1]) * (out[x] + out[x + 1]);
        result[first + x] += std::log((together - apart + merged) / together);
      }
    }
  };
  score_pieces(shapes, weights, true, unused, pool, interrupt, add);
  return result;
}

}  // namespace treelm
