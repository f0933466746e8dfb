#include "trees/binary_trees.h"

#include <algorithm>

namespace treelm {

namespace {

constexpr std::string_view root_label = "ROOT";

// Where the vertical annotation begins: the first ^ that no backslash takes the meaning from.
std::size_t annotation_start(std::string_view label) {
  for (std::size_t i = 0; i < label.size(); ++i) {
    if (label[i] == '\\')
      ++i;
    else if (label[i] == '^')
      return i;
  }
  return label.size();
}

// Appends the used names in order, ROOT first; gives the place of every id in that order.
std::vector<std::uint32_t> ordered(const Symbols& names, const std::vector<char>& used, std::vector<std::string>& out) {
  std::vector<std::uint32_t> order, place(names.size(), none);
  for (std::uint32_t id = 0; id < names.size(); ++id)
    if (used[id]) order.push_back(id);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const bool a_root = names[a] == root_label, b_root = names[b] == root_label;
    return a_root != b_root ? a_root : names[a] < names[b];
  });
  for (const std::uint32_t id : order) {
    place[id] = static_cast<std::uint32_t>(out.size());
    out.emplace_back(names[id]);
  }
  return place;
}

}  // namespace

std::uint32_t BinaryTreeBuilder::phrase_id(const PackedTrees& trees, std::uint32_t label, bool intermediate) {
  std::uint32_t& id = (intermediate ? ids_.intermediate : ids_.phrase)[label];
  if (id == none) {
    text_.clear();
    if (intermediate) text_.push_back('@');
    render_label(trees.atoms, trees.labels[label], text_);
    id = phrases_.intern(text_);
  }
  return id;
}

std::uint32_t BinaryTreeBuilder::tag_id(const PackedTrees& trees, std::uint32_t label) {
  std::uint32_t& id = ids_.tag[label];
  if (id == none) {
    text_.clear();
    render_label(trees.atoms, trees.labels[label], text_);
    id = tags_.intern(text_);
  }
  return id;
}

std::uint32_t BinaryTreeBuilder::word_id(const PackedTrees& trees, std::uint32_t word) {
  std::uint32_t& id = ids_.word[word];
  if (id == none) id = words_.intern(trees.words[word]);
  return id;
}

void BinaryTreeBuilder::add(const PackedTrees& trees) {
  ids_.phrase.assign(trees.labels.size(), none);
  ids_.intermediate.assign(trees.labels.size(), none);
  ids_.tag.assign(trees.labels.size(), none);
  ids_.word.assign(trees.words.size(), none);
  for (std::size_t tree = 0; tree < trees.tree_count(); ++tree) {
    const std::size_t before = made_.symbol.size();
    if (before + 4 * std::size_t{trees.start[tree + 1] - trees.start[tree]} >= none) throw Error(ErrorCode::too_large);
    const Verdict verdict = add_tree(trees, trees.start[tree]);
    ++added_;
    if (verdict == Verdict::good) {
      made_.source.push_back(added_ - 1);
      made_.start.push_back(static_cast<std::uint32_t>(made_.symbol.size()));
      continue;
    }
    ++(verdict == Verdict::cycle ? made_.cycles : made_.bad_roots);
    for (auto* array : {&made_.symbol, &made_.left, &made_.right, &made_.word, &above_}) array->resize(before);
  }
}

BinaryTreeBuilder::Verdict BinaryTreeBuilder::add_tree(const PackedTrees& trees, std::uint32_t root) {
  todo_.assign(1, {root, none, 0, 0, none, false, false});
  children_.clear();
  while (!todo_.empty()) {
    const Piece piece = todo_.back();
    todo_.pop_back();
    const auto node = static_cast<std::uint32_t>(made_.symbol.size());
    const bool intermediate = piece.node == none;
    const std::uint32_t word = intermediate ? none : trees.word[piece.node];
    const std::uint32_t label = intermediate ? piece.label : trees.label[piece.node];
    const std::uint32_t symbol = word != none ? tag_id(trees, label) : phrase_id(trees, label, intermediate);
    const bool is_root = word == none && phrases_[symbol] == root_label;
    if (is_root != (piece.parent == none)) return Verdict::bad_root;
    made_.symbol.push_back(symbol);
    made_.left.push_back(none);
    made_.right.push_back(none);
    made_.word.push_back(word == none ? none : word_id(trees, word));
    above_.push_back(piece.is_only ? piece.parent : none);
    if (piece.parent != none) (piece.is_right ? made_.right : made_.left)[piece.parent] = node;
    if (word != none) continue;
    if (!keep_cycles_ && repeats(node)) return Verdict::cycle;
    if (intermediate) {
      expand(label, piece.first, piece.last, node);
    } else {
      const auto first = static_cast<std::uint32_t>(children_.size());
      const std::uint32_t end = piece.node + trees.size[piece.node];
      for (std::uint32_t child = piece.node + 1; child < end; child += trees.size[child]) children_.push_back(child);
      expand(label, first, static_cast<std::uint32_t>(children_.size()), node);
    }
  }
  return Verdict::good;
}

// Whether a phrase has a copy of itself above it on the same words.
bool BinaryTreeBuilder::repeats(std::uint32_t node) const {
  for (std::uint32_t above = above_[node]; above != none; above = above_[above])
    if (made_.symbol[above] == made_.symbol[node]) return true;
  return false;
}

void BinaryTreeBuilder::expand(std::uint32_t label, std::uint32_t first, std::uint32_t last, std::uint32_t parent) {
  const auto whole = [&](std::uint32_t child, bool is_right) {
    todo_.push_back({children_[child], none, 0, 0, parent, is_right, last - first == 1});
  };
  const auto nest = [&](std::uint32_t from, std::uint32_t to, bool is_right) {
    todo_.push_back({none, label, from, to, parent, is_right, false});
  };
  if (last - first > 2 && branching_ == Branching::right)
    nest(first + 1, last, true);
  else if (last - first > 1)
    whole(last - 1, true);
  if (last - first > 2 && branching_ == Branching::left)
    nest(first, last - 1, false);
  else
    whole(first, false);
}

BinaryTrees BinaryTreeBuilder::finish() {
  // Trees that were left out have left names behind, which are not part of the result.
  std::vector<char> used_phrases(phrases_.size()), used_tags(tags_.size()), used_words(words_.size());
  for (std::size_t node = 0; node < made_.symbol.size(); ++node) {
    (made_.word[node] == none ? used_phrases : used_tags)[made_.symbol[node]] = 1;
    if (made_.word[node] != none) used_words[made_.word[node]] = 1;
  }
  const std::vector<std::uint32_t> phrase = ordered(phrases_, used_phrases, made_.symbols);
  made_.phrasal = static_cast<std::uint32_t>(made_.symbols.size());
  const std::vector<std::uint32_t> tag = ordered(tags_, used_tags, made_.symbols);
  std::vector<std::uint32_t> word(words_.size(), none);
  for (std::uint32_t id = 0; id < words_.size(); ++id) {
    if (!used_words[id]) continue;
    word[id] = static_cast<std::uint32_t>(made_.words.size());
    made_.words.emplace_back(words_[id]);
  }
  for (std::uint32_t i = made_.phrasal; i < made_.symbols.size(); ++i) {
    std::string& name = made_.symbols[i];
    const std::uint32_t clash = phrases_.find(name);
    const std::size_t end = annotation_start(name);
    if (clash != none && used_phrases[clash] && !name.substr(0, end).ends_with(tag_mark)) name.insert(end, tag_mark);
  }
  for (std::size_t node = 0; node < made_.symbol.size(); ++node) {
    const bool is_tag = made_.word[node] != none;
    made_.symbol[node] = (is_tag ? tag : phrase)[made_.symbol[node]];
    if (is_tag) made_.word[node] = word[made_.word[node]];
  }
  return std::move(made_);
}

}  // namespace treelm
