// The k best distinct trees of a packed forest, found lazily (Huang and Chiang 2005, algorithm 3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/symbols.h"
#include "chart/long_score.h"

namespace treelm {

// A way to make a slot: of two others by a binary rule, or of one by a unary rule.
struct ForestEdge {
  std::uint32_t left, right;  // slots; right is none for a unary rule
  double weight;
};

// What trees are found in. A slot is a symbol on a span, or one subcategory of it.
class ForestSource {
 public:
  virtual ~ForestSource() = default;
  virtual std::uint32_t slots() const = 0;
  // The slot of the whole sentence, or none.
  virtual std::uint32_t root() const = 0;
  virtual std::uint32_t symbol(std::uint32_t slot) const = 0;
  virtual bool is_leaf(std::uint32_t slot) const = 0;
  // No tree of a slot has a higher score than the first, none without a unary rule on top than the
  // second; that of a leaf is its own.
  virtual LongScore highest(std::uint32_t slot) const = 0;
  virtual LongScore highest_without_unary(std::uint32_t slot) const = 0;
  // Adds the ways to make a slot; of those with equal scores the first comes first in the list.
  virtual void list_binary(std::uint32_t slot, std::vector<ForestEdge>& out) = 0;
  virtual void list_unary(std::uint32_t slot, std::vector<ForestEdge>& out) = 0;
};

// What trees show of every symbol: nothing, a node, or several nodes one above the other.
struct VisibleLabels {
  std::vector<std::uint32_t> start;  // per symbol, and the number of labels
  std::vector<std::uint32_t> label;  // from the top

  std::span<const std::uint32_t> of(std::uint32_t symbol) const {
    return std::span(label).subspan(start[symbol], start[symbol + 1] - start[symbol]);
  }
};
// Throws Error(argument) unless there are labels for so many symbols, and at least one for every tag.
void check_visible_labels(const VisibleLabels& visible, std::uint32_t symbols, std::uint32_t phrasal);

struct KBestLimits {
  std::uint32_t trees = 1;
  std::uint32_t max_unary = 4;  // longest chain of unary rules, that of the root not counted
  // After so many steps the list ends: a tree of the sentence found, a tree of any part found again, or
  // a chain that goes round.
  std::uint64_t pops = 20;
  bool is_sum = false;  // scores are added up, not multiplied
};

// Trees in preorder: of every node its label and the number of nodes of its subtree, itself included;
// a subtree of one node is a word with its tag.
struct TreeList {
  std::vector<std::uint32_t> label, size;
  std::vector<std::uint32_t> start{0};  // per tree, and the number of nodes
  std::vector<double> score;            // per tree: natural logarithm of the product, or the sum
  bool is_limited = false;              // ended by the number of steps or by memory, not by want of trees

  void clear() {
    label.clear(), size.clear(), score.clear();
    start.assign(1, 0);
    is_limited = false;
  }
  std::size_t trees() const { return score.size(); }
};

// Scores never increase along a list. Of trees with the same score, the one whose topmost different
// choice comes first in the source's order is first: fewer unary rules, then the earlier rule and
// split, then the earlier left, then right part.
//
// All memory is kept for the next sentence; one thread uses it.
class KBestFinder {
 public:
  void find(ForestSource& source, const VisibleLabels& visible, const KBestLimits& limits, TreeList& out);

  // What was found, for those who go through derivations again: a tree of a node is its edge and the
  // ranks of the parts.
  struct Derivation {
    LongScore score;
    std::uint32_t edge;
    std::uint32_t left, right;  // ranks
    std::uint32_t length;       // visible nodes side by side: one, or those below a hidden node
    std::uint32_t nodes;        // visible nodes of all subtrees
    std::uint64_t hash;         // of the visible nodes
    std::uint32_t written;      // where the output has them first, or none
  };

 private:
  struct Candidate {
    LongScore score;
    std::uint32_t edge;
    std::uint32_t left, right;  // ranks; left is `unchecked` where the score is only a bound
  };
  static constexpr std::uint32_t unchecked = none;

  // Growing pieces of shared memory.
  struct Piece {
    std::uint32_t first = 0, size = 0, room = 0;
  };
  enum class Kind : std::uint8_t { plain, chain, any };  // no unary rule on top; exactly so many; either
  struct Node {
    std::uint32_t slot;
    std::uint32_t layer;  // unary rules on top, for a chain
    Kind kind;
    bool is_open = false, is_done = false;
    std::uint8_t pending = 0;  // successors of `last` that are not yet candidates
    Piece list, heap;
    Candidate last{};
  };
  struct Slot {
    std::uint32_t first_node = none;  // plain, then chains, then any; or just the plain one
    std::uint32_t layers = 0;         // longest chain
    std::uint32_t first_unary = 0, unary = 0;
    std::uint32_t first_bound = 0;  // in bounds_, one for each length of a chain
  };

  std::uint32_t node_of(std::uint32_t slot);  // any way to make it
  std::uint32_t plain_node(std::uint32_t slot) { return slot_at(slot).first_node; }
  std::uint32_t chain_node(std::uint32_t slot, std::uint32_t layer);
  Slot& slot_at(std::uint32_t slot);
  LongScore chain_bound(std::uint32_t slot, std::uint32_t layer);
  void open(std::uint32_t node);
  bool advance(std::uint32_t node);
  bool add_successors(std::uint32_t node);
  // Whether a part exists; if that is not known yet, it waits to be found.
  enum class Part : std::uint8_t { there, missing, awaited };
  Part part(std::uint32_t tail, std::uint32_t rank);
  // The parts of an edge of a node; the second is none unless the rule is binary.
  std::pair<std::uint32_t, std::uint32_t> tails(std::uint32_t node, std::uint32_t edge);
  LongScore score_of(std::uint32_t node, const Candidate& candidate);
  bool repeats_symbol(std::uint32_t node, const Candidate& candidate);
  void show(std::uint32_t slot, Derivation& tree) const;
  Derivation derive(std::uint32_t node, const Candidate& candidate);
  bool is_new(std::uint32_t node);
  bool same_tree(std::uint32_t node, std::uint32_t one, std::uint32_t other);
  void grow_known();
  void push(std::uint32_t node, const Candidate& candidate);
  Candidate pop(std::uint32_t node);
  void append(std::uint32_t node, const Derivation& derivation);
  void write(std::uint32_t node, std::uint32_t rank, bool is_output, std::vector<std::uint32_t>& label,
             std::vector<std::uint32_t>& size);
  template <class T>
  void grow(std::vector<T>& memory, Piece& piece, std::uint32_t size);
  const Derivation& tree_of(const Node& node, std::uint32_t rank) const { return derivations_[node.list.first + rank]; }
  LongScore joined(double weight, const LongScore& a, const LongScore& b) const {
    if (limits_.is_sum) return {weight + a.value + b.value, 0};
    return normalized(weight * (a.value * b.value), a.exponent + b.exponent);
  }
  LongScore extended(double weight, const LongScore& a) const {
    if (limits_.is_sum) return {weight + a.value, 0};
    return normalized(weight * a.value, a.exponent);
  }
  std::uint64_t power(std::uint32_t exponent);
  bool count_step() {
    if (steps_ >= limits_.pops) is_limited_ = true;
    return ++steps_ <= limits_.pops;
  }

  ForestSource* source_ = nullptr;
  const VisibleLabels* visible_ = nullptr;
  KBestLimits limits_;
  std::uint64_t steps_ = 0;
  bool is_limited_ = false;
  std::vector<std::uint32_t> slot_index_;  // per slot of the source: its place in slots_, or none
  std::vector<Slot> slots_;
  std::vector<Node> nodes_;
  std::vector<ForestEdge> edges_;
  std::vector<Derivation> derivations_;
  std::vector<Candidate> candidates_;
  std::vector<std::uint32_t> waiting_;
  std::vector<std::uint64_t> powers_;
  std::vector<LongScore> bounds_;
  // Which trees a node has, by hash.
  struct Entry {
    std::uint64_t hash;
    std::uint32_t node, rank;
  };
  std::vector<Entry> known_;
  std::size_t known_count_ = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> unwritten_;
  std::vector<std::uint32_t> label_[2], size_[2];
};

}  // namespace treelm
