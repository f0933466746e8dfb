// The trees of one sentence, such as its k best, with equal subtrees kept once: each distinct subtree is
// transformed once, and each distinct subtree of the transformed trees is handed on once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/id_sequences.h"
#include "text/word_encoder.h"
#include "trees/worker.h"

namespace treelm {

// A distinct subtree of the transformed trees; its children were handed on before it.
struct SharedNode {
  std::uint32_t id;        // from 0 on, one after the other
  std::uint32_t label;     // index into SharedTrees::labels()
  std::uint32_t position;  // of a preterminal's word in the sentence, none for a phrase
  std::uint32_t head;      // head child of a phrase among `children`; only where nothing is transformed
  bool root;               // ROOT on top of a tree
  std::span<const std::uint32_t> children;
};

class SharedNodeVisitor {
 public:
  virtual ~SharedNodeVisitor() = default;
  virtual void visit(const SharedNode& node) = 0;
};

// Clean trees, and the recipe by which SharedTrees transforms them; with some profiles the trees are
// transformed here, one by one, because the steps at a node do not follow from its children.
class PreparedTrees {
 public:
  PreparedTrees(const TreeRecipe& recipe, const PackedTrees& trees);
  PreparedTrees(const PreparedTrees&) = delete;
  PreparedTrees& operator=(const PreparedTrees&) = delete;

  const PackedTrees& trees() const { return *trees_; }
  const std::shared_ptr<const TreeRecipe>& recipe() const { return recipe_; }

 private:
  std::shared_ptr<const TreeRecipe> recipe_;
  PackedTrees transformed_;
  const PackedTrees* trees_;
};

class SharedTrees : private TreeWorker {
 public:
  // The recipe is that of PreparedTrees.
  explicit SharedTrees(std::shared_ptr<const TreeRecipe> recipe);

  // Subtrees nested deeper are refused with Error(depth).
  static constexpr std::uint32_t max_depth = 4000;

  // Forgets everything and takes the words of the sentence from tree `first`.
  void begin(const PackedTrees& trees, std::size_t first);
  // The id of a tree of the sentence; equal ids are equal trees. Throws Error(yield_mismatch) for a tree of
  // another sentence, Error(reserved_char) for labels that were transformed before.
  std::uint32_t add(std::size_t tree, SharedNodeVisitor& visitor);

  // The ids of the words of the sentence.
  void encode_words(const WordEncoder& encoder, std::vector<std::uint32_t>& out) const;
  const std::vector<LabelParts>& labels() const { return labels_.parts(); }
  void render(std::uint32_t label, std::string& out) const;

 private:
  struct InputLabel {
    std::uint32_t base = none, head = none, parent = none;
    std::uint32_t flags = 0;
    bool gap = false;
  };
  const InputLabel& input_label(std::uint32_t label);
  WorkingTree::Node& add_node(std::uint32_t label);
  void add_leaf(std::uint32_t label, std::uint32_t word, std::uint32_t position);
  void add_phrase(std::uint32_t label, std::span<const std::uint32_t> children, bool root);
  void flatten(std::uint32_t node);
  std::uint32_t mark_below(std::uint32_t parent, std::uint32_t child) const;
  std::uint32_t finished(std::uint32_t node, std::uint32_t mark, SharedNodeVisitor& visitor);
  std::uint32_t finish_node(std::uint32_t node, std::uint32_t mark, SharedNodeVisitor& visitor);
  std::span<const std::uint32_t> kept_children(std::uint32_t node) const {
    return {kept_.data() + kept_start_[node], kept_.data() + kept_start_[node + 1]};
  }

  const PackedTrees* trees_ = nullptr;
  std::vector<InputLabel> input_labels_;
  std::vector<std::uint32_t> sentence_;  // words_ ids

  // Subtrees as they came; tree_.nodes has one node for each.
  IdSequences subtrees_;
  std::vector<std::uint32_t> key_, head_child_, height_, position_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> stack_;  // (first node, subtree)
  std::vector<std::uint32_t> kept_;                             // children after flattening
  std::vector<std::uint64_t> kept_start_;
  std::vector<bool> is_root_;
  // Subtrees as they go out: by (subtree, mark of the parent).
  IdSequences final_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> usual_final_;  // (mark, id) of the mark seen first
  std::unordered_map<std::uint64_t, std::uint32_t> other_final_;
};

}  // namespace treelm
