#include "trees/bracket_segmenter.h"

#include <algorithm>
#include <cstring>

namespace treelm {

namespace {

constexpr std::size_t block = 64;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The end of the bracket open at `depth`, or npos with `depth` and `at` moved to the end of `text`.
std::size_t find_close(std::string_view text, std::size_t& at, std::uint64_t& depth) {
  while (at < text.size()) {
    const std::size_t end = std::min(at + block, text.size());
    if (end - at == block) {
      std::uint8_t opened = 0, closed = 0;
      for (std::size_t i = 0; i < block; ++i) {
        opened = static_cast<std::uint8_t>(opened + (text[at + i] == '('));
        closed = static_cast<std::uint8_t>(closed + (text[at + i] == ')'));
      }
      if (depth > closed) {  // cannot close in this block
        depth = depth + opened - closed;
        at = end;
        continue;
      }
    }
    for (; at < end; ++at) {
      if (text[at] == '(') ++depth;
      if (text[at] == ')' && --depth == 0) return at + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

BracketSegmenter::BracketSegmenter(std::size_t max_tree_bytes)
    : max_tree_bytes_(std::clamp<std::size_t>(max_tree_bytes, 1024, std::size_t{1} << 29)) {}

void BracketSegmenter::feed(std::string_view bytes, Segments& out) {
  buffer_.erase(0, at_);
  scan_ -= std::min(scan_, at_);
  line_begin_ -= at_;
  at_ = 0;
  closing_end_ = 0;
  buffer_.append(bytes);
  run(false, out);
}

void BracketSegmenter::finish(Segments& out) {
  closing_end_ = 0;
  run(true, out);
}

void BracketSegmenter::run(bool final, Segments& out) {
  if (first_bytes_) {
    if (buffer_.size() < 3 && !final) return;
    first_bytes_ = false;
    if (buffer_.starts_with("\xEF\xBB\xBF")) at_ = line_begin_ = 3;
  }
  const std::size_t text_begin = at_;
  const std::size_t offset = out.text.size();
  const std::size_t first_span = out.spans.size();
  bool more = true;
  while (more && at_ < buffer_.size()) {
    if (mode_ == Mode::inside) {
      more = step_inside(final, out);
    } else if (mode_ == Mode::comment) {
      more = step_comment();
    } else if (mode_ == Mode::resuming) {
      more = step_resuming(final);
    } else {
      more = step_outside(final, out);
    }
  }
  if (out.spans.size() == first_span) return;
  const std::size_t text_end = out.spans.back().end;
  out.text.append(buffer_, text_begin, text_end - text_begin);
  for (std::size_t i = first_span; i < out.spans.size(); ++i) {
    out.spans[i].begin += offset - text_begin;
    out.spans[i].end += offset - text_begin;
  }
}

void BracketSegmenter::move_to(std::size_t position) {
  const char* const data = buffer_.data();
  const char* newline = static_cast<const char*>(std::memchr(data + at_, '\n', position - at_));
  while (newline != nullptr) {
    ++line_;
    const auto next = static_cast<std::size_t>(newline - data) + 1;
    line_begin_ = next;
    newline = next < position ? static_cast<const char*>(std::memchr(data + next, '\n', position - next)) : nullptr;
  }
  at_ = position;
}

// Between trees, or skipping rubbish: moves to the next thing that matters.
bool BracketSegmenter::step_outside(bool final, Segments& out) {
  std::size_t here = at_;
  while (here < buffer_.size()) {
    const char c = buffer_[here];
    if (c == '(') {
      move_to(here);
      open_tree();
      return true;
    }
    if (c == '*') {
      move_to(here);
      if (line_start_distance(here) == 0) {
        if (buffer_.size() - here < 3 && !final) return false;
        if (buffer_.compare(here, 3, "*x*") == 0) {
          after_comment_ = mode_;
          mode_ = Mode::comment;
          return true;
        }
      }
    }
    if (!is_space(c) && mode_ == Mode::between) {
      move_to(here);
      // One byte more than an excerpt shows, so that it does not depend on how the input was cut.
      const std::string_view shown = std::string_view(buffer_).substr(here, excerpt_bytes + 1);
      if (!final && shown.size() <= excerpt_bytes && shown.find('\n') == std::string_view::npos) return false;
      report(c == ')' ? ErrorCode::unbalanced : ErrorCode::text_outside, here, true, out);
      mode_ = Mode::skipping;
    }
    ++here;
  }
  move_to(here);
  return false;
}

bool BracketSegmenter::step_comment() {
  const std::size_t newline = buffer_.find('\n', at_);
  if (newline == std::string::npos) {
    move_to(buffer_.size());
    return false;
  }
  move_to(newline + 1);
  mode_ = after_comment_;
  return true;
}

void BracketSegmenter::open_tree() {
  mode_ = Mode::inside;
  depth_ = 0;
  scan_ = at_;
}

bool BracketSegmenter::step_inside(bool final, Segments& out) {
  const bool known = closing_end_ == buffer_.size();  // which brackets of the buffer close in time
  if (!known || closing_[at_]) {
    const std::string_view reach = std::string_view(buffer_).substr(0, std::min(buffer_.size(), at_ + max_tree_bytes_));
    const std::size_t end = find_close(reach, scan_, depth_);
    if (end != std::string::npos) {
      close_tree(end, out);
      return true;
    }
  }
  const std::size_t length = buffer_.size() - at_;
  // Without more input the tree is lost when it has used up its bytes. Looking at every bracket costs
  // a pass over the buffer, so it waits until the buffer holds twice as much and serves many trees.
  if (!final && length <= (known ? max_tree_bytes_ : 2 * max_tree_bytes_)) return false;
  if (!known) compute_closing();
  give_up_tree(out);
  return true;
}

void BracketSegmenter::close_tree(std::size_t end, Segments& out) {
  out.spans.push_back({at_, end, next_ordinal_++, line_, line_start_distance(at_) + 1});
  move_to(end);
  mode_ = Mode::between;
}

// The tree at at_ is never closed: go on at the next line that starts with a bracket.
void BracketSegmenter::give_up_tree(Segments& out) {
  report(ErrorCode::unbalanced, at_, false, out);
  ++next_ordinal_;
  mode_ = Mode::resuming;
}

bool BracketSegmenter::step_resuming(bool final) {
  for (std::size_t newline = buffer_.find('\n', at_); newline != std::string::npos;
       newline = buffer_.find('\n', newline + 1)) {
    if (newline + 1 == buffer_.size() && !final) {
      move_to(newline);
      return false;
    }
    if (newline + 1 < buffer_.size() && buffer_[newline + 1] == '(') {
      move_to(newline + 1);
      mode_ = Mode::between;
      return true;
    }
  }
  move_to(buffer_.size());
  return false;
}

// One pass: which opening brackets find their closing one within max_tree_bytes.
void BracketSegmenter::compute_closing() {
  closing_.assign(buffer_.size(), false);
  closing_end_ = buffer_.size();
  std::vector<std::uint32_t> open;
  for (std::size_t i = at_; i < buffer_.size(); ++i) {
    if (buffer_[i] == '(') {
      open.push_back(static_cast<std::uint32_t>(i));
    } else if (buffer_[i] == ')' && !open.empty()) {
      closing_[open.back()] = i < open.back() + max_tree_bytes_;
      open.pop_back();
    }
  }
}

void BracketSegmenter::report(ErrorCode code, std::size_t at, bool between, Segments& out) const {
  out.problems.add({code, next_ordinal_, line_, line_start_distance(at) + 1, excerpt_at(buffer_, at), between});
}

}  // namespace treelm
