#include "trees/worker.h"

#include <algorithm>

#include "text/unicode.h"

namespace treelm {

TreeWorker::TreeWorker(std::shared_ptr<const TreeRecipe> recipe)
    : recipe_(std::move(recipe)), profile_(*recipe_->profile) {}

void TreeWorker::begin_batch() {
  atoms_.clear();
  words_.clear();
  raw_.clear();
  labels_.clear();
  atom_flags_.clear();
  raw_labels_.clear();
  word_facts_.clear();
  plain_label_.clear();
  label_cache_.fill({});
  any_reserved_ = false;
  const Symbols& fixed = profile_.atoms();
  for (std::uint32_t i = 0; i < fixed.size(); ++i) atom(fixed[i]);
}

void TreeWorker::end_batch(PackedTrees& out) {
  out.atoms = StringTable(atoms_);
  out.words = StringTable(words_);
  out.labels = labels_.parts();
}

std::uint32_t TreeWorker::atom(std::string_view text) {
  const std::uint32_t id = atoms_.intern(text);
  if (id == atom_flags_.size()) {
    atom_flags_.push_back(profile_.flags(text));
    any_reserved_ |= (atom_flags_.back() & has_reserved_char) != 0;
  }
  return id;
}

const TreeWorker::RawLabel& TreeWorker::raw_label(std::string_view text) {
  const std::uint32_t id = raw_.intern(text);
  if (id == raw_labels_.size()) {
    RawLabel label;
    label.base = atom(recipe_->strip ? profile_.category(text) : text);
    // Only a whole label can be that of a root: TOP-1 is not.
    label.flags = (atom_flags_[label.base] & ~is_root_label) | (profile_.flags(text) & is_root_label);
    label.temporal_function = profile_.has_function(text, profile_.temporal_function());
    raw_labels_.push_back(label);
  }
  return raw_labels_[id];
}

std::uint32_t TreeWorker::intern_word(std::string_view text) {
  const std::uint32_t id = words_.intern(text);
  if (id == word_facts_.size()) word_facts_.emplace_back();
  return id;
}

void TreeWorker::mark_punctuation(WorkingTree::Node& node) {
  node.punctuation = (node.flags & is_punctuation_tag) != 0 ||
                     (profile_.punctuation_by_word() && node.word != none && word_fact(node.word, punctuation_word));
}

PackedTrees TreeWorker::process(const Segments& segments) {
  PackedTrees out;
  begin_batch();
  out.problems = segments.problems;
  for (const TreeSpan& span : segments.spans) {
    const std::string_view text = std::string_view(segments.text).substr(span.begin, span.end - span.begin);
    try {
      parse(text);
      if (!finish_tree(out)) continue;
      out.ordinal.push_back(span.ordinal);
      out.line.push_back(span.line);
    } catch (const Failure& failure) {
      const std::string_view before = text.substr(0, failure.at);
      const std::size_t newline = before.rfind('\n');
      const auto lines = static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n'));
      const std::uint64_t column = newline == std::string_view::npos ? span.column + failure.at : failure.at - newline;
      // A reserved character is in a label of the cleaned tree, whose place in the text is not kept.
      std::string excerpt = failure.code == ErrorCode::reserved_char ? scratch_ : excerpt_at(text, failure.at);
      out.problems.add({failure.code, span.ordinal, span.line + lines, column, std::move(excerpt)});
    }
  }
  out.problems.sort_by_place();
  end_batch(out);
  return out;
}

PackedTrees TreeWorker::process(const PackedTrees& trees) {
  PackedTrees out;
  begin_batch();
  loaded_labels_.assign(trees.labels.size(), {});
  loaded_words_.assign(trees.words.size(), none);
  loaded_atoms_.assign(trees.atoms.size(), none);
  for (std::size_t i = 0; i < trees.tree_count(); ++i) {
    const std::uint64_t ordinal = i < trees.ordinal.size() ? trees.ordinal[i] : i + 1;
    const std::uint64_t line = i < trees.line.size() ? trees.line[i] : 0;
    try {
      load(trees, i);
      if (!finish_tree(out)) continue;
      out.ordinal.push_back(ordinal);
      out.line.push_back(line);
    } catch (const Failure& failure) {
      out.problems.add({failure.code, ordinal, line, 0, scratch_});
    }
  }
  end_batch(out);
  return out;
}

// Cleans, transforms and packs the scratch tree; false if nothing is left of it.
bool TreeWorker::finish_tree(PackedTrees& out) {
  if (recipe_->strip) {
    clean(recipe_->simplify, recipe_->simplify);
    if (tree_.nodes[root_].dead) {
      ++out.dropped;
      return false;
    }
  }
  if (many_rooted_) ++out.many_rooted;
  if (recipe_->treelet != 0) treelet();
  emit(out);
  return true;
}

void TreeWorker::load(const PackedTrees& trees, std::size_t which) {
  const auto atom_here = [&](std::uint32_t id) {
    if (id == none) return none;
    if (loaded_atoms_[id] == none) loaded_atoms_[id] = atom(trees.atoms[id]);
    return loaded_atoms_[id];
  };
  tree_.clear();
  root_ = 0;
  many_rooted_ = false;
  emit_stack_.clear();
  const std::uint32_t first = trees.start[which], last = trees.start[which + 1];
  tree_.nodes.resize(last - first);
  for (std::uint32_t i = 0; i < last - first; ++i) {
    WorkingTree::Node& node = tree_.nodes[i];
    node = {};
    const LabelParts& parts = trees.labels[trees.label[first + i]];
    if (recipe_->strip) {
      RawLabel& label = loaded_labels_[trees.label[first + i]];
      if (label.base == none) {
        scratch_.clear();
        render_label(trees.atoms, parts, scratch_);
        label = raw_label(scratch_);
      }
      node.base = label.base;
      node.flags = label.flags;
      node.temporal_function = label.temporal_function;
    } else {
      set_base(node, atom_here(parts.base));
      node.head = atom_here(parts.head);
      node.parent_mark = atom_here(parts.parent);
      node.gap = parts.gap != 0;
    }
    const std::uint32_t word = trees.word[first + i];
    if (word != none) {
      if (loaded_words_[word] == none) loaded_words_[word] = intern_word(trees.words[word]);
      node.word = loaded_words_[word];
    }
    mark_punctuation(node);
    // emit_stack_ holds (last child seen, end) of the open phrases
    while (!emit_stack_.empty() && emit_stack_.back().second == i) emit_stack_.pop_back();
    if (!emit_stack_.empty()) {
      std::uint32_t& last_child = emit_stack_.back().first;
      // The parent is the node whose children list is empty so far, directly before its first child.
      if (last_child == none) {
        tree_.nodes[i - 1].first = i;
      } else {
        tree_.nodes[last_child].next = i;
      }
      last_child = i;
    }
    if (word == none) emit_stack_.emplace_back(none, i + trees.size[first + i]);
  }
}

std::uint32_t TreeWorker::label_of(const WorkingTree::Node& node) {
  if (node.head != none || node.parent_mark != none || node.gap)
    return labels_.intern({node.base, node.head, node.parent_mark, node.gap ? 1u : 0u});
  if (node.base >= plain_label_.size()) plain_label_.resize(node.base + 1, none);
  if (plain_label_[node.base] == none) plain_label_[node.base] = labels_.intern({node.base, none, none, 0});
  return plain_label_[node.base];
}

// Appends the scratch tree in preorder.
void TreeWorker::emit(PackedTrees& out) {
  if (out.label.size() + tree_.nodes.size() >= none) throw Error(ErrorCode::too_large);
  emit_stack_.clear();
  auto at = static_cast<std::uint32_t>(out.label.size());
  const std::size_t room = at + tree_.nodes.size();
  out.label.resize(room);
  out.word.resize(room);
  out.size.resize(room);
  std::uint32_t node = root_;
  for (;;) {
    const WorkingTree::Node& from = tree_.nodes[node];
    out.label[at] = label_of(from);
    out.word[at] = from.word;
    out.size[at] = 1;
    if (from.word == none) {
      emit_stack_.emplace_back(node, at++);
      node = from.first;
      continue;
    }
    ++at;
    ++out.tokens;
    while (node != root_ && tree_.nodes[node].next == none) {
      const auto [phrase, position] = emit_stack_.back();
      emit_stack_.pop_back();
      out.size[position] = at - position;
      node = phrase;
    }
    if (node == root_) break;
    node = tree_.nodes[node].next;
  }
  out.label.resize(at);
  out.word.resize(at);
  out.size.resize(at);
  out.start.push_back(at);
}

}  // namespace treelm
