// Cuts a stream of bytes into the spans of its top-level brackets, without looking inside.
//
// This is the only sequential part of reading. It decides where trees begin and end, what lies
// outside them, and how reading goes on after an unbalanced tree; each span can then be parsed on
// its own by any thread. Linear time on any input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trees/packed_trees.h"

namespace treelm {

struct TreeSpan {
  std::size_t begin = 0, end = 0;  // bytes of Segments::text
  std::uint64_t ordinal = 0;       // from 1
  std::uint64_t line = 0, column = 0;
};

// Some complete trees with the text that holds them, and what was wrong between them.
struct Segments {
  std::string text;
  std::vector<TreeSpan> spans;
  Problems problems;
};

class BracketSegmenter {
 public:
  // A tree longer than `max_tree_bytes` counts as never closed, so that memory stays bounded (by a
  // few times as much).
  explicit BracketSegmenter(std::size_t max_tree_bytes = std::size_t{32} << 20);

  // Takes more input and appends what is complete to `out`.
  void feed(std::string_view bytes, Segments& out);
  // Says that there is no more input.
  void finish(Segments& out);
  // Bytes held back because their tree is not complete.
  std::size_t pending_bytes() const { return buffer_.size() - at_; }

 private:
  enum class Mode : std::uint8_t { between, skipping, comment, inside, resuming };

  void run(bool final, Segments& out);
  bool step_outside(bool final, Segments& out);
  bool step_comment();
  bool step_inside(bool final, Segments& out);
  bool step_resuming(bool final);
  void open_tree();
  void close_tree(std::size_t end, Segments& out);
  void give_up_tree(Segments& out);
  void compute_closing();
  void report(ErrorCode code, std::size_t at, bool between, Segments& out) const;
  void move_to(std::size_t position);
  std::size_t line_start_distance(std::size_t position) const { return position - line_begin_; }

  std::size_t max_tree_bytes_;
  std::string buffer_;
  std::size_t at_ = 0;          // everything before is done with
  std::size_t scan_ = 0;        // inside a tree: brackets before are counted
  std::size_t line_begin_ = 0;  // offset of the current line; may wrap below 0, only used in differences
  std::uint64_t line_ = 1;
  std::uint64_t depth_ = 0;
  std::uint64_t next_ordinal_ = 1;
  Mode mode_ = Mode::between;
  Mode after_comment_ = Mode::between;
  bool first_bytes_ = true;

  // For recovery: which opening brackets of buffer_[0, closing_end_) are closed within max_tree_bytes.
  std::vector<bool> closing_;
  std::size_t closing_end_ = 0;
};

}  // namespace treelm
