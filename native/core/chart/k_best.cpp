#include "chart/k_best.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/interrupt.h"

namespace treelm {

namespace {

// So many edges, candidates or trees of parts, and a list ends: a forest of subcategories can be huge.
constexpr std::size_t memory_limit = std::size_t{1} << 24;

constexpr std::uint64_t sequence_base = 0x9E3779B97F4A7C15ull;
constexpr std::int32_t not_computed = std::numeric_limits<std::int32_t>::max();

std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 31;
  x *= 0x7FB5D329728EA185ull;
  x ^= x >> 27;
  x *= 0x81DADEF4BC2DD44Dull;
  return x ^ (x >> 33);
}

template <class Candidate>
bool is_worse(const Candidate& a, const Candidate& b) {
  if (!(a.score == b.score)) return a.score < b.score;
  if (a.edge != b.edge) return a.edge > b.edge;
  return a.left != b.left ? a.left > b.left : a.right > b.right;
}

}  // namespace

void check_visible_labels(const VisibleLabels& visible, std::uint32_t symbols, std::uint32_t phrasal) {
  const auto& start = visible.start;
  bool fits = start.size() == std::size_t{symbols} + 1 && start.front() == 0 && start.back() == visible.label.size();
  for (std::size_t i = 0; fits && i < symbols; ++i) fits = start[i] + (i >= phrasal ? 1 : 0) <= start[i + 1];
  if (!fits) throw Error(ErrorCode::argument, "the visible labels do not fit the symbols of the grammar");
}

template <class T>
void KBestFinder::grow(std::vector<T>& memory, Piece& piece, std::uint32_t size) {
  if (size <= piece.room) return;
  const std::uint32_t room = std::max(size, std::max(2 * piece.room, 4u));
  const std::size_t first = memory.size();
  if (first == std::size_t{piece.first} + piece.room) {  // nothing lies behind it
    memory.resize(piece.first + room);
  } else {
    memory.resize(first + room);
    std::copy_n(memory.begin() + piece.first, piece.size, memory.begin() + static_cast<std::ptrdiff_t>(first));
    piece.first = static_cast<std::uint32_t>(first);
  }
  piece.room = room;
  if (memory.size() > memory_limit) is_limited_ = true;
}

std::uint64_t KBestFinder::power(std::uint32_t exponent) {
  while (powers_.size() <= exponent) powers_.push_back(powers_.empty() ? 1 : powers_.back() * sequence_base);
  return powers_[exponent];
}

KBestFinder::Slot& KBestFinder::slot_at(std::uint32_t slot) {
  std::uint32_t& index = slot_index_[slot];
  if (index != none) return slots_[index];
  index = static_cast<std::uint32_t>(slots_.size());
  Slot made;
  made.first_unary = static_cast<std::uint32_t>(edges_.size());
  if (!source_->is_leaf(slot)) source_->list_unary(slot, edges_);
  made.unary = static_cast<std::uint32_t>(edges_.size()) - made.first_unary;
  if (made.unary > 0) made.layers = limits_.max_unary + (slot == source_->root() ? 1 : 0);
  made.first_bound = static_cast<std::uint32_t>(bounds_.size());
  bounds_.resize(bounds_.size() + made.layers + 1, {0, not_computed});
  bounds_[made.first_bound] = source_->highest_without_unary(slot);
  made.first_node = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({slot, 0, Kind::plain, {}, {}, {}, {}, {}, {}});
  for (std::uint32_t layer = 1; layer <= made.layers; ++layer)
    nodes_.push_back({slot, layer, Kind::chain, {}, {}, {}, {}, {}, {}});
  if (made.layers > 0) nodes_.push_back({slot, 0, Kind::any, {}, {}, {}, {}, {}, {}});
  slots_.push_back(made);
  return slots_.back();
}

std::uint32_t KBestFinder::node_of(std::uint32_t slot) {
  const Slot& at = slot_at(slot);
  return at.layers == 0 ? at.first_node : at.first_node + at.layers + 1;
}

std::uint32_t KBestFinder::chain_node(std::uint32_t slot, std::uint32_t layer) {
  const Slot& at = slot_at(slot);
  return layer <= at.layers ? at.first_node + layer : none;
}

// At least the score of any tree with so many unary rules on top; repeated symbols are not looked at.
LongScore KBestFinder::chain_bound(std::uint32_t slot, std::uint32_t layer) {
  const Slot at = slot_at(slot);
  if (layer > at.layers) return {};
  LongScore bound = bounds_[at.first_bound + layer];
  if (bound.exponent != not_computed) return bound;
  bound = {};
  for (std::uint32_t e = at.first_unary; e < at.first_unary + at.unary; ++e) {
    const ForestEdge edge = edges_[e];
    const LongScore below = chain_bound(edge.left, layer - 1);
    if (below.value == 0) continue;
    const LongScore score = extended(edge.weight, below);
    if (bound < score) bound = score;
  }
  bounds_[at.first_bound + layer] = bound;
  return bound;
}

void KBestFinder::push(std::uint32_t node, const Candidate& candidate) {
  Piece& heap = nodes_[node].heap;
  grow(candidates_, heap, heap.size + 1);
  Candidate* first = candidates_.data() + heap.first;
  first[heap.size++] = candidate;
  std::push_heap(first, first + heap.size, is_worse<Candidate>);
}

KBestFinder::Candidate KBestFinder::pop(std::uint32_t node) {
  Piece& heap = nodes_[node].heap;
  Candidate* first = candidates_.data() + heap.first;
  std::pop_heap(first, first + heap.size, is_worse<Candidate>);
  return first[--heap.size];
}

void KBestFinder::append(std::uint32_t node, const Derivation& derivation) {
  Piece& list = nodes_[node].list;
  grow(derivations_, list, list.size + 1);
  derivations_[list.first + list.size++] = derivation;
}

// Lists the ways to make a node with bounds of their scores, which need no look at the parts.
void KBestFinder::open(std::uint32_t node) {
  nodes_[node].is_open = true;
  const std::uint32_t slot = nodes_[node].slot, layer = nodes_[node].layer;
  const auto first_edge = static_cast<std::uint32_t>(edges_.size());
  Piece heap;
  const auto add = [&](const LongScore& score, std::uint32_t edge) {
    if (score.value == 0) return;
    grow(candidates_, heap, heap.size + 1);
    candidates_[heap.first + heap.size++] = {score, edge, unchecked, 0};
  };
  switch (nodes_[node].kind) {
    case Kind::plain:
      if (source_->is_leaf(slot)) {
        Derivation leaf{source_->highest(slot), none, 0, 0, 0, 0, 0, none};
        show(slot, leaf);
        append(node, leaf);
        return;
      }
      source_->list_binary(slot, edges_);
      if (edges_.size() > memory_limit) is_limited_ = true;
      heap.first = static_cast<std::uint32_t>(candidates_.size());
      grow(candidates_, heap, static_cast<std::uint32_t>(edges_.size()) - first_edge);
      for (std::uint32_t e = first_edge; e < edges_.size(); ++e) {
        const LongScore left = source_->highest(edges_[e].left), right = source_->highest(edges_[e].right);
        if (left.value != 0 && right.value != 0) add(joined(edges_[e].weight, left, right), e);
      }
      break;
    case Kind::chain: {
      const Slot at = slot_at(slot);
      for (std::uint32_t e = at.first_unary; e < at.first_unary + at.unary; ++e) {
        const LongScore below = chain_bound(edges_[e].left, layer - 1);
        if (below.value != 0) add(extended(edges_[e].weight, below), e);
      }
      break;
    }
    case Kind::any: {
      const std::uint32_t layers = slot_at(slot).layers;
      for (std::uint32_t t = 0; t <= layers; ++t) add(chain_bound(slot, t), t);
      break;
    }
  }
  Candidate* first = candidates_.data() + heap.first;
  std::make_heap(first, first + heap.size, is_worse<Candidate>);
  nodes_[node].heap = heap;
}

std::pair<std::uint32_t, std::uint32_t> KBestFinder::tails(std::uint32_t node, std::uint32_t edge) {
  const std::uint32_t slot = nodes_[node].slot, layer = nodes_[node].layer;
  switch (nodes_[node].kind) {
    case Kind::plain: {
      const ForestEdge held = edges_[edge];
      const std::uint32_t left = node_of(held.left);
      return {left, node_of(held.right)};
    }
    case Kind::chain: return {chain_node(edges_[edge].left, layer - 1), none};
    case Kind::any: break;
  }
  return {chain_node(slot, edge), none};
}

KBestFinder::Part KBestFinder::part(std::uint32_t tail, std::uint32_t rank) {
  const Node& at = nodes_[tail];
  if (rank < at.list.size) return Part::there;
  if (at.is_done) return Part::missing;
  waiting_.push_back(tail);
  return Part::awaited;
}

LongScore KBestFinder::score_of(std::uint32_t node, const Candidate& candidate) {
  const auto [left, right] = tails(node, candidate.edge);
  const LongScore one = tree_of(nodes_[left], candidate.left).score;
  if (nodes_[node].kind == Kind::any) return one;
  const double weight = edges_[candidate.edge].weight;
  if (right == none) return extended(weight, one);
  return joined(weight, one, tree_of(nodes_[right], candidate.right).score);
}

// Makes candidates of what comes after the last one; every pair of ranks has one predecessor, so none
// comes twice. False if a part is awaited.
bool KBestFinder::add_successors(std::uint32_t node) {
  constexpr std::uint8_t next_left = 1, next_right = 2;
  const auto [left, right] = tails(node, nodes_[node].last.edge);
  for (const std::uint8_t which : {next_left, next_right}) {
    if (!(nodes_[node].pending & which)) continue;
    Candidate next = nodes_[node].last;
    ++(which == next_left ? next.left : next.right);
    const Part found = which == next_left ? part(left, next.left) : part(right, next.right);
    if (found == Part::awaited) return false;
    nodes_[node].pending = static_cast<std::uint8_t>(nodes_[node].pending & ~which);
    if (found == Part::missing) continue;
    next.score = score_of(node, next);
    push(node, next);
  }
  return true;
}

// Whether a chain of unary rules comes back to the symbol on its top.
bool KBestFinder::repeats_symbol(std::uint32_t node, const Candidate& candidate) {
  const std::uint32_t symbol = source_->symbol(nodes_[node].slot);
  std::uint32_t edge = candidate.edge, rank = candidate.left;
  while (true) {
    const std::uint32_t tail = tails(node, edge).first;
    if (source_->symbol(nodes_[tail].slot) == symbol) return true;
    if (nodes_[tail].kind == Kind::plain) return false;
    const Derivation& below = tree_of(nodes_[tail], rank);
    node = tail;
    edge = below.edge;
    rank = below.left;
  }
}

// Puts the visible nodes of a slot on top of those below.
void KBestFinder::show(std::uint32_t slot, Derivation& tree) const {
  const auto labels = visible_->of(source_->symbol(slot));
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    tree.hash = mixed(tree.hash ^ mixed((std::uint64_t{*label} + 1) << 32 | tree.length));
    tree.length = 1;
    ++tree.nodes;
  }
}

KBestFinder::Derivation KBestFinder::derive(std::uint32_t node, const Candidate& candidate) {
  const auto [left, right] = tails(node, candidate.edge);
  const Derivation& one = tree_of(nodes_[left], candidate.left);
  Derivation made{candidate.score, candidate.edge, candidate.left, candidate.right,
                  one.length,      one.nodes,      one.hash,       none};
  if (nodes_[node].kind == Kind::any) return made;
  if (right != none) {
    const Derivation& two = tree_of(nodes_[right], candidate.right);
    made.hash = made.hash * power(two.length) + two.hash;
    made.length += two.length;
    made.nodes += two.nodes;
  }
  show(nodes_[node].slot, made);
  return made;
}

void KBestFinder::grow_known() {
  std::vector<Entry> old(std::max<std::size_t>(1024, known_.size() * 2), {0, none, 0});
  old.swap(known_);
  for (const Entry& entry : old) {
    if (entry.node == none) continue;
    std::size_t at = mixed(entry.hash + entry.node) & (known_.size() - 1);
    while (known_[at].node != none) at = (at + 1) & (known_.size() - 1);
    known_[at] = entry;
  }
}

// Whether the last tree of a node is none of those before, which it then joins.
bool KBestFinder::is_new(std::uint32_t node) {
  if (known_count_ * 2 >= known_.size()) grow_known();
  const std::uint32_t rank = nodes_[node].list.size - 1;
  const std::uint64_t hash = tree_of(nodes_[node], rank).hash;
  std::size_t at = mixed(hash + node) & (known_.size() - 1);
  for (; known_[at].node != none; at = (at + 1) & (known_.size() - 1))
    if (known_[at].node == node && known_[at].hash == hash && same_tree(node, known_[at].rank, rank)) return false;
  known_[at] = {hash, node, rank};
  ++known_count_;
  return true;
}

bool KBestFinder::same_tree(std::uint32_t node, std::uint32_t one, std::uint32_t other) {
  for (const int i : {0, 1}) {
    label_[i].clear();
    size_[i].clear();
    write(node, i == 0 ? one : other, false, label_[i], size_[i]);
  }
  return label_[0] == label_[1] && size_[0] == size_[1];
}

// Finds one more tree of a node, or that there is none; false if that waits for a part.
bool KBestFinder::advance(std::uint32_t node) {
  if (!nodes_[node].is_open) {
    open(node);
    if (nodes_[node].list.size > 0) return true;  // a leaf
  }
  const bool is_root = waiting_.size() == 1;
  while (!is_limited_) {
    poll_interrupt();
    if (nodes_[node].pending && !add_successors(node)) return false;
    if (nodes_[node].heap.size == 0) {
      nodes_[node].is_done = true;
      return true;
    }
    Candidate candidate = candidates_[nodes_[node].heap.first];
    if (candidate.left == unchecked) {
      const auto [left, right] = tails(node, candidate.edge);
      const Part first = part(left, 0);
      if (first == Part::awaited) return false;
      const Part second = right == none || first == Part::missing ? first : part(right, 0);
      if (second == Part::awaited) return false;
      pop(node);
      if (second == Part::missing) continue;
      const LongScore bound = candidate.score;
      candidate.left = 0;
      candidate.score = score_of(node, candidate);
      if (candidate.score < bound) {
        push(node, candidate);
        continue;
      }
    } else {
      pop(node);
    }
    if (is_root && !count_step()) return true;
    nodes_[node].last = candidate;
    const Kind kind = nodes_[node].kind;
    nodes_[node].pending = kind == Kind::plain ? (candidate.right == 0 ? 3 : 2) : 1;
    if (kind != Kind::chain || !repeats_symbol(node, candidate)) {
      append(node, derive(node, candidate));
      if (kind == Kind::chain || is_new(node)) return true;
      --nodes_[node].list.size;
    }
    if (!is_root && !count_step()) return true;
  }
  return true;
}

// Adds the visible nodes of a tree; what the output has already is copied.
void KBestFinder::write(std::uint32_t node, std::uint32_t rank, bool is_output, std::vector<std::uint32_t>& label,
                        std::vector<std::uint32_t>& size) {
  unwritten_.assign(1, {node, rank});
  while (!unwritten_.empty()) {
    const auto [at, place] = unwritten_.back();
    unwritten_.pop_back();
    Derivation& tree = derivations_[nodes_[at].list.first + place];
    if (is_output && tree.written != none) {
      const std::size_t end = label.size();
      label.resize(end + tree.nodes);
      size.resize(end + tree.nodes);
      std::copy_n(label.begin() + tree.written, tree.nodes, label.begin() + static_cast<std::ptrdiff_t>(end));
      std::copy_n(size.begin() + tree.written, tree.nodes, size.begin() + static_cast<std::ptrdiff_t>(end));
      continue;
    }
    if (is_output) tree.written = static_cast<std::uint32_t>(label.size());
    if (nodes_[at].kind != Kind::any) {
      std::uint32_t nodes = tree.nodes;
      for (const std::uint32_t shown : visible_->of(source_->symbol(nodes_[at].slot))) {
        label.push_back(shown);
        size.push_back(nodes--);
      }
    }
    if (tree.edge == none) continue;
    const auto [left, right] = tails(at, tree.edge);
    if (right != none) unwritten_.emplace_back(right, tree.right);
    unwritten_.emplace_back(left, tree.left);
  }
}

void KBestFinder::find(ForestSource& source, const VisibleLabels& visible, const KBestLimits& limits, TreeList& out) {
  source_ = &source;
  visible_ = &visible;
  limits_ = limits;
  steps_ = 0;
  is_limited_ = false;
  slot_index_.assign(source.slots(), none);
  slots_.clear();
  nodes_.clear();
  edges_.clear();
  derivations_.clear();
  candidates_.clear();
  bounds_.clear();
  std::fill(known_.begin(), known_.end(), Entry{0, none, 0});
  known_count_ = 0;
  out.clear();
  if (source.root() == none || source.highest(source.root()).value == 0) return;
  const std::uint32_t top = node_of(source.root());
  while (nodes_[top].list.size < limits.trees && !nodes_[top].is_done && !is_limited_) {
    waiting_.assign(1, top);
    while (!waiting_.empty() && !is_limited_)
      if (advance(waiting_.back())) waiting_.pop_back();
  }
  out.is_limited = is_limited_;
  for (std::uint32_t rank = 0; rank < nodes_[top].list.size; ++rank) {
    write(top, rank, true, out.label, out.size);
    // Places of nodes are 32-bit numbers.
    if (out.label.size() >= none) {
      out.label.resize(out.start.back());
      out.size.resize(out.start.back());
      out.is_limited = true;
      break;
    }
    out.start.push_back(static_cast<std::uint32_t>(out.label.size()));
    const LongScore score = tree_of(nodes_[top], rank).score;
    out.score.push_back(limits.is_sum ? score.value : score.log());
  }
}

}  // namespace treelm
