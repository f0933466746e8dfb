#include "latent/split_merge.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <string>
#include <tuple>

#include "base/error.h"
#include "base/in_order.h"
#include "latent/active_blocks.h"

namespace treelm {

namespace {

// Nodes whose scores one thread keeps at the same time; the last tree of a piece may exceed it.
constexpr std::size_t piece_nodes = std::size_t{1} << 15;
// Nodes in one piece of work of a level.
constexpr std::size_t work_nodes = 64;
// Pieces that a thread takes before anybody asks whether to go on, and parts in which their counts are added up.
constexpr std::size_t pieces_per_thread = 8, counted_parts = 16;
// What gathering the children of one instance costs, in multiplications.
constexpr std::size_t gathering = 8;

}  // namespace

struct LatentTrees::Memory {
  ActiveBlocks blocks;
  // One of each for every thread.
  std::vector<LatentScores> scores;
  std::vector<LatentScratch> scratch;
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
  instances_.assign(rules_.size(), 0);
  for (const std::uint32_t rule : node_rule_) ++instances_[rule];
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

// Parts of about the same work; where they are cut decides nothing but who waits for whom.
std::vector<CountedRows> LatentTrees::plan_counts(const ActiveBlocks& blocks, std::size_t threads) const {
  const std::size_t last = rules_.size() - 1;
  CountedRows part{0, 0, last, blocks.counted_rows(last)};
  if (threads == 1) return {part};
  std::size_t all = 0;
  const auto row_cost = [&](std::size_t rule) { return instances_[rule] * (blocks.counted_columns(rule) + gathering); };
  for (std::size_t rule = 0; rule <= last; ++rule) all += row_cost(rule) * blocks.counted_rows(rule);
  const std::size_t share = all / counted_parts + 1;
  std::vector<CountedRows> parts;
  std::size_t cost = 0;
  for (std::size_t rule = 0; rule <= last; ++rule) {
    const std::size_t own = row_cost(rule), rows = blocks.counted_rows(rule);
    for (std::size_t row = 0; row < rows; ++row) {
      cost += own;
      if (cost < share) continue;
      parts.push_back({part.first_rule, part.first_row, rule, row + 1});
      part.first_rule = rule;
      part.first_row = row + 1;
      cost = 0;
    }
  }
  parts.push_back(part);
  return parts;
}

// Scores the pieces, one on each thread, and hands each to `use` in as many parts as `plan` says once the blocks are
// there: part k of a piece after part k of the piece before, by whichever thread has the scores in its caches.
template <typename Plan, typename Use>
void LatentTrees::score_pieces(const RuleBlocks& shapes, std::span<const double> weights, bool outside,
                               std::span<double> log_prob, ThreadPool& pool, const Interrupt& interrupt,
                               const Plan& plan, const Use& use) const {
  std::unique_ptr<Memory> memory = lender_->take();
  auto& [blocks, scores, scratch] = *memory;
  if (scores.size() < pool.size()) {
    scores.resize(pool.size());
    scratch.resize(pool.size());
  }
  blocks.pack(shapes, weights, pool);
  const std::size_t parts = plan(blocks);
  const auto score = [&](const TreePiece& piece, LatentScores& own, std::span<LatentScratch> room,
                         ThreadPool& threads) {
    own.begin(blocks, piece);
    own.inside(threads, room);
    own.roots(log_prob);
    if (!outside) return;
    own.outside(threads, room);
    own.check_numbers(threads);
  };
  interrupt();
  if (pieces_.size() == 1) {  // which has all threads for itself
    score(pieces_[0], scores[0], scratch, pool);
    pool.map(parts, [&](std::size_t part, std::size_t worker) { use(pieces_[0], scores[0], part, scratch[worker]); });
  } else {
    InOrder order(pieces_.size());
    const std::size_t at_once = pool.size() > 1 ? pieces_per_thread * pool.size() : 1;
    for (std::size_t first = 0; first < pieces_.size(); first += at_once) {
      interrupt();
      pool.map(std::min(at_once, pieces_.size() - first), [&](std::size_t i, std::size_t worker) {
        const std::size_t piece = first + i;
        const EndOfPiece end(order, piece, parts);
        ThreadPool alone(1);
        score(pieces_[piece], scores[worker], {&scratch[worker], 1}, alone);
        for (std::size_t part = 0; part < parts; ++part) {
          order.wait_before(piece, part + 1);
          use(pieces_[piece], scores[worker], part, scratch[worker]);
          order.set_done(piece, part + 1);
        }
      });
    }
  }
  lender_->give(std::move(memory));
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
  std::vector<CountedRows> parts;
  score_pieces(
      shapes, weights, true, result, pool, interrupt,
      [&](const ActiveBlocks& blocks) { return (parts = plan_counts(blocks, pool.size())).size(); },
      [&](const TreePiece&, const LatentScores& scores, std::size_t part, LatentScratch& scratch) {
        scores.count(parts[part], counts, scratch);
      });
  return result;
}

std::vector<double> LatentTrees::log_probs(std::span<const std::int32_t> substates, std::span<const double> weights,
                                           ThreadPool& pool, const Interrupt& interrupt) const {
  const RuleBlocks shapes(rules_, substates);
  check_weights(shapes, weights, pool);
  std::vector<double> result(trees());
  score_pieces(
      shapes, weights, false, result, pool, interrupt, [](const ActiveBlocks&) { return 0; }, [](const auto&...) {});
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
  const auto add = [&](const TreePiece& piece, const LatentScores& scores, std::size_t, LatentScratch&) {
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
  score_pieces(shapes, weights, true, unused, pool, interrupt, [](const ActiveBlocks&) { return 1; }, add);
  return result;
}

}  // namespace treelm
