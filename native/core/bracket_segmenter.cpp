#include "bracket_segmenter.h"

#include <algorithm>
#include <cstring>

namespace treelm {

namespace {

constexpr std::size_t excerpt_bytes = 40;
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
    : max_tree_bytes_(std::clamp<std::size_t>(max_tree_bytes, 1024, std::size_t{1} << 30)) {}

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
      report(c == ')' ? ErrorCode::unbalanced : ErrorCode::text_outside, here, out);
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
  // After a recovery the fate of every bracket in the buffer is known: no second look at the end.
  const bool known = closing_end_ == buffer_.size();
  if (!known || closing_[at_]) {
    const std::size_t end = find_close(buffer_, scan_, depth_);
    if (end != std::string::npos) {
      close_tree(end, out);
      return true;
    }
  }
  const std::size_t length = buffer_.size() - at_;
  if (!final && length <= (known ? max_tree_bytes_ / 2 : max_tree_bytes_)) return false;
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
  report(ErrorCode::unbalanced, at_, out);
  ++next_ordinal_;
  mode_ = Mode::between;
  std::size_t newline = buffer_.find('\n', at_);
  while (newline != std::string::npos && newline + 1 < buffer_.size() && buffer_[newline + 1] != '(')
    newline = buffer_.find('\n', newline + 1);
  move_to(newline == std::string::npos ? buffer_.size() : newline + 1);
}

// One pass from the end: a bracket closes iff the depth behind it falls back to what it was before.
void BracketSegmenter::compute_closing() {
  closing_.assign(buffer_.size(), false);
  closing_end_ = buffer_.size();
  std::int64_t balance = 0, highest = 0;  // of the suffix: opened minus closed
  for (std::size_t i = buffer_.size(); i-- > at_;) {
    if (buffer_[i] == '(') {
      ++balance;
      closing_[i] = highest >= balance;
    } else if (buffer_[i] == ')') {
      --balance;
    }
    highest = std::max(highest, balance);
  }
}

void BracketSegmenter::report(ErrorCode code, std::size_t at, Segments& out) const {
  std::size_t end = at;
  while (end < buffer_.size() && end - at < excerpt_bytes && buffer_[end] != '\n') ++end;
  out.problems.push_back({code, next_ordinal_, line_, line_start_distance(at) + 1, buffer_.substr(at, end - at)});
}

}  // namespace treelm
