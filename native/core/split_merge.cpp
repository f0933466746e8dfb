#include "split_merge.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <numbers>
#include <numeric>
#include <string>
#include <tuple>

#include "error.h"
#include "rule_contraction.h"

namespace treelm {

namespace {

// Nodes whose scores are kept at the same time; the last tree of a piece may exceed it.
constexpr std::size_t piece_nodes = std::size_t{1} << 16;
// Nodes in one piece of work of a level.
constexpr std::size_t work_nodes = 64;
// Multiplications in one piece of work when counts are added up.
constexpr std::size_t work_products = std::size_t{1} << 20;
// Rules in one piece of work when weights are packed.
constexpr std::size_t work_rules = 64;

// The largest number of vectors that one rule needs, kept by one worker.
struct Scratch {
  std::vector<Lanes> left, right, to_left, to_right, pairs, parents, sums;
};

Lanes* room(std::vector<Lanes>& lines, std::size_t size) {
  if (lines.size() < size) lines.resize(size);
  return lines.data();
}

void prefetch([[maybe_unused]] const double* from, [[maybe_unused]] std::size_t size) {
#if defined(__GNUC__)
  for (std::size_t i = 0; i < size; i += lanes) __builtin_prefetch(from + i);
#endif
}

// The exponent of a positive number, so that value * 2^-exponent is near 1.
std::int32_t exponent_of(double value) {
  const auto biased = static_cast<std::int32_t>(std::bit_cast<std::uint64_t>(value) >> 52 & 0x7FF);
  return std::clamp(biased - 1023, -1000, 1000);
}

double power_of_two(std::int32_t exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

}  // namespace

// Arrays that grow to what the largest piece needs.
struct LatentTrees::Memory {
  struct Place {
    std::uint32_t inside, outside;
  };
  // Where the scores of the children of an inner node lie.
  struct Children {
    Place left, right;
  };
  std::vector<double> values, nothing, scale;
  std::vector<Place> place;
  std::vector<Children> children;
  std::vector<std::int32_t> exponent;
  std::vector<Scratch> scratch;
  std::vector<std::uint16_t> rows, left, right;
  std::vector<double> weights;
  std::vector<std::size_t> rows_start, columns_start, weights_start;
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
      if (node_rule_[node] >= rules_.size()) fail(place + " has no rule");
      const LatentRule& rule = rules_[node_rule_[node]];
      const auto check_child = [&](std::uint32_t child, std::int32_t symbol) {
        if ((symbol == no_symbol) != (child == no_child)) fail(place + " has other children than its rule");
        if (child == no_child) return;
        if (child <= node || child >= end || has_parent[child]) fail(place + " has an impossible child");
        if (node_rule_[child] >= rules_.size() || rules_[node_rule_[child]].parent != symbol)
          fail(place + " has another child than its rule");
        has_parent[child] = true;
      };
      check_child(node_left_[node], rule.left);
      check_child(node_right_[node], rule.right);
    }
  }
  if (std::find(has_parent.begin(), has_parent.end(), false) != has_parent.end()) fail("a node belongs to no tree");
}

void LatentTrees::add_piece(std::size_t first_tree, std::size_t last_tree) {
  Piece piece;
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

// The weights of a grammar without rows and columns that are zero.
class LatentTrees::Blocks {
 public:
  Blocks(const RuleBlocks& shapes, std::span<const double> weights, Memory& memory, ThreadPool& pool)
      : shapes_(shapes), all_(weights), memory_(memory) {
    for (auto* starts : {&memory.rows_start, &memory.columns_start, &memory.weights_start})
      starts->assign(shapes.size() + 1, 0);
    // Many rules are one piece of work. First the sizes, then the places, then the numbers.
    const std::size_t pieces = (shapes.size() + work_rules - 1) / work_rules;
    const auto for_each_rule = [&](const auto& body) {
      pool.map(pieces, [&](std::size_t piece, std::size_t) {
        std::vector<char> used;
        for (std::size_t r = piece * work_rules; r < std::min(shapes.size(), (piece + 1) * work_rules); ++r)
          if (shapes.rule(r).left != no_symbol) body(r, used);
      });
    };
    for_each_rule([&](std::size_t r, std::vector<char>& used) {
      const auto [rows, columns] = look(r, used);
      memory.rows_start[r + 1] = rows;
      memory.columns_start[r + 1] = columns;
      memory.weights_start[r + 1] = rows * columns;
    });
    for (auto* starts : {&memory.rows_start, &memory.columns_start, &memory.weights_start})
      std::partial_sum(starts->begin(), starts->end(), starts->begin());
    memory.rows.resize(memory.rows_start.back());
    memory.left.resize(memory.columns_start.back());
    memory.right.resize(memory.columns_start.back());
    memory.weights.resize(memory.weights_start.back());
    for_each_rule([&](std::size_t r, std::vector<char>& used) { fill(r, used); });
  }

  const RuleBlocks& shapes() const { return shapes_; }
  const double* lexical(std::size_t rule) const { return all_.data() + shapes_.start(rule); }
  ActiveBlock active(std::size_t rule) const {
    const std::size_t first_row = memory_.rows_start[rule], first_column = memory_.columns_start[rule];
    const std::size_t columns = memory_.columns_start[rule + 1] - first_column;
    return {{memory_.rows.data() + first_row, memory_.rows_start[rule + 1] - first_row},
            {memory_.left.data() + first_column, columns},
            {memory_.right.data() + first_column, columns},
            memory_.weights.data() + memory_.weights_start[rule]};
  }

 private:
  // Marks the rows, then the columns of a block that are not zero, and counts them.
  std::pair<std::size_t, std::size_t> look(std::size_t rule, std::vector<char>& used) const {
    const std::size_t rows = shapes_.rows(rule), columns = shapes_.columns(rule);
    const double* weight = all_.data() + shapes_.start(rule);
    used.assign(rows + columns, 0);
    char* column = used.data() + rows;
    for (std::size_t x = 0; x < rows; ++x, weight += columns) {
      char any = 0;
      for (std::size_t j = 0; j < columns; ++j) {
        const char here = weight[j] > 0;
        column[j] = static_cast<char>(column[j] | here);
        any = static_cast<char>(any | here);
      }
      used[x] = any;
    }
    const auto count = [](const char* from, std::size_t size) {
      return static_cast<std::size_t>(std::count(from, from + size, 1));
    };
    return {count(used.data(), rows), count(column, columns)};
  }

  void fill(std::size_t rule, std::vector<char>& used) {
    look(rule, used);
    const std::size_t rows = shapes_.rows(rule), columns = shapes_.columns(rule), rights = shapes_.right(rule);
    const double* block = all_.data() + shapes_.start(rule);
    std::uint16_t* row = memory_.rows.data() + memory_.rows_start[rule];
    for (std::size_t x = 0; x < rows; ++x)
      if (used[x]) *row++ = static_cast<std::uint16_t>(x);
    std::size_t column = memory_.columns_start[rule];
    double* to = memory_.weights.data() + memory_.weights_start[rule];
    const std::span<const std::uint16_t> kept = active(rule).rows;
    for (std::size_t j = 0; j < columns; ++j) {
      if (!used[rows + j]) continue;
      memory_.left[column] = static_cast<std::uint16_t>(j / rights);
      memory_.right[column++] = static_cast<std::uint16_t>(j % rights);
      for (const std::uint16_t x : kept) *to++ = block[x * columns + j];
    }
  }

  const RuleBlocks& shapes_;
  std::span<const double> all_;
  Memory& memory_;
};

// Inside and outside scores of the nodes of one piece; outside scores are divided by the tree's probability.
class LatentTrees::Scores {
 public:
  Scores(const Blocks& blocks, std::size_t workers, Memory& memory)
      : blocks_(blocks),
        values_(memory.values),
        nothing_(memory.nothing),
        place_(memory.place),
        children_(memory.children),
        scale_(memory.scale),
        exponent_(memory.exponent),
        scratch_(memory.scratch) {
    if (scratch_.size() < workers) scratch_.resize(workers);
  }

  void begin(const Piece& piece);
  void inside(ThreadPool& pool);
  void roots(std::span<double> log_prob);
  void outside(ThreadPool& pool);
  // Throws Error(not_a_number) for the first tree with scores that overflowed.
  void check_numbers(ThreadPool& pool) const;
  void count(std::span<double> counts, ThreadPool& pool);

  const double* inside_of(std::uint32_t slot) const { return values_.data() + place_[slot].inside; }
  const double* outside_of(std::uint32_t slot) const { return values_.data() + place_[slot].outside; }

 private:
  using Place = Memory::Place;
  using Children = Memory::Children;

  std::size_t size_of(std::int32_t symbol) const { return blocks_.shapes().count(symbol); }
  const Children& children(std::uint32_t slot) const { return children_[slot - piece_->words]; }
  void prefetch_children(std::size_t rule, std::uint32_t first, std::uint32_t last) const;
  void gather_children(std::size_t rule, std::uint32_t first, std::size_t count, Lanes* left, Lanes* right) const;
  void gather_parents(const ActiveBlock& block, std::uint32_t first, std::size_t count, Lanes* parents) const;
  void inside_group(std::uint32_t first, std::size_t count, Scratch& scratch);
  void outside_group(std::uint32_t first, std::size_t count, Scratch& scratch);
  void count_rows(std::span<const std::pair<std::uint32_t, std::uint32_t>> runs, std::size_t first_row,
                  std::size_t last_row, std::span<double> counts, Scratch& scratch) const;
  template <typename Body>
  void for_each_group(std::uint32_t first, std::uint32_t last, const Body& body) const;
  template <typename Body>
  void run_level(const std::vector<std::uint32_t>& cuts, ThreadPool& pool, const Body& body);

  const Blocks& blocks_;
  const Piece* piece_ = nullptr;
  std::vector<double>& values_;
  std::vector<double>& nothing_;     // zeros for lanes without an instance
  std::vector<Place>& place_;        // per slot
  std::vector<Children>& children_;  // per slot of an inner node
  std::vector<double>& scale_;       // per slot of an inner node: 2^-exponent
  std::vector<std::int32_t>& exponent_;
  std::vector<Scratch>& scratch_;  // per worker
};

void LatentTrees::Scores::begin(const Piece& piece) {
  piece_ = &piece;
  const RuleBlocks& shapes = blocks_.shapes();
  const auto slots = static_cast<std::uint32_t>(piece.rule.size());
  place_.resize(slots);
  children_.resize(slots - piece.words);
  scale_.assign(slots - piece.words, 1.0);
  exponent_.assign(slots - piece.words, 0);
  // All instances of a lexical rule have the same inside scores, which are kept once.
  std::size_t end = 1;
  std::size_t largest = 1;
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    const std::size_t size = shapes.rows(piece.rule[slot]);
    largest = std::max(largest, size);
    const bool kept = slot < piece.words && slot > 0 && piece.rule[slot] == piece.rule[slot - 1];
    if (kept) {
      place_[slot].inside = place_[slot - 1].inside;
    } else {
      place_[slot].inside = static_cast<std::uint32_t>(end);
      end += size;
    }
    place_[slot].outside = static_cast<std::uint32_t>(end);
    end += size;
    if (end > std::numeric_limits<std::uint32_t>::max())
      throw Error(ErrorCode::too_large, "the scores of a few thousand trees do not fit into memory");
    if (slot < piece.words) continue;
    const std::uint32_t right = piece.right[slot];
    children_[slot - piece.words] = {place_[piece.left[slot]], right == no_child ? Place{0, 0} : place_[right]};
  }
  if (values_.size() < end + lanes) values_.resize(end + lanes);
  values_[0] = 1;  // the score of the right child that a unary rule does not have
  nothing_.assign(largest, 0.0);
  for (std::uint32_t slot = 0; slot < piece.words; ++slot) {
    if (slot > 0 && piece.rule[slot] == piece.rule[slot - 1]) continue;
    const double* from = blocks_.lexical(piece.rule[slot]);
    std::copy(from, from + shapes.rows(piece.rule[slot]), values_.data() + place_[slot].inside);
  }
}

// Calls body(slot, count) for groups of at most eight slots of one rule.
template <typename Body>
void LatentTrees::Scores::for_each_group(std::uint32_t first, std::uint32_t last, const Body& body) const {
  const std::vector<std::uint32_t>& rule = piece_->rule;
  for (std::uint32_t slot = first; slot < last;) {
    std::uint32_t end = slot + 1;
    while (end < last && end - slot < lanes && rule[end] == rule[slot]) ++end;
    if (end < last) prefetch_children(rule[end], end, std::min<std::uint32_t>(last, end + lanes));
    body(slot, end - slot);
    slot = end;
  }
}

template <typename Body>
void LatentTrees::Scores::run_level(const std::vector<std::uint32_t>& cuts, ThreadPool& pool, const Body& body) {
  const auto work = [&](std::size_t i, std::size_t worker) {
    for_each_group(cuts[i], cuts[i + 1],
                   [&](std::uint32_t slot, std::size_t count) { body(slot, count, scratch_[worker]); });
  };
  const std::size_t pieces = cuts.size() - 1;
  if (pieces > 1 && pool.size() > 1) return pool.map(pieces, work);
  for (std::size_t i = 0; i < pieces; ++i) work(i, 0);
}

void LatentTrees::Scores::prefetch_children(std::size_t rule, std::uint32_t first, std::uint32_t last) const {
  const std::size_t left = blocks_.shapes().left(rule), right = blocks_.shapes().right(rule);
  for (std::uint32_t slot = first; slot < last; ++slot) {
    prefetch(values_.data() + children(slot).left.inside, left);
    prefetch(values_.data() + children(slot).right.inside, right);
  }
}

void LatentTrees::Scores::gather_children(std::size_t rule, std::uint32_t first, std::size_t count, Lanes* left,
                                          Lanes* right) const {
  const double *lefts[lanes], *rights[lanes];
  for (std::size_t n = 0; n < lanes; ++n) {
    lefts[n] = rights[n] = nothing_.data();
    if (n >= count) continue;
    const Children& below = children(first + static_cast<std::uint32_t>(n));
    lefts[n] = values_.data() + below.left.inside;
    rights[n] = values_.data() + below.right.inside;
  }
  gather(lefts, blocks_.shapes().left(rule), left);
  gather(rights, blocks_.shapes().right(rule), right);
}

// Outside scores at the parents, times the scale that was taken out of their inside scores.
void LatentTrees::Scores::gather_parents(const ActiveBlock& block, std::uint32_t first, std::size_t count,
                                         Lanes* parents) const {
  const double* scores[lanes];
  Lanes scale{};
  for (std::size_t n = 0; n < lanes; ++n) {
    const std::uint32_t slot = first + static_cast<std::uint32_t>(n);
    scores[n] = n < count ? outside_of(slot) : nothing_.data();
    if (n < count) scale.value[n] = scale_[slot - piece_->words];
  }
  gather_rows(scores, block.rows, scale, parents);
}

void LatentTrees::Scores::inside_group(std::uint32_t first, std::size_t count, Scratch& scratch) {
  const std::size_t rule = piece_->rule[first];
  const RuleBlocks& shapes = blocks_.shapes();
  const ActiveBlock block = blocks_.active(rule);
  Lanes* left = room(scratch.left, shapes.left(rule));
  Lanes* right = room(scratch.right, shapes.right(rule));
  Lanes* pairs = room(scratch.pairs, block.columns());
  Lanes* parents = room(scratch.parents, block.rows.size());
  gather_children(rule, first, count, left, right);
  multiply_children(block, left, right, pairs);
  const Lanes largest = contract_children(block, pairs, parents);
  const std::size_t rows = shapes.rows(rule);
  for (std::size_t n = 0; n < count; ++n) {
    const std::uint32_t slot = first + static_cast<std::uint32_t>(n);
    double* to = values_.data() + place_[slot].inside;
    if (block.rows.size() < rows) std::fill(to, to + rows, 0.0);
    // An impossible node has scores of 0; a scale of 0 keeps it and all around it out of the counts.
    const double most = largest.value[n];
    const std::int32_t exponent = most > 0 ? exponent_of(most) : 0;
    const double scale = most > 0 ? power_of_two(-exponent) : 0;
    exponent_[slot - piece_->words] = exponent;
    scale_[slot - piece_->words] = scale;
    for (std::size_t i = 0; i < block.rows.size(); ++i) to[block.rows[i]] = parents[i].value[n] * scale;
  }
}

void LatentTrees::Scores::inside(ThreadPool& pool) {
  for (const std::vector<std::uint32_t>& cuts : piece_->levels)
    run_level(cuts, pool,
              [&](std::uint32_t slot, std::size_t count, Scratch& scratch) { inside_group(slot, count, scratch); });
}

void LatentTrees::Scores::roots(std::span<double> log_prob) {
  std::vector<std::int64_t> exponent(piece_->root.size(), 0);
  for (std::size_t i = 0; i < exponent_.size(); ++i)
    exponent[piece_->tree[piece_->words + i] - piece_->first_tree] += exponent_[i];
  for (std::size_t t = 0; t < piece_->root.size(); ++t) {
    const std::uint32_t root = piece_->root[t];
    const std::size_t size = size_of(blocks_.shapes().rule(piece_->rule[root]).parent);
    const double score = inside_of(root)[0];
    double* to = values_.data() + place_[root].outside;
    std::fill(to, to + size, 0.0);
    // A tree that cannot be made has outside scores of 0, and so counts nowhere.
    to[0] = score > 0 ? 1 / score : 0.0;
    log_prob[piece_->first_tree + t] = score > 0
                                           ? std::log(score) + std::numbers::ln2 * static_cast<double>(exponent[t])
                                           : (score == 0 ? -std::numeric_limits<double>::infinity() : score);
  }
}

void LatentTrees::Scores::outside_group(std::uint32_t first, std::size_t count, Scratch& scratch) {
  const std::size_t rule = piece_->rule[first];
  const RuleBlocks& shapes = blocks_.shapes();
  const ActiveBlock block = blocks_.active(rule);
  const std::size_t lefts = shapes.left(rule), rights = shapes.right(rule);
  Lanes *left = room(scratch.left, lefts), *right = room(scratch.right, rights);
  Lanes *to_left = room(scratch.to_left, lefts), *to_right = room(scratch.to_right, rights);
  Lanes* parents = room(scratch.parents, block.rows.size());
  gather_children(rule, first, count, left, right);
  gather_parents(block, first, count, parents);
  std::fill(to_left, to_left + lefts, Lanes{});
  std::fill(to_right, to_right + rights, Lanes{});
  contract_parent(block, parents, left, right, to_left, to_right);
  double *left_scores[lanes], *right_scores[lanes];
  for (std::size_t n = 0; n < count; ++n) {
    const Children& below = children(first + static_cast<std::uint32_t>(n));
    left_scores[n] = values_.data() + below.left.outside;
    right_scores[n] = values_.data() + below.right.outside;
  }
  scatter(to_left, lefts, count, left_scores);
  if (shapes.rule(rule).right != no_symbol) scatter(to_right, rights, count, right_scores);
}

void LatentTrees::Scores::outside(ThreadPool& pool) {
  for (auto cuts = piece_->levels.rbegin(); cuts != piece_->levels.rend(); ++cuts)
    run_level(*cuts, pool,
              [&](std::uint32_t slot, std::size_t count, Scratch& scratch) { outside_group(slot, count, scratch); });
}

void LatentTrees::Scores::check_numbers(ThreadPool& pool) const {
  std::mutex mutex;
  std::uint32_t smallest = no_child;
  for_each_part(piece_->rule.size(), pool, [&](std::size_t first, std::size_t last) {
    std::uint32_t found = no_child;
    for (auto slot = static_cast<std::uint32_t>(first); slot < last; ++slot) {
      double sum = 0;
      const double *in = inside_of(slot), *out = outside_of(slot);
      for (std::size_t x = 0; x < blocks_.shapes().rows(piece_->rule[slot]); ++x) sum += in[x] * out[x];
      if (!std::isfinite(sum)) found = std::min(found, piece_->tree[slot]);
    }
    const std::lock_guard lock(mutex);
    smallest = std::min(smallest, found);
  });
  if (smallest != no_child)
    throw Error(ErrorCode::not_a_number,
                "an expected count of tree " + std::to_string(smallest + 1) + " is no finite number");
}

void LatentTrees::Scores::count_rows(std::span<const std::pair<std::uint32_t, std::uint32_t>> runs,
                                     std::size_t first_row, std::size_t last_row, std::span<double> counts,
                                     Scratch& scratch) const {
  const std::size_t rule = piece_->rule[runs[0].first];
  const RuleBlocks& shapes = blocks_.shapes();
  double* to = counts.data() + shapes.start(rule);
  if (shapes.rule(rule).left == no_symbol) {
    const double* in = inside_of(runs[0].first);
    for (std::uint32_t slot = runs[0].first; slot < runs[0].second; ++slot) {
      const double* out = outside_of(slot);
      for (std::size_t x = first_row; x < last_row; ++x) to[x] += in[x] * out[x];
    }
    return;
  }
  const ActiveBlock block = blocks_.active(rule);
  const std::size_t rows = last_row - first_row, columns = block.columns(), all_rows = block.rows.size();
  Lanes *left = room(scratch.left, shapes.left(rule)), *right = room(scratch.right, shapes.right(rule));
  Lanes* parents = room(scratch.parents, product_groups * all_rows);
  Lanes* pairs = room(scratch.pairs, product_groups * columns);
  Lanes* sums = room(scratch.sums, rows * columns);
  std::fill(sums, sums + rows * columns, Lanes{});
  std::size_t groups = 0;
  const auto add = [&] {
    add_products(parents + first_row, all_rows, rows, pairs, columns, groups, sums);
    groups = 0;
  };
  for (const auto& [first, last] : runs)
    for_each_group(first, last, [&](std::uint32_t slot, std::size_t count) {
      gather_children(rule, slot, count, left, right);
      multiply_children(block, left, right, pairs + groups * columns);
      gather_parents(block, slot, count, parents + groups * all_rows);
      if (++groups == product_groups) add();
    });
  if (groups > 0) add();
  const std::size_t width = shapes.columns(rule), rights = shapes.right(rule);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      to[block.rows[first_row + i] * width + block.left[j] * rights + block.right[j]] +=
          total(sums[i * columns + j]) * block.weights[j * all_rows + first_row + i];
}

void LatentTrees::Scores::count(std::span<double> counts, ThreadPool& pool) {
  struct Work {
    std::size_t rule_run, first_row, last_row;
  };
  // Many small rules make one piece of work, and the rows of a large one several. The cuts depend on sizes only.
  std::vector<std::vector<Work>> work;
  std::size_t products = work_products;
  const std::span<const std::pair<std::uint32_t, std::uint32_t>> runs(piece_->runs);
  for (std::size_t i = 0; i + 1 < piece_->rule_runs.size(); ++i) {
    const std::size_t rule = piece_->rule[runs[piece_->rule_runs[i]].first];
    const bool lexical = blocks_.shapes().rule(rule).left == no_symbol;
    const std::size_t rows = lexical ? blocks_.shapes().rows(rule) : blocks_.active(rule).rows.size();
    std::size_t instances = 1;
    for (std::size_t run = piece_->rule_runs[i]; run < piece_->rule_runs[i + 1]; ++run)
      instances += runs[run].second - runs[run].first;
    const std::size_t row_products = instances * (lexical ? 1 : blocks_.active(rule).columns());
    const std::size_t some =
        std::max<std::size_t>(1, std::min(rows, work_products / std::max<std::size_t>(row_products, 1)));
    for (std::size_t first = 0; first < rows; first += some) {
      const std::size_t last = std::min(rows, first + some);
      if (products + (last - first) * row_products > work_products) {
        work.emplace_back();
        products = 0;
      }
      work.back().push_back({i, first, last});
      products += (last - first) * row_products;
    }
  }
  pool.map(work.size(), [&](std::size_t index, std::size_t worker) {
    for (const auto& [i, first, last] : work[index])
      count_rows(runs.subspan(piece_->rule_runs[i], piece_->rule_runs[i + 1] - piece_->rule_runs[i]), first, last,
                 counts, scratch_[worker]);
  });
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
  std::unique_ptr<Memory> memory = lender_->take();
  const Blocks blocks(shapes, weights, *memory, pool);
  Scores scores(blocks, pool.size(), *memory);
  for (const Piece& piece : pieces_) {
    interrupt();
    scores.begin(piece);
    scores.inside(pool);
    scores.roots(result);
    scores.outside(pool);
    scores.check_numbers(pool);
    scores.count(counts, pool);
  }
  lender_->give(std::move(memory));
  return result;
}

std::vector<double> LatentTrees::log_probs(std::span<const std::int32_t> substates, std::span<const double> weights,
                                           ThreadPool& pool, const Interrupt& interrupt) const {
  const RuleBlocks shapes(rules_, substates);
  check_weights(shapes, weights, pool);
  std::vector<double> result(trees());
  std::unique_ptr<Memory> memory = lender_->take();
  const Blocks blocks(shapes, weights, *memory, pool);
  Scores scores(blocks, pool.size(), *memory);
  for (const Piece& piece : pieces_) {
    interrupt();
    scores.begin(piece);
    scores.inside(pool);
    scores.roots(result);
  }
  lender_->give(std::move(memory));
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
  std::unique_ptr<Memory> memory = lender_->take();
  const Blocks blocks(shapes, weights, *memory, pool);
  Scores scores(blocks, pool.size(), *memory);
  for (const Piece& piece : pieces_) {
    interrupt();
    scores.begin(piece);
    scores.inside(pool);
    scores.roots(unused);
    scores.outside(pool);
    scores.check_numbers(pool);
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
  }
  lender_->give(std::move(memory));
  return result;
}

}  // namespace treelm
