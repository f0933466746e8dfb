// What one thread needs to read and transform trees: its tables, its scratch tree, and the steps done to a tree.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/symbols.h"
#include "trees/bracket_segmenter.h"
#include "trees/packed_trees.h"
#include "trees/profile.h"
#include "trees/working_tree.h"

namespace treelm {

// What is done to every tree, in this order; shared by all threads and never changed.
struct TreeRecipe {
  std::shared_ptr<const Profile> profile;

  // reading
  bool strip = true;           // cut labels, drop empty elements and drop_tags
  bool simplify = true;        // with strip: flatten, collapse X -> X
  bool unescape = true;        // \/ and \* in words
  bool respell = true;         // words that the profile spells in another way
  bool normalize_root = true;  // one node ROOT on top
  std::uint32_t max_depth = 1000;

  // treelet transforms: bit i switches T(i+1) on
  std::uint32_t treelet = 0;
  bool lowest_verb_label = true;  // T6: the surviving VP takes the annotation of the lower one
  Symbols temporal_words;         // T1
};

class TreeWorker {
 public:
  explicit TreeWorker(std::shared_ptr<const TreeRecipe> recipe);
  virtual ~TreeWorker() = default;
  TreeWorker(const TreeWorker&) = delete;
  TreeWorker& operator=(const TreeWorker&) = delete;

  // Reads, transforms and packs the trees of `segments`.
  PackedTrees process(const Segments& segments);
  // The same for trees that are packed already; `strip` then cleans them.
  PackedTrees process(const PackedTrees& trees);
  // Adds, for every noun-phrase head of `trees` (read without `strip`), lower-cased word, whether
  // it heads a temporal phrase, to the two counts.
  struct TemporalCount {
    std::string word;
    std::uint64_t temporal = 0, total = 0;
  };
  std::vector<TemporalCount> count_temporal_heads(const PackedTrees& trees);

 protected:
  struct RawLabel {
    std::uint32_t base = none;
    std::uint32_t flags = 0;
    bool temporal_function = false;
  };
  struct CachedLabel {
    std::uint64_t key = 0;
    std::size_t length = 0;  // 0: the slot is empty
    RawLabel label;
  };
  struct WordFacts {
    std::uint32_t lower_atom = none;
    std::uint8_t known = 0;  // bits of WordFact that have been computed
    std::uint8_t facts = 0;
    std::uint8_t number_class = 255;
  };
  enum WordFact : std::uint8_t { temporal_word = 1, closed_word = 2, punctuation_word = 4 };
  struct Open {
    std::uint32_t node, last_child, words, children;
    std::size_t begin, second_word, other_kind;
  };
  struct Failure {
    ErrorCode code;
    std::size_t at;
  };

  void begin_batch();
  void end_batch(PackedTrees& out);
  std::uint32_t atom(std::string_view text);
  const RawLabel& raw_label(std::string_view text);
  std::uint32_t intern_word(std::string_view text);

  // worker_brackets.cpp
  void parse(std::string_view text);
  const RawLabel& cached_label(std::string_view text, std::size_t at, std::size_t end);
  std::size_t open_bracket(std::string_view text, std::size_t at);
  void close_bracket();
  std::size_t read_word(std::string_view text, std::size_t at);
  void settle_root(bool labelled);

  // worker_cleaning.cpp
  void clean(bool flatten, bool collapse);

  // worker_heads.cpp
  std::uint32_t head_of(std::uint32_t node);
  void find_lexical_heads();

  // worker_treelet.cpp
  void treelet();
  std::uint32_t first_inner() const;
  void retag_temporal_nouns();
  void annotate_heads();
  void flatten_noun_phrases();
  bool keeps_noun_phrase(std::size_t child) const;
  // The steps of one node, whose children are children_.
  bool enabled(int transform) const { return (recipe_->treelet >> (transform - 1) & 1u) != 0; }
  void retag_temporal_noun(WorkingTree::Node& node);
  void annotate_head(std::uint32_t node);
  bool gives_way_in_noun_phrase(const WorkingTree::Node& node, std::size_t child) const;
  std::size_t flattened_verb_phrase(const WorkingTree::Node& node) const;
  bool lacks_subject() const;
  void classify_numbers();
  void flatten_clauses();
  void flatten_verb_phrases();
  void mark_gaps();
  void annotate_parents();
  void delete_unaries();
  void lower_annotation(std::string_view word, std::string& out) const;
  bool is_closed(std::uint32_t preterminal);
  std::uint32_t lower_atom(std::uint32_t word);
  bool word_fact(std::uint32_t word, WordFact fact);
  std::uint8_t number_class(std::uint32_t word);
  bool beside_coordinator(std::size_t child) const;
  void list_children(std::uint32_t node);
  void relink_children(std::uint32_t node);
  void splice_children_of(std::uint32_t child);

  bool finish_tree(PackedTrees& out);
  void load(const PackedTrees& trees, std::size_t tree);
  void emit(PackedTrees& out);
  std::uint32_t label_of(const WorkingTree::Node& node);
  void set_base(WorkingTree::Node& node, std::uint32_t base) {
    node.base = base;
    node.flags = atom_flags_[base];
  }
  void mark_punctuation(WorkingTree::Node& node);

  std::shared_ptr<const TreeRecipe> recipe_;
  const Profile& profile_;

  Symbols atoms_, words_, raw_;
  std::vector<std::uint32_t> atom_flags_;
  bool any_reserved_ = false;  // some atom of this batch contains a reserved character
  std::vector<RawLabel> raw_labels_;
  std::array<CachedLabel, 256> label_cache_{};
  std::vector<std::uint32_t> plain_label_;  // by base: the label without annotations
  LabelTable labels_;
  std::vector<WordFacts> word_facts_;
  std::vector<RawLabel> loaded_labels_;
  std::vector<std::uint32_t> loaded_words_, loaded_atoms_;

  WorkingTree tree_;
  std::uint32_t root_ = 0;
  bool many_rooted_ = false;
  std::vector<Open> open_;
  std::vector<std::uint32_t> lexical_head_;
  std::vector<std::uint32_t> children_, rewritten_;
  std::vector<HeadCandidate> candidates_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> emit_stack_;
  std::string scratch_;
};

// Index of the head child of every node (none for preterminals).
std::vector<std::uint32_t> find_heads(const PackedTrees& trees, const Profile& profile);

}  // namespace treelm
