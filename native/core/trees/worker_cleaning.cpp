// Removes what is not part of the sentence: empty elements, dropped tags, NML, X over X.
#include "trees/worker.h"

namespace treelm {

void TreeWorker::clean(bool flatten, bool collapse) {
  auto& nodes = tree_.nodes;
  const bool rooted = flatten && nodes[root_].base == profile_.root();
  for (std::uint32_t child = rooted ? nodes[root_].first : none; child != none; child = nodes[child].next)
    if ((nodes[child].flags & is_flattened) && tree_.is_phrase(child))
      set_base(nodes[child], profile_.name_below_root(nodes[child].base));
  for (auto at = static_cast<std::uint32_t>(nodes.size()); at-- > root_;) {
    WorkingTree::Node& node = nodes[at];
    if (node.dead) continue;
    if (node.word != none) {
      node.dead = (node.flags & (is_empty_tag | is_dropped)) != 0;
      continue;
    }
    rewritten_.clear();
    for (std::uint32_t child = node.first; child != none; child = nodes[child].next) {
      if (nodes[child].dead) continue;
      if (flatten && (nodes[child].flags & is_flattened) && tree_.is_phrase(child)) {
        splice_children_of(child);
      } else {
        rewritten_.push_back(child);
      }
    }
    if (rewritten_.empty()) {
      node.dead = true;
      continue;
    }
    relink_children(at);
    const std::uint32_t only = node.first;
    if (!collapse || nodes[only].next != none || nodes[only].base != node.base) continue;
    if (at == root_ && !tree_.is_phrase(only)) continue;  // the root stays a phrase
    node.word = nodes[only].word;
    node.first = nodes[only].first;
    node.punctuation = nodes[only].punctuation;
    nodes[only].dead = true;
  }
}

// Fills children_ with the children of `node`.
void TreeWorker::list_children(std::uint32_t node) {
  children_.clear();
  for (std::uint32_t child = tree_.nodes[node].first; child != none; child = tree_.nodes[child].next)
    children_.push_back(child);
}

// Makes rewritten_ the children of `node`.
void TreeWorker::relink_children(std::uint32_t node) {
  std::uint32_t next = none;
  for (std::size_t i = rewritten_.size(); i-- > 0;) {
    tree_.nodes[rewritten_[i]].next = next;
    next = rewritten_[i];
  }
  tree_.nodes[node].first = next;
}

// Appends the children of `child` to rewritten_ and takes `child` itself out of the tree.
void TreeWorker::splice_children_of(std::uint32_t child) {
  for (std::uint32_t grandchild = tree_.nodes[child].first; grandchild != none;
       grandchild = tree_.nodes[grandchild].next)
    rewritten_.push_back(grandchild);
  tree_.nodes[child].dead = true;
}

}  // namespace treelm
