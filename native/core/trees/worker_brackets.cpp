// Parses one balanced bracket expression into the scratch tree. Iterative; the first error wins.
#include <bit>
#include <cstring>

#include "text/unicode.h"
#include "trees/worker.h"

namespace treelm {

namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool ends_token(char c) { return is_space(c) || c == '(' || c == ')'; }

// Drops every run of backslashes that stands directly before / or *.
void unescape(std::string_view word, std::string& out) {
  out.clear();
  for (std::size_t at = 0; at < word.size();) {
    if (word[at] != '\\') {
      out.push_back(word[at++]);
      continue;
    }
    std::size_t end = at;
    while (end < word.size() && word[end] == '\\') ++end;
    const bool drop = end < word.size() && (word[end] == '/' || word[end] == '*');
    if (!drop) out.append(word, at, end - at);
    at = end;
  }
}

}  // namespace

void TreeWorker::parse(std::string_view text) {
  const std::size_t invalid = first_invalid_utf8(text);
  if (invalid != std::string_view::npos) throw Failure{ErrorCode::encoding, invalid};
  tree_.clear();
  open_.clear();
  tree_.nodes.emplace_back();  // the root, in case one must be added
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (is_space(c)) {
      ++at;
    } else if (c == '(') {
      at = open_bracket(text, at);
    } else if (c == ')') {
      close_bracket();
      ++at;
    } else {
      at = read_word(text, at);
    }
  }
  settle_root(tree_.nodes[1].base != none);
}

std::size_t TreeWorker::open_bracket(std::string_view text, std::size_t at) {
  // The root does not count, so that what was read with an added ROOT can be read again.
  const bool rooted = tree_.nodes.size() > 1 && (tree_.nodes[1].base == none || (tree_.nodes[1].flags & is_root_label));
  if (open_.size() >= std::size_t{recipe_->max_depth} + (rooted ? 1 : 0)) throw Failure{ErrorCode::depth, at};
  const std::size_t begin = at++;
  while (at < text.size() && is_space(text[at])) ++at;
  std::size_t end = at;
  while (end < text.size() && !ends_token(text[end])) ++end;
  const auto node = static_cast<std::uint32_t>(tree_.nodes.size());
  WorkingTree::Node& made = tree_.nodes.emplace_back();
  if (end > at) {
    const RawLabel& label = cached_label(text, at, end);
    made.base = label.base;
    made.flags = label.flags;
    made.temporal_function = label.temporal_function;
    made.punctuation = (label.flags & is_punctuation_tag) != 0;
  } else if (!open_.empty()) {
    throw Failure{ErrorCode::empty_label, begin};
  }
  if (!open_.empty()) {
    Open& parent = open_.back();
    if (parent.words != 0 && parent.other_kind == 0) parent.other_kind = begin;
    (parent.last_child == none ? tree_.nodes[parent.node].first : tree_.nodes[parent.last_child].next) = node;
    parent.last_child = node;
    ++parent.children;
  }
  open_.push_back({node, none, 0, 0, begin, 0, 0});
  return end;
}

// raw_label behind a small cache: a treebank has few labels and most have at most eight bytes.
const TreeWorker::RawLabel& TreeWorker::cached_label(std::string_view text, std::size_t at, std::size_t end) {
  const std::size_t length = end - at;
  if (length > 8 || at + 8 > text.size()) return raw_label(text.substr(at, length));
  std::uint64_t key;
  std::memcpy(&key, text.data() + at, 8);
  if constexpr (std::endian::native == std::endian::little) {
    key &= ~std::uint64_t{0} >> (64 - 8 * length);
  } else {
    key &= ~std::uint64_t{0} << (64 - 8 * length);
  }
  CachedLabel& slot = label_cache_[(key * 0x9E3779B97F4A7C15ull) >> 56];
  if (slot.key != key || slot.length != length) slot = {key, length, raw_label(text.substr(at, length))};
  return slot.label;
}

std::size_t TreeWorker::read_word(std::string_view text, std::size_t at) {
  std::size_t end = at;
  bool escaped = false;
  for (; end < text.size() && !ends_token(text[end]); ++end) escaped |= text[end] == '\\';
  Open& top = open_.back();
  if (top.children != 0 && top.other_kind == 0) top.other_kind = at;
  if (++top.words == 1) {
    std::string_view word = text.substr(at, end - at);
    if (escaped && recipe_->unescape) {
      unescape(word, scratch_);
      word = scratch_;
    }
    const WorkingTree::Node& node = tree_.nodes[top.node];
    if ((node.flags & has_spellings) != 0 && recipe_->respell) word = recipe_->profile->spelling(node.base, word);
    tree_.nodes[top.node].word = intern_word(word);
  } else if (top.words == 2) {
    top.second_word = at;
  }
  return end;
}

void TreeWorker::close_bracket() {
  const Open& top = open_.back();
  if (top.words == 0 && top.children == 0) throw Failure{ErrorCode::no_word, top.begin};
  if (top.words != 0 && top.children != 0) throw Failure{ErrorCode::mixed, top.other_kind};
  if (top.words > 1) throw Failure{ErrorCode::multi_word, top.second_word};
  if (top.words == 1) mark_punctuation(tree_.nodes[top.node]);
  open_.pop_back();
}

// Node 1 is the outer bracket; node 0 becomes ROOT above it or in its place.
void TreeWorker::settle_root(bool labelled) {
  WorkingTree::Node& outer = tree_.nodes[1];
  const bool is_root = !labelled || (outer.word == none && (outer.flags & is_root_label) != 0);
  many_rooted_ = !labelled && outer.first != none && tree_.nodes[outer.first].next != none;
  root_ = 0;
  if (recipe_->normalize_root) {
    set_base(tree_.nodes[0], profile_.root());
    tree_.nodes[0].first = is_root ? outer.first : 1;
    if (is_root) outer.dead = true;
  } else {
    tree_.nodes[0].dead = true;
    if (!labelled) set_base(outer, profile_.root());
    root_ = 1;
  }
}

}  // namespace treelm
