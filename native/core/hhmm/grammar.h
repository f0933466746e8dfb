// The depth-bounded grammar of a right-corner HHMM, as tables for the beam search: rules by left
// child, rules by parent and left child, expected left progeny, and the words each tag emits.
// Schwartz et al. 2011; the equations are those of docs/systems/hhmm.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "hhmm/contexts.h"

namespace treelm {

inline constexpr std::uint32_t no_symbol = 0xFFFFFFFFu;
inline constexpr std::uint32_t largest_stack_depth = 16;

// Symbols: 0 is the top, then phrases, then tags; one of the tags is the end of the sentence. Levels of the
// stack count from 1; `left` has a row of rule probabilities for each of 0..depth (row 0 unused), `right` too.
struct HhmmArrays {
  std::uint32_t symbols = 0, phrasal = 0, end = 0, depth = 0;
  std::span<const std::int32_t> rules;  // parent, left, right
  std::span<const double> left, right;
  // Expected left progeny: for levels 0..depth+1 (0 unused) and each symbol awaited above, a row or -1.
  std::span<const std::int32_t> row_of;
  std::span<const std::int64_t> row_start;
  std::span<const std::int32_t> row_symbol;  // ascending in a row
  std::span<const double> row_value;
  std::span<const std::int64_t> word_start;
  std::span<const std::int32_t> word_tag;  // ascending in a word
  std::span<const double> word_value;
  std::span<const double> unigram;  // one per word
  double end_share = 0;
  std::shared_ptr<const HhmmContexts> contexts;  // what words before tell, if anything
};

class HhmmGrammar {
 public:
  // Checks everything. Throws Error(table).
  explicit HhmmGrammar(const HhmmArrays& arrays);

  std::uint32_t symbols() const { return symbols_; }
  std::uint32_t phrasal() const { return phrasal_; }
  std::uint32_t end() const { return end_; }
  std::uint32_t depth() const { return depth_; }
  std::size_t words() const { return word_start_.size() - 1; }
  std::size_t rows() const { return row_start_.size() - 1; }
  bool is_tag(std::uint32_t symbol) const { return symbol >= phrasal_; }

  std::span<const Emission> emissions(std::uint32_t word) const {
    return {emissions_.data() + word_start_[word], emissions_.data() + word_start_[word + 1]};
  }
  double unigram(std::uint32_t word) const { return unigram_[word]; }
  // What words before tell, or nothing.
  const HhmmContexts* contexts() const { return contexts_.get(); }
  // Words before that a state remembers; the pad stands before the first word.
  std::uint32_t context_length() const { return contexts_ ? contexts_->length() : 0; }
  std::uint32_t pad() const { return static_cast<std::uint32_t>(words()); }
  double end_share() const { return end_share_; }

  // The row of expected left progeny at `level` below an awaited symbol, or -1.
  std::int32_t row(std::uint32_t level, std::uint32_t awaited) const {
    return row_of_[std::size_t{level} * symbols_ + awaited];
  }
  struct RowView {
    std::span<const std::uint32_t> symbols;
    std::span<const double> values;
  };
  RowView row_view(std::int32_t row) const {
    const auto first = row_start_[static_cast<std::size_t>(row)];
    const auto size = row_start_[static_cast<std::size_t>(row) + 1] - first;
    return {{row_symbol_.data() + first, size}, {row_value_.data() + first, size}};
  }
  // The rows that hold a tag, and its expected number in each.
  struct ColumnView {
    std::span<const std::uint32_t> rows;
    std::span<const double> values;
  };
  ColumnView tag_column(std::uint32_t tag) const {
    const std::size_t first = column_start_[tag - phrasal_], size = column_start_[tag - phrasal_ + 1] - first;
    return {{column_row_.data() + first, size}, {column_value_.data() + first, size}};
  }
  // Expected number of `symbol` in a row; 0 for no row.
  double progeny(std::int32_t row, std::uint32_t symbol) const;

  // Rules by left child, then by parent, then by right child; phrases come before tags.
  struct RuleRange {
    std::size_t first, last;
  };
  // A symbol that a left child can make, by rules that begin with `first`; those from `tags` on have a tag on the
  // right, and those of the next parent follow.
  struct LeftParent {
    std::uint32_t symbol, first, tags;
  };
  // The parents of a left child, and one more, with which its rules end.
  std::span<const LeftParent> left_parents(std::uint32_t left) const {
    return {left_parents_.data() + left_start_[left], left_parents_.data() + left_start_[left + 1] + 1};
  }
  std::uint32_t left_right(std::size_t rule) const { return left_right_[rule]; }
  // By the place of a rule: the row below its right child at one level further, or -1. Not for tags.
  const std::int32_t* left_rows(std::uint32_t level) const { return left_row_.data() + level * left_right_.size(); }
  const double* left_values(std::uint32_t level) const { return left_value_.data() + level * left_right_.size(); }
  static constexpr std::size_t no_rule = ~std::size_t{0};

  // Rules by parent and left child: right children and their probabilities below an awaited parent.
  RuleRange by_parent(std::uint32_t parent, std::uint32_t left) const;
  // The place among these of the rule with a right child, or no_rule.
  std::size_t find_right(RuleRange rules, std::uint32_t right) const;
  std::uint32_t cross_right(std::size_t place) const { return cross_right_[place]; }
  const double* cross_values(std::uint32_t level) const { return cross_value_.data() + level * cross_right_.size(); }

 private:
  void copy_rows(const HhmmArrays& arrays);
  void copy_words(const HhmmArrays& arrays);
  void index_rules(const HhmmArrays& arrays);

  std::uint32_t symbols_, phrasal_, end_, depth_;
  double end_share_;
  std::shared_ptr<const HhmmContexts> contexts_;
  std::vector<std::int32_t> row_of_;
  std::vector<std::size_t> row_start_;
  std::vector<std::uint32_t> row_symbol_;
  std::vector<double> row_value_;
  std::vector<std::size_t> column_start_;  // by tag
  std::vector<std::uint32_t> column_row_;
  std::vector<double> column_value_;
  std::vector<std::size_t> word_start_;
  std::vector<Emission> emissions_;
  std::vector<double> unigram_;
  std::vector<std::size_t> left_start_;  // of parents, by left child
  std::vector<LeftParent> left_parents_;
  std::vector<std::uint32_t> left_right_;
  std::vector<std::int32_t> left_row_;
  std::vector<double> left_value_;
  std::vector<std::size_t> cross_start_;  // by parent
  std::vector<std::uint32_t> cross_left_, cross_right_;
  std::vector<double> cross_value_;
};

}  // namespace treelm
