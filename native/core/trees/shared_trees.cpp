#include "trees/shared_trees.h"

#include <algorithm>

namespace treelm {

namespace {

// A mark that no parent gives: the final form of the node is not known yet.
constexpr std::uint32_t not_yet = none - 1;

std::shared_ptr<const TreeRecipe> uncleaned(const TreeRecipe& recipe, bool transforms) {
  auto made = std::make_shared<TreeRecipe>(recipe);
  made->strip = false;
  if (!transforms) made->treelet = 0;
  return made;
}

// Whether a label takes part in more than one of the three flattenings: a node's final children do not
// follow from those of its children then.
bool flattened_twice(const TreeRecipe& recipe) {
  const Profile& profile = *recipe.profile;
  for (std::uint32_t atom = 0; atom < profile.atoms().size(); ++atom) {
    const std::uint32_t flags = profile.flags(profile.atoms()[atom]);
    int parts = 0;
    for (const std::uint32_t flag : {is_noun_phrase, splices_children, is_verb_phrase}) parts += (flags & flag) != 0;
    if (parts > 1) return true;
  }
  return false;
}

}  // namespace

PreparedTrees::PreparedTrees(const TreeRecipe& recipe, const PackedTrees& trees) : trees_(&trees) {
  const bool at_once = recipe.treelet != 0 && flattened_twice(recipe);
  recipe_ = uncleaned(recipe, !at_once);
  if (!at_once) return;
  transformed_ = TreeWorker(uncleaned(recipe, true)).process(trees);
  trees_ = &transformed_;
  if (!transformed_.problems.empty()) throw Error(transformed_.problems[0].code, transformed_.problems[0].excerpt);
}

SharedTrees::SharedTrees(std::shared_ptr<const TreeRecipe> recipe) : TreeWorker(std::move(recipe)) {}

void SharedTrees::begin(const PackedTrees& trees, std::size_t first) {
  begin_batch();
  trees_ = &trees;
  input_labels_.assign(trees.labels.size(), {});
  loaded_atoms_.assign(trees.atoms.size(), none);
  loaded_words_.assign(trees.words.size(), none);
  tree_.clear();
  subtrees_.clear();
  head_child_.clear();
  height_.clear();
  position_.clear();
  kept_.clear();
  kept_start_.assign(1, 0);
  is_root_.clear();
  lexical_head_.clear();
  final_.clear();
  usual_final_.clear();
  other_final_.clear();
  sentence_.clear();
  for (std::uint32_t node = trees.start[first]; node < trees.start[first + 1]; ++node) {
    const std::uint32_t word = trees.word[node];
    if (word == none) continue;
    if (loaded_words_[word] == none) loaded_words_[word] = intern_word(trees.words[word]);
    sentence_.push_back(loaded_words_[word]);
  }
}

void SharedTrees::render(std::uint32_t label, std::string& out) const {
  const LabelParts& parts = labels_.parts()[label];
  std::string_view head, parent;
  if (parts.head != none) head = atoms_[parts.head];
  if (parts.parent != none) parent = atoms_[parts.parent];
  out.clear();
  render_label(atoms_[parts.base], parts.head == none ? nullptr : &head, parts.gap != 0,
               parts.parent == none ? nullptr : &parent, out);
}

const SharedTrees::InputLabel& SharedTrees::input_label(std::uint32_t label) {
  InputLabel& known = input_labels_[label];
  if (known.base != none) return known;
  const auto atom_here = [&](std::uint32_t id) {
    if (id == none) return none;
    if (loaded_atoms_[id] == none) loaded_atoms_[id] = atom(trees_->atoms[id]);
    return loaded_atoms_[id];
  };
  const LabelParts& parts = trees_->labels[label];
  const std::uint32_t base = atom_here(parts.base);
  if (recipe_->treelet != 0 && (atom_flags_[base] & has_reserved_char))
    throw Error(ErrorCode::reserved_char, std::string(trees_->atoms[parts.base]));
  known = {base, atom_here(parts.head), atom_here(parts.parent), atom_flags_[base], parts.gap != 0};
  return known;
}

std::uint32_t SharedTrees::add(std::size_t tree, SharedNodeVisitor& visitor) {
  const PackedTrees& trees = *trees_;
  const std::uint32_t first = trees.start[tree], last = trees.start[tree + 1];
  stack_.clear();
  auto left = static_cast<std::uint32_t>(sentence_.size());
  for (std::uint32_t node = last; node-- > first;) {
    const std::uint32_t label = trees.label[node], word = trees.word[node];
    std::uint32_t subtree;
    if (word != none) {
      if (left == 0 || loaded_words_[word] != sentence_[left - 1])
        throw Error(ErrorCode::yield_mismatch, std::string(trees.words[word]));
      --left;
      const std::uint32_t key[] = {none, label, left};
      subtree = subtrees_.intern(key);
      if (subtree == tree_.nodes.size()) add_leaf(label, loaded_words_[word], left);
    } else {
      const bool root = node == first && input_label(label).base == profile_.root();
      key_.assign(1, label);
      if (root) key_.push_back(none);
      for (const std::uint32_t end = node + trees.size[node]; !stack_.empty() && stack_.back().first < end;
           stack_.pop_back())
        key_.push_back(stack_.back().second);
      subtree = subtrees_.intern(key_);
      if (subtree == tree_.nodes.size()) add_phrase(label, std::span(key_).subspan(root ? 2 : 1), root);
    }
    stack_.emplace_back(node, subtree);
  }
  if (left != 0) throw Error(ErrorCode::yield_mismatch, std::string(words_[sentence_[left - 1]]));
  return finished(stack_.back().second, none, visitor);
}

void SharedTrees::encode_words(const WordEncoder& encoder, std::vector<std::uint32_t>& out) const {
  out.resize(sentence_.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = encoder.encode(words_[sentence_[i]], i);
}

WorkingTree::Node& SharedTrees::add_node(std::uint32_t label) {
  const InputLabel& given = input_label(label);
  WorkingTree::Node& node = tree_.nodes.emplace_back();
  node.base = given.base;
  node.flags = given.flags;
  node.head = given.head;
  node.parent_mark = given.parent;
  node.gap = given.gap;
  return node;
}

void SharedTrees::add_leaf(std::uint32_t label, std::uint32_t word, std::uint32_t position) {
  const auto id = static_cast<std::uint32_t>(tree_.nodes.size());
  WorkingTree::Node& node = add_node(label);
  node.word = word;
  mark_punctuation(node);
  position_.push_back(position);
  head_child_.push_back(none);
  height_.push_back(1);
  is_root_.push_back(false);
  kept_start_.push_back(kept_.size());
  lexical_head_.push_back(id);
  usual_final_.emplace_back(not_yet, none);
  if (enabled(1) && recipe_->temporal_words.size() != 0) retag_temporal_noun(node);
  if (enabled(2)) annotate_head(id);
  if (enabled(4) && (node.flags & is_number_tag)) node.head = profile_.number_class(number_class(word));
}

void SharedTrees::add_phrase(std::uint32_t label, std::span<const std::uint32_t> children, bool root) {
  const auto id = static_cast<std::uint32_t>(tree_.nodes.size());
  WorkingTree::Node& node = add_node(label);
  mark_punctuation(node);
  children_.assign(children.begin(), children.end());
  candidates_.clear();
  std::uint32_t below = 0;
  for (const std::uint32_t child : children) {
    candidates_.push_back({tree_.nodes[child].base, tree_.nodes[child].punctuation});
    below = std::max(below, height_[child]);
  }
  if (below >= max_depth) throw Error(ErrorCode::depth);
  const std::uint32_t head = children.size() == 1 ? 0 : profile_.head_child(node.base, candidates_);
  position_.push_back(none);
  head_child_.push_back(head);
  height_.push_back(below + 1);
  is_root_.push_back(root);
  lexical_head_.push_back(lexical_head_[children[head]]);
  usual_final_.emplace_back(not_yet, none);
  if (enabled(2) && !root) annotate_head(id);
  flatten(id);
  if (enabled(7) && (node.flags & may_be_gapped) && lacks_subject()) tree_.nodes[id].gap = true;
  kept_.insert(kept_.end(), children_.begin(), children_.end());
  kept_start_.push_back(kept_.size());
}

// T3, T5 and T6 at one node: rewrites children_.
void SharedTrees::flatten(std::uint32_t id) {
  WorkingTree::Node& node = tree_.nodes[id];
  rewritten_.clear();
  const auto splice = [&](std::uint32_t child) {
    const auto inside = kept_children(child);
    rewritten_.insert(rewritten_.end(), inside.begin(), inside.end());
  };
  if (enabled(3) && (node.flags & is_noun_phrase)) {
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (gives_way_in_noun_phrase(node, i)) {
        splice(children_[i]);
      } else {
        rewritten_.push_back(children_[i]);
      }
    }
  } else if (enabled(5) && (node.flags & splices_children)) {
    for (const std::uint32_t child : children_) {
      if (tree_.is_phrase(child) && profile_.splices(node.base, tree_.nodes[child].base)) {
        splice(child);
      } else {
        rewritten_.push_back(child);
      }
    }
  } else if (enabled(6) && (node.flags & is_verb_phrase)) {
    const std::size_t found = flattened_verb_phrase(node);
    if (found == children_.size()) return;
    if (recipe_->lowest_verb_label) node.head = tree_.nodes[children_[found]].head;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (i == found) {
        splice(children_[i]);
      } else {
        rewritten_.push_back(children_[i]);
      }
    }
  } else {
    return;
  }
  children_.swap(rewritten_);
}

// T8: what the parent writes behind the label of a child.
std::uint32_t SharedTrees::mark_below(std::uint32_t parent, std::uint32_t child) const {
  const WorkingTree::Node& below = tree_.nodes[child];
  if (enabled(8) && (is_root_[parent] || (below.word == none && (below.flags & takes_parent))))
    return tree_.nodes[parent].base;
  return below.parent_mark;
}

// The id of a node as it goes out below a parent that marks it so.
std::uint32_t SharedTrees::finished(std::uint32_t node, std::uint32_t mark, SharedNodeVisitor& visitor) {
  // T9: a phrase with one child gives way to it.
  while (enabled(9) && !is_root_[node] && kept_start_[node + 1] - kept_start_[node] == 1) {
    const std::uint32_t child = kept_[kept_start_[node]];
    mark = mark_below(node, child);
    node = child;
  }
  if (usual_final_[node].first == mark) return usual_final_[node].second;
  const std::uint64_t key = std::uint64_t{node} << 32 | mark;
  if (usual_final_[node].first == not_yet) {
    const std::uint32_t made = finish_node(node, mark, visitor);
    usual_final_[node] = {mark, made};
    return made;
  }
  const auto known = other_final_.find(key);
  if (known != other_final_.end()) return known->second;
  const std::uint32_t made = finish_node(node, mark, visitor);
  other_final_.emplace(key, made);
  return made;
}

std::uint32_t SharedTrees::finish_node(std::uint32_t node, std::uint32_t mark, SharedNodeVisitor& visitor) {
  WorkingTree::Node labelled = tree_.nodes[node];
  labelled.parent_mark = mark;
  const std::uint32_t label = label_of(labelled);
  std::uint32_t id;
  const std::uint32_t before = final_.size();
  if (labelled.word != none) {
    const std::uint32_t key[] = {none, label, position_[node]};
    id = final_.intern(key);
    if (id == before) visitor.visit({id, label, position_[node], none, false, {}});
    return id;
  }
  std::vector<std::uint32_t> key{label, is_root_[node] ? 1u : 0u};
  for (std::uint64_t at = kept_start_[node]; at < kept_start_[node + 1]; ++at)
    key.push_back(finished(kept_[at], mark_below(node, kept_[at]), visitor));
  const std::uint32_t known = final_.size();
  id = final_.intern(key);
  if (id == known) visitor.visit({id, label, none, head_child_[node], is_root_[node], std::span(key).subspan(2)});
  return id;
}

}  // namespace treelm
