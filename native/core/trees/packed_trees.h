// Many trees as flat arrays: nodes in preorder, a preterminal and its word are one node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/symbols.h"

namespace treelm {

class TextEncoder;

// A frozen list of strings in one piece of memory.
class StringTable {
 public:
  StringTable() : start_{0} {}
  explicit StringTable(const Symbols& symbols);
  void push_back(std::string_view text);
  std::string_view operator[](std::size_t i) const { return {bytes_.data() + start_[i], start_[i + 1] - start_[i]}; }
  std::size_t size() const { return start_.size() - 1; }

 private:
  std::string bytes_;
  std::vector<std::uint32_t> start_;
};

// The four parts of a label as ids of atoms; `none` where a part is absent.
struct LabelParts {
  std::uint32_t base = none;
  std::uint32_t head = none;
  std::uint32_t parent = none;
  std::uint32_t gap = 0;

  friend bool operator==(const LabelParts&, const LabelParts&) = default;
};

// Labels <-> dense ids in order of first occurrence.
class LabelTable {
 public:
  LabelTable() : slots_(256, none) {}
  std::uint32_t intern(const LabelParts& parts);
  const std::vector<LabelParts>& parts() const { return parts_; }
  void clear();

 private:
  std::vector<LabelParts> parts_;
  std::vector<std::uint32_t> slots_;
};

// Something wrong with one tree, or between trees.
struct TreeProblem {
  ErrorCode code;
  std::uint64_t tree = 0;  // ordinal in the file, from 1
  std::uint64_t line = 0;
  std::uint64_t column = 0;
  std::string excerpt;   // a few bytes of text at the place
  bool between = false;  // between trees: no tree was lost to it
};

// What is wrong in one batch: the first problems in full, the rest counted, so that a file of nothing
// but problems needs no more memory than a good one.
class Problems {
 public:
  static constexpr std::size_t kept = 2048;

  void add(TreeProblem problem);
  void sort_by_place();
  bool empty() const { return count_ == 0; }
  std::uint64_t count() const { return count_; }
  std::uint64_t between() const { return between_; }  // of them, those that cost no tree
  std::size_t size() const { return first_.size(); }
  const TreeProblem& operator[](std::size_t i) const { return first_[i]; }
  auto begin() const { return first_.begin(); }
  auto end() const { return first_.end(); }

 private:
  std::vector<TreeProblem> first_;
  std::uint64_t count_ = 0, between_ = 0;
};

struct PackedTrees {
  StringTable atoms;  // bases and annotations
  StringTable words;
  std::vector<LabelParts> labels;

  // per node
  std::vector<std::uint32_t> label;  // index into labels
  std::vector<std::uint32_t> size;   // nodes of the subtree, itself included
  std::vector<std::uint32_t> word;   // index into words, or none for a phrase

  // per tree
  std::vector<std::uint32_t> start{0};  // first node; one more entry than trees
  std::vector<std::uint64_t> ordinal;   // position in the file, from 1
  std::vector<std::uint64_t> line;      // line of the opening bracket

  Problems problems;
  std::uint64_t tokens = 0;       // words of all trees
  std::uint64_t dropped = 0;      // trees that held nothing but empty elements
  std::uint64_t many_rooted = 0;  // trees with several nodes below an unlabelled root

  std::size_t tree_count() const { return start.size() - 1; }
};

inline constexpr std::size_t excerpt_bytes = 40;
// The text from `at` to the end of its line, at most excerpt_bytes of it, whole characters only.
std::string excerpt_at(std::string_view text, std::size_t at);

// The written form `base [-head] [-GAP] [^parent]`; reserved characters of `head` are escaped.
void render_label(const StringTable& atoms, const LabelParts& parts, std::string& out);

// The same from the parts as text; a part that is not there is null.
void render_label(std::string_view base, const std::string_view* head, bool gap, const std::string_view* parent,
                  std::string& out);

// Ends a tag that shares its name with a phrase.
inline constexpr std::string_view tag_mark = "~T";

// One tree per line, single spaces, a newline behind each.
std::string write_brackets(const PackedTrees& trees);

// Hands every tree on as a sentence of its words.
void encode_words(const PackedTrees& trees, TextEncoder& encoder);

// Throws Error(argument) unless every index of `trees` is in range and the sizes nest.
void check_packed(const PackedTrees& trees);

}  // namespace treelm
