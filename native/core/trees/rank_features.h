// What tells trees of one sentence apart: features after Charniak and Johnson (2005), as hashes of their names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trees/packed_trees.h"

namespace treelm {

// Finds the features of one tree after the other of a batch. Names are those that rerank_features writes in Python,
// without the ones that all trees of a sentence share because they are about words alone.
class RankFeatures {
 public:
  // `heads` has the place of the head among the children of every phrase, as find_heads gives it.
  RankFeatures(const PackedTrees& trees, std::span<const std::uint32_t> heads);

  // Replaces `found` by the hash of every feature of a tree, each as often as it occurs.
  void find(std::size_t tree, std::vector<std::uint64_t>& found);

  // FNV-1a of 64 bits.
  static constexpr std::uint64_t hash(std::string_view text, std::uint64_t before = 0xCBF29CE484222325ull) {
    for (const char each : text) before = (before ^ static_cast<unsigned char>(each)) * 0x100000001B3ull;
    return before;
  }

 private:
  struct Node {
    std::string_view label, word;
    bool is_word = false;
    std::uint32_t parent = none, first_child = 0, child_count = 0, start = 0, end = 0;
    std::uint32_t head = 0;        // the word that is its lexical head, as a node
    std::uint32_t head_child = 0;  // its place among the children
  };

  void load(std::size_t tree);
  std::span<const std::uint32_t> children(const Node& node) const {
    return std::span(children_).subspan(node.first_child, node.child_count);
  }
  std::string_view above(const Node& node) const { return node.parent == none ? "^" : nodes_[node.parent].label; }
  // Adds a feature: its parts with blanks between them.
  template <class... Parts>
  void add(Parts... parts);
  void add_size(const Node& node);
  void add_rule(const Node& node);
  void add_dependencies(const Node& node);
  void add_edges(const Node& node);
  void add_coordination(const Node& node);
  void add_word(const Node& node);
  void add_right_branch();
  void add_tags();
  void add_joint(std::uint32_t left, std::uint32_t right);
  void add_chain(std::uint32_t leaf);
  bool alike(std::uint32_t one, std::uint32_t two, int depth) const;

  const PackedTrees& trees_;
  std::span<const std::uint32_t> heads_;
  std::vector<std::string> labels_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> children_, leaves_, ends_, filled_;
  std::vector<std::string_view> words_, tags_;  // with marks at both ends
  std::string text_;
  std::vector<std::uint64_t>* found_ = nullptr;
};

}  // namespace treelm
