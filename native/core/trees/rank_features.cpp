#include "trees/rank_features.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace treelm {

namespace {

constexpr int parallel_depths = 4;        // to which the sides of a coordination are compared
constexpr int word_ancestors = 3;         // that a word is counted with
constexpr std::size_t tags_in_a_row = 5;  // at most
constexpr std::size_t heads_above = 4;    // of a word, itself included

// w for the word, t for the tag of neighbours; tags alone have names of their own.
constexpr std::array<std::string_view, 5> mixed_rows = {"wtt", "twt", "ttw", "wttt", "tttw"};
constexpr std::array<std::string_view, 7> edge_punctuation = {".", ",", ":", "``", "''", "-RRB-", "-LRB-"};

std::string_view size_class(std::uint32_t size) {
  constexpr std::array<std::string_view, 4> small = {"0", "1", "2", "3"};
  if (size <= 3) return small[size];
  if (size <= 5) return "4-5";
  if (size <= 10) return "6-10";
  return size <= 20 ? "11-20" : "21+";
}

std::string_view true_or_false(bool value) { return value ? "True" : "False"; }

}  // namespace

RankFeatures::RankFeatures(const PackedTrees& trees, std::span<const std::uint32_t> heads)
    : trees_(trees), heads_(heads) {
  if (heads.size() != trees.label.size()) throw Error(ErrorCode::argument, "the heads do not fit the trees");
  for (const LabelParts& parts : trees.labels) render_label(trees.atoms, parts, labels_.emplace_back());
}

template <class... Parts>
void RankFeatures::add(Parts... parts) {
  std::uint64_t value = hash("");
  bool first = true;
  const auto next = [&](std::string_view part) {
    value = first ? hash(part, value) : hash(part, hash(" ", value));
    first = false;
  };
  (next(parts), ...);
  found_->push_back(value);
}

void RankFeatures::find(std::size_t tree, std::vector<std::uint64_t>& found) {
  found.clear();
  found_ = &found;
  load(tree);
  for (const Node& node : nodes_) {
    if (node.is_word) {
      add_word(node);
    } else {
      add_rule(node);
      add_dependencies(node);
      add_edges(node);
      add_coordination(node);
    }
    add_size(node);
  }
  add_right_branch();
  add_tags();
  for (std::size_t i = 0; i + 1 < leaves_.size(); ++i) add_joint(leaves_[i], leaves_[i + 1]);
  for (const std::uint32_t leaf : leaves_) add_chain(leaf);
}

void RankFeatures::load(std::size_t tree) {
  const std::uint32_t first = trees_.start[tree], count = trees_.start[tree + 1] - first;
  nodes_.assign(count, {});
  leaves_.clear();
  ends_.clear();  // phrases that are open
  for (std::uint32_t at = 0; at < count; ++at) {
    Node& node = nodes_[at];
    while (!ends_.empty() && ends_.back() + trees_.size[first + ends_.back()] <= at) ends_.pop_back();
    node.parent = ends_.empty() ? none : ends_.back();
    if (node.parent != none) ++nodes_[node.parent].child_count;
    node.label = labels_[trees_.label[first + at]];
    node.start = static_cast<std::uint32_t>(leaves_.size());
    node.head = at;
    const std::uint32_t word = trees_.word[first + at];
    if (word == none) {
      ends_.push_back(at);
      node.head_child = heads_[first + at];
    } else {
      node.is_word = true;
      node.word = trees_.words[word];
      node.end = node.start + 1;
      leaves_.push_back(at);
    }
  }
  std::uint32_t places = 0;
  for (Node& node : nodes_) {
    node.first_child = places;
    places += node.child_count;
  }
  children_.resize(places);
  filled_.assign(count, 0);
  for (std::uint32_t at = 1; at < count; ++at) {
    const std::uint32_t parent = nodes_[at].parent;
    children_[nodes_[parent].first_child + filled_[parent]++] = at;
  }
  for (std::uint32_t at = count; at-- > 0;) {
    Node& node = nodes_[at];
    if (node.is_word) continue;
    if (node.head_child >= node.child_count) throw Error(ErrorCode::argument, "a head is none of the children");
    node.end = nodes_[children(node).back()].end;
    node.head = nodes_[children(node)[node.head_child]].head;
  }
}

void RankFeatures::add_size(const Node& node) {
  add("heavy", node.label, size_class(node.end - node.start), size_class(nodes_[0].end - node.end));
}

void RankFeatures::add_rule(const Node& node) {
  const auto own = children(node);
  text_.assign(node.label);
  text_ += " ->";
  for (const std::uint32_t child : own) (text_ += ' ') += nodes_[child].label;
  const std::string_view rule = text_, parent = above(node);
  const std::string_view higher = node.parent == none ? "^" : above(nodes_[node.parent]);
  const Node& head = nodes_[node.head];
  add("rule", rule);
  add("rule^1", parent, rule);
  add("rule^2", higher, parent, rule);
  add("rule-tag", head.label, rule);
  add("rule-word", head.word, rule);
  const auto label = [&](std::size_t place) {  // with marks at both ends
    return place == 0 ? "[" : place > own.size() ? "]" : nodes_[own[place - 1]].label;
  };
  for (std::size_t size = 2; size <= 3; ++size) {
    for (std::size_t first = 0; first + size <= own.size() + 2; ++first) {
      const auto place = static_cast<std::int64_t>(first) - 1 - node.head_child;
      const std::string_view ends = true_or_false(place + static_cast<std::int64_t>(size) > 0);
      const std::string_view begins = true_or_false(place > 0);
      std::uint64_t plain = hash(node.label, hash("children "));
      std::uint64_t with_head = hash(begins, hash(ends, hash(" ", hash(node.label, hash("children-head ")))));
      for (std::size_t i = first; i < first + size; ++i) {
        plain = hash(label(i), hash(" ", plain));
        with_head = hash(label(i), hash(" ", with_head));
      }
      found_->push_back(plain);
      found_->push_back(with_head);
    }
  }
}

void RankFeatures::add_dependencies(const Node& node) {
  const auto own = children(node);
  const Node& head = nodes_[node.head];
  for (std::size_t place = 0; place < own.size(); ++place) {
    const Node& other = nodes_[nodes_[own[place]].head];
    if (&other == &head) continue;
    const std::string_view side = place < node.head_child ? "L" : "R";
    add("tags", node.label, side, head.label, other.label);
    add("tag-word", node.label, side, head.label, other.word);
    add("word-tag", node.label, side, head.word, other.label);
    add("words", side, head.word, other.word);
  }
  for (std::size_t place = 0; place + 1 < own.size(); ++place) {
    const Node &one = nodes_[nodes_[own[place]].head], &two = nodes_[nodes_[own[place + 1]].head];
    add("sisters", node.label, one.label, two.label);
    add("sister-words", one.word, two.word);
  }
}

void RankFeatures::add_edges(const Node& node) {
  const Node &first = nodes_[leaves_[node.start]], &last = nodes_[leaves_[node.end - 1]];
  add("edges", node.label, size_class(node.end - node.start), first.label, last.label);
  add("edge-words", node.label, first.word, last.word);
}

bool RankFeatures::alike(std::uint32_t one, std::uint32_t two, int depth) const {
  const Node &left = nodes_[one], &right = nodes_[two];
  if (left.label != right.label) return false;
  if (depth == 0) return true;
  if (left.is_word || right.is_word) return left.is_word == right.is_word;
  const auto ours = children(left), theirs = children(right);
  return std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                    [&](std::uint32_t a, std::uint32_t b) { return alike(a, b, depth - 1); });
}

void RankFeatures::add_coordination(const Node& node) {
  const auto own = children(node);
  for (std::size_t place = 1; place + 1 < own.size(); ++place) {
    const std::string_view label = nodes_[own[place]].label;
    if (label != "CC" && label != "CONJP") continue;
    const std::uint32_t one = own[place - 1], two = own[place + 1];
    for (int depth = 0; depth < parallel_depths; ++depth) {
      const bool same = alike(one, two, depth);
      const char number[] = {static_cast<char>('0' + depth), '\0'};
      add("parallel", std::string_view(number), true_or_false(same));
      if (!same) break;
    }
    add("parallel-length", node.label, size_class(nodes_[one].end - nodes_[one].start),
        size_class(nodes_[two].end - nodes_[two].start));
  }
}

void RankFeatures::add_word(const Node& node) {
  add("word+0", node.word, node.label);
  text_.assign(node.label);
  constexpr std::array<std::string_view, word_ancestors> names = {"word+1", "word+2", "word+3"};
  const Node* at = &node;
  for (const std::string_view name : names) {
    if (at->parent == none) break;
    at = &nodes_[at->parent];
    (text_ += ' ') += at->label;
    add(name, node.word, std::string_view(text_));
    add("path", std::string_view(text_));
  }
}

void RankFeatures::add_right_branch() {
  std::uint32_t last = 0;
  for (const std::uint32_t leaf : leaves_)
    if (std::ranges::find(edge_punctuation, nodes_[leaf].label) == edge_punctuation.end()) last = nodes_[leaf].start;
  constexpr std::uint64_t on = hash("right-branch"), off = hash("off-right-branch");
  for (const Node& node : nodes_)
    if (!node.is_word) found_->push_back(node.start <= last && last < node.end ? on : off);
}

void RankFeatures::add_tags() {
  words_.assign(1, "[");
  tags_.assign(1, "[");
  for (const std::uint32_t leaf : leaves_) {
    words_.push_back(nodes_[leaf].word);
    tags_.push_back(nodes_[leaf].label);
  }
  words_.push_back("]");
  tags_.push_back("]");
  constexpr std::array<std::string_view, tags_in_a_row + 1> names = {"", "", "tags-2", "tags-3", "tags-4", "tags-5"};
  for (std::size_t first = 0; first < tags_.size(); ++first) {
    for (std::size_t size = 2; size <= tags_in_a_row && first + size <= tags_.size(); ++size) {
      std::uint64_t value = hash(names[size]);
      for (std::size_t i = first; i < first + size; ++i) value = hash(tags_[i], hash(" ", value));
      found_->push_back(value);
    }
    for (const std::string_view row : mixed_rows) {
      if (first + row.size() > tags_.size()) continue;
      std::uint64_t value = hash(row);
      for (std::size_t i = 0; i < row.size(); ++i)
        value = hash(row[i] == 'w' ? words_[first + i] : tags_[first + i], hash(" ", value));
      found_->push_back(value);
    }
  }
}

void RankFeatures::add_joint(std::uint32_t left, std::uint32_t right) {
  text_.clear();
  std::size_t rising = 0, falling = 0;
  std::uint32_t top = left;
  for (; nodes_[top].end <= nodes_[right].start; top = nodes_[top].parent, ++rising) {
    if (rising != 0) text_ += ' ';
    text_ += nodes_[top].label;
  }
  ((text_ += " / ") += nodes_[top].label) += " / ";
  for (std::uint32_t at = right; at != top; at = nodes_[at].parent, ++falling) {
    if (falling != 0) text_ += ' ';
    text_ += nodes_[at].label;
  }
  const std::string_view shape = text_;
  add("joint", shape);
  add("joint-left", nodes_[left].word, shape);
  add("joint-right", nodes_[right].word, shape);
  const std::string up = std::to_string(rising), down = std::to_string(falling);
  add("joint-depth", std::string_view(up), nodes_[top].label, std::string_view(down));
}

void RankFeatures::add_chain(std::uint32_t leaf) {
  std::array<const Node*, heads_above> chain{};
  std::size_t length = 1;
  std::uint32_t last = leaf;
  chain[0] = &nodes_[leaf];
  for (std::uint32_t at = nodes_[leaf].parent; at != none && length < heads_above; at = nodes_[at].parent) {
    if (nodes_[at].head == last) continue;
    last = nodes_[at].head;
    chain[length++] = &nodes_[last];
  }
  if (length > 2) {
    add("heads", chain[0]->label, chain[1]->label, chain[2]->label);
    add("heads-words", chain[0]->word, chain[1]->label, chain[2]->word);
  }
  if (length == heads_above) add("heads", chain[0]->label, chain[1]->label, chain[2]->label, chain[3]->label);
}

}  // namespace treelm
