// The part of a weighted grammar that one sentence can use, with small numbers for its symbols.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "chart/weighted_cky.h"

namespace treelm {

// Rules listed by each of their symbols.
class RuleLists {
 public:
  explicit RuleLists(const WeightedGrammar& grammar);

  struct Rule {
    std::uint32_t parent, left, right, id;
    double weight;
  };
  std::size_t symbols() const { return first_left_.size() - 1; }
  // By right child, then by number.
  std::span<const Rule> with_left(std::uint32_t symbol) const {
    return std::span(rules_).subspan(first_left_[symbol], first_left_[symbol + 1] - first_left_[symbol]);
  }
  // Places among all rules, the lists by left child one after the other.
  std::span<const std::uint32_t> with_right(std::uint32_t symbol) const {
    return std::span(by_right_).subspan(first_right_[symbol], first_right_[symbol + 1] - first_right_[symbol]);
  }
  std::span<const std::uint32_t> with_parent(std::uint32_t symbol) const {
    return std::span(by_parent_).subspan(first_parent_[symbol], first_parent_[symbol + 1] - first_parent_[symbol]);
  }
  const Rule& at(std::uint32_t place) const { return rules_[place]; }

 private:
  std::vector<Rule> rules_;
  std::vector<std::uint32_t> first_left_, first_right_, first_parent_, by_right_, by_parent_;
};

// Symbols that the tags of a sentence can be made into and that stand in trees below ROOT, and the rules
// between them. Symbols keep their order. One thread uses it for one sentence after the other.
class SentenceGrammar {
 public:
  // Nothing else is left if it returns false: no tree can be made of these tags.
  bool choose(const RuleLists& lists, std::span<const double> root_weights, std::span<const std::int32_t> tags);

  struct Rule {
    std::uint32_t parent, id;
    double weight;
  };
  // Numbers of symbols in the whole grammar.
  std::span<const std::uint32_t> symbols() const { return symbols_; }
  std::size_t blocks() const { return blocks_; }
  // Small number of a symbol, or `none`.
  std::uint32_t number_of(std::uint32_t symbol) const { return numbers_[symbol]; }
  // Right children that go with a left one, as bits of a block of 64 symbols; pairs lie by right child.
  struct Partners {
    std::uint64_t bits;
    std::uint32_t block, first_pair;
  };
  std::span<const Partners> partners(std::uint32_t left) const {
    return std::span(partners_).subspan(first_partners_[left], first_partners_[left + 1] - first_partners_[left]);
  }
  std::span<const Rule> rules_of(std::uint32_t pair) const {
    return std::span(rules_).subspan(pairs_[pair], pairs_[pair + 1] - pairs_[pair]);
  }

 private:
  void mark_made(const RuleLists& lists, std::span<const std::int32_t> tags);
  void mark_reached(const RuleLists& lists, std::span<const double> root_weights);
  void list_rules(const RuleLists& lists);

  enum class Mark : std::uint8_t { no, made, reached };
  std::vector<Mark> marks_;  // by symbol of the whole grammar
  std::vector<std::uint32_t> todo_, made_;
  std::vector<std::uint32_t> symbols_, numbers_;
  std::size_t blocks_ = 0;
  std::vector<Partners> partners_;
  std::vector<std::uint32_t> first_partners_, pairs_;
  std::vector<Rule> rules_;
};

}  // namespace treelm
