// One tree in a form that can be changed in place: children as linked lists, arenas re-used.
#pragma once

#include <cstdint>
#include <vector>

#include "base/symbols.h"

namespace treelm {

// Node 0 is the root. A child's index is always larger than its parent's, so walking the indices
// downwards visits the tree bottom-up; nodes cut out of the tree are marked dead.
struct WorkingTree {
  struct Node {
    std::uint32_t base = none;
    std::uint32_t head = none;         // annotation, an atom
    std::uint32_t parent_mark = none;  // annotation, an atom
    std::uint32_t word = none;         // none for a phrase
    std::uint32_t first = none;        // first child
    std::uint32_t next = none;         // next sibling
    std::uint32_t flags = 0;           // LabelFlag bits of the base
    bool gap = false;
    bool dead = false;
    bool temporal_function = false;  // carried the function tag that marks temporal phrases
    bool punctuation = false;
  };

  std::vector<Node> nodes;

  void clear() { nodes.clear(); }
  bool is_phrase(std::uint32_t node) const { return nodes[node].word == none; }
  bool has_one_child(std::uint32_t node) const {
    return nodes[node].first != none && nodes[nodes[node].first].next == none;
  }
};

}  // namespace treelm
