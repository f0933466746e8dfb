// Lists of trees as text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treelm {

// Lists of several sentences as flat arrays; see TreeList for nodes.
struct TreeLists {
  std::span<const std::uint32_t> label, size;  // per node
  std::span<const std::uint64_t> tree_start;   // per tree, and the number of nodes
  std::span<const double> score;               // per tree
  std::span<const std::uint64_t> list_start;   // per sentence, and the number of trees
  std::span<const std::string_view> labels;    // what labels mean
  std::span<const std::string_view> words;     // of all sentences
  std::span<const std::uint64_t> word_start;   // per sentence, and the number of words
};

// Throws Error(argument) unless the arrays fit together, there are so many labels and words, subtrees nest,
// and every tree has as many words as its sentence. The labels and words themselves are not looked at.
void check_tree_lists(const TreeLists& lists, std::size_t labels, std::size_t words);

// One tree per line: with `scores` its score, a tab, and the tree, and a blank line behind every
// sentence; else trees alone, and a blank line for an empty list. The arrays must have been checked.
std::string write_tree_lists(const TreeLists& lists, bool scores);

}  // namespace treelm
