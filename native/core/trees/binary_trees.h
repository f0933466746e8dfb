// Trees of nodes with one or two children as flat arrays, for grammars: what is counted and trained on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/symbols.h"
#include "trees/packed_trees.h"

namespace treelm {

// Symbol 0 is ROOT; the other phrases follow in the order of their names, then the tags. A tag that
// shares its name with a phrase is written X~T.
struct BinaryTrees {
  std::vector<std::string> symbols;
  std::uint32_t phrasal = 0;  // symbols below this are phrases
  std::vector<std::string> words;

  // per node, in preorder; `none` where there is no such thing
  std::vector<std::uint32_t> symbol, left, right, word;
  std::vector<std::uint32_t> start{0};  // first node of every tree, and their number
  std::vector<std::uint32_t> source;    // per tree: its place among all that were added

  std::uint64_t cycles = 0;     // trees left out: a unary chain repeats a symbol
  std::uint64_t bad_roots = 0;  // trees left out: the root is not ROOT, or ROOT stands inside
};

enum class Branching : std::uint8_t { left, right };

// Makes nodes of more than two children nests of binary ones without history: X -> (@X (@X a b) c) d
// to the left, X -> a (@X b (@X c d)) to the right.
class BinaryTreeBuilder {
 public:
  // Trees in which a unary chain repeats a symbol are left out unless `keep_cycles` says otherwise.
  explicit BinaryTreeBuilder(Branching branching, bool keep_cycles = false)
      : branching_(branching), keep_cycles_(keep_cycles) {}
  void add(const PackedTrees& trees);
  BinaryTrees finish();

 private:
  struct Piece {
    std::uint32_t node;         // of the packed tree, or none: an intermediate node
    std::uint32_t label;        // of an intermediate node, in the packed tree
    std::uint32_t first, last;  // children of an intermediate node, in children_
    std::uint32_t parent;       // in made_
    bool is_right, is_only;
  };
  // Ids of one batch's labels and words in the tables of all batches; none until they are met.
  struct BatchIds {
    std::vector<std::uint32_t> phrase, intermediate, tag, word;
  };
  enum class Verdict : std::uint8_t { good, cycle, bad_root };

  std::uint32_t phrase_id(const PackedTrees& trees, std::uint32_t label, bool intermediate);
  std::uint32_t tag_id(const PackedTrees& trees, std::uint32_t label);
  std::uint32_t word_id(const PackedTrees& trees, std::uint32_t word);
  Verdict add_tree(const PackedTrees& trees, std::uint32_t root);
  bool repeats(std::uint32_t node) const;
  void expand(std::uint32_t label, std::uint32_t first, std::uint32_t last, std::uint32_t parent);

  Branching branching_;
  bool keep_cycles_;
  Symbols phrases_, tags_, words_;
  BinaryTrees made_;
  std::uint32_t added_ = 0;
  BatchIds ids_;
  std::vector<Piece> todo_;
  std::vector<std::uint32_t> children_;
  std::vector<std::uint32_t> above_;  // per node made: its parent if it is the only child
  std::string text_;
};

}  // namespace treelm
