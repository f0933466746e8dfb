// A language profile, compiled: sets of labels as bits, head rules as rank tables.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/symbols.h"

namespace treelm {

struct HeadStep {
  enum class Kind : std::uint8_t {
    priority,  // first label of the list that occurs, scanned from one side
    any,       // first child from one side whose label is in the list
    last,      // the last child, if its label is in the list
  };
  Kind kind = Kind::priority;
  bool from_right = false;
  std::vector<std::string> labels;
};

struct HeadRow {
  std::string parent;
  bool default_right = false;
  std::vector<HeadStep> steps;
};

// What a profile says, as lists; see docs/formats/profile.md for the meaning of each.
struct ProfileData {
  std::vector<std::string> root_labels, empty_tags, drop_tags;
  std::string separators = "-=|";                            // where labels are cut
  std::vector<std::string> compounds;                        // categories that contain a separator
  std::vector<std::pair<std::string, std::string>> renamed;  // category, or its beginning and *, -> category
  std::vector<std::pair<std::string, std::string>> flatten;  // label -> its name below the root
  std::vector<std::tuple<std::string, std::string, std::string>> spellings;  // tag, word -> its spelling
  std::vector<std::string> punctuation_tags;
  bool punctuation_by_word = false;
  std::vector<HeadRow> head_rows;
  bool default_right = false;
  std::vector<std::string> coordinators, coordination_skips;
  std::vector<std::string> closed_tags, closed_prefixes, closed_words, bracket_words;
  std::vector<std::pair<std::string, std::string>> temporal_tags;  // NN -> NNT
  std::vector<std::string> temporal_phrases;
  std::string temporal_function;
  std::vector<std::string> noun_phrases, noun_phrase_separators, apposition_marks;
  std::vector<std::string> number_tags;
  std::vector<std::pair<std::string, std::string>> clause_flattening;  // (SBAR, S)
  std::vector<std::string> verb_phrases, gapped, parent_annotated;
};

enum LabelFlag : std::uint32_t {
  is_root_label = 1u << 0,
  is_empty_tag = 1u << 1,
  is_dropped = 1u << 2,
  is_flattened = 1u << 3,
  is_punctuation_tag = 1u << 4,
  is_coordinator = 1u << 5,
  is_coordination_skip = 1u << 6,
  is_closed_tag = 1u << 7,
  has_closed_prefix = 1u << 8,
  is_noun_phrase = 1u << 9,
  is_separator = 1u << 10,
  is_apposition_mark = 1u << 11,
  is_number_tag = 1u << 12,
  is_verb_phrase = 1u << 13,
  may_be_gapped = 1u << 14,
  takes_parent = 1u << 15,
  has_reserved_char = 1u << 16,
  is_temporal_source = 1u << 17,
  is_temporal_phrase = 1u << 18,
  splices_children = 1u << 19,
  has_spellings = 1u << 20,
};

// What head finding sees of a child.
struct HeadCandidate {
  std::uint32_t base;  // atom
  bool punctuation;
};

class Profile {
 public:
  explicit Profile(const ProfileData& data);

  // The atoms every table of atoms starts with, in this order; their ids are fixed.
  const Symbols& atoms() const { return atoms_; }
  std::uint32_t flags(std::string_view label) const;

  // The part of a label as a treebank writes it that names the category, before renaming; and what follows it.
  std::size_t cut_position(std::string_view label) const;
  // Whether one of the parts behind that position is `function`.
  bool has_function(std::string_view label, std::string_view function) const;
  // The category of a label as a treebank writes it.
  std::string_view category(std::string_view label) const;

  // Index of the head child; `children` must not be empty.
  std::uint32_t head_child(std::uint32_t parent, std::span<const HeadCandidate> children) const;

  std::uint32_t temporal_tag(std::uint32_t base) const;           // NN -> NNT, none if there is no such tag
  bool splices(std::uint32_t parent, std::uint32_t child) const;  // clause flattening
  std::uint32_t name_below_root(std::uint32_t base) const;        // of a flattened label
  // How a word below a tag with spellings is written; the word itself unless the profile says otherwise.
  std::string_view spelling(std::uint32_t base, std::string_view word) const;
  bool is_closed_word(std::string_view lower) const { return closed_words_.find(lower) != none; }
  bool is_bracket_word(std::string_view word) const { return bracket_words_.find(word) != none; }
  bool punctuation_by_word() const { return punctuation_by_word_; }
  const std::string& temporal_function() const { return temporal_function_; }
  // Ids of the atoms the transforms write: ROOT and the five number classes in the order of the spec.
  std::uint32_t root() const { return root_; }
  std::uint32_t number_class(int index) const { return number_classes_[index]; }

 private:
  struct Step {
    HeadStep::Kind kind;
    bool from_right;
    std::vector<std::uint8_t> rank;  // by atom; 255 = not in the list
  };
  struct Row {
    bool default_right = false;
    std::vector<Step> steps;
    std::vector<bool> listed;  // in any priority or any step
  };
  std::uint32_t canonical(std::uint32_t base) const { return base < canonical_.size() ? canonical_[base] : base; }
  bool has_flag(std::uint32_t base, std::uint32_t flag) const {
    return base < flags_.size() && (flags_[base] & flag) != 0;
  }
  std::uint32_t flags_of_text(std::string_view label) const;
  void add(const std::vector<std::string>& labels, std::uint32_t flag);
  void compile_rows(const ProfileData& data);
  void check_categories(const ProfileData& data) const;
  std::uint32_t match(const Row& row, std::span<const HeadCandidate> children) const;
  std::uint32_t repair(const Row& row, std::uint32_t head, std::span<const HeadCandidate> children) const;

  Symbols atoms_, closed_words_, bracket_words_;
  std::vector<std::uint32_t> flags_, canonical_, temporal_, below_root_;
  std::vector<std::string> closed_prefixes_;
  std::string separators_;
  std::vector<std::string> compounds_;                                     // longest first
  std::vector<std::pair<std::string, std::string>> renamed_whole_;         // sorted
  std::vector<std::pair<std::string, std::string>> renamed_by_beginning_;  // longest first
  std::vector<std::pair<std::uint32_t, std::uint32_t>> clause_flattening_;
  std::vector<std::tuple<std::uint32_t, std::string, std::string>> spellings_;
  std::vector<std::uint32_t> row_of_;
  std::vector<Row> rows_;
  Row unknown_;
  std::string temporal_function_;
  std::uint32_t root_ = 0;
  std::uint32_t number_classes_[5] = {};
  bool punctuation_by_word_ = false;
};

}  // namespace treelm
