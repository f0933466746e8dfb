// What stacks do when a word comes, worked out once for all that look alike from below, and kept for the next time
// the word comes.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hashed_places.h"
#include "hhmm/grammar.h"
#include "hhmm/word.h"

namespace treelm {

// The expected progeny of one row by symbol, until another row is asked for.
class ScatteredRow {
 public:
  explicit ScatteredRow(const HhmmGrammar& grammar) : grammar_(grammar), values_(grammar.symbols(), 0.0) {}
  const double* of(std::int32_t row);

 private:
  const HhmmGrammar& grammar_;
  std::int32_t row_ = -1;
  std::vector<double> values_;
};

// Everything that was worked out about one word.
class WordPlans {
 public:
  // `progeny` is lent.
  WordPlans(const HhmmGrammar& grammar, ScatteredRow& progeny);

  // Turns to a word with these tags, and forgets the one before.
  void show(std::span<const Emission> emissions);

  WordView& view() { return view_; }
  const WordView& view() const { return view_; }
  std::size_t bytes() const;

  // A completed constituent becomes the left child of a new one in the same element: for all stacks with one row of
  // progeny above them and one active symbol.
  struct Plan {
    std::int32_t row = 0;
    std::uint32_t active = 0, level = 0;
    double expected = 0;                  // of the active symbol in the row
    double total = 0;                     // probability of anything
    double largest = 0, largest_top = 0;  // of the likeliest stack with a new element, and without
    std::uint32_t parents = 0;            // their place in the view, if anything is expected
    double cut = 0;                       // what is less likely is not listed
    bool listed = false;
    std::uint32_t first = 0, size = 0, first_top = 0, tops = 0;
  };
  std::uint32_t find(std::int32_t row, std::uint32_t active, std::uint32_t level);
  const Plan& plan(std::uint32_t place) const { return plans_[place]; }
  // A symbol that may be made, the probability of its likeliest outcome, and how often it is expected.
  struct Made {
    double reach, expected;
    std::uint32_t place;  // among the parents of the view
  };
  // Sees to it that every symbol made with at least a probability `cut` is listed, and all tops.
  void list(std::uint32_t place, double cut);
  // Those listed, the likeliest first.
  std::span<const Made> made(const Plan& plan) const { return {made_.data() + plan.first, plan.size}; }
  // Active symbols whose right child is a tag of the word, so that nothing is pushed; the likeliest first.
  std::span<const Emission> tops(const Plan& plan) const { return {tops_.data() + plan.first_top, plan.tops}; }

  // A completed constituent becomes the left child of what the element above awaits.
  struct CrossPlan {
    std::uint32_t awaited = 0, active = 0, level = 0;
    double total = 0, largest = 0;  // probability of anything, and of the likeliest outcome that pushes a tag
    double tags = 0;                // that a tag of the word is awaited
    std::uint32_t plan = 0;         // of the same stacks within their element
    HhmmGrammar::RuleRange rules{0, 0};
    bool listed = false, sorted = false;
    std::uint32_t first = 0, size = 0;
  };
  // The place of the plan of stacks one level deeper.
  std::uint32_t find_cross(std::uint32_t level, std::uint32_t awaited, std::uint32_t active);
  const CrossPlan& cross(std::uint32_t place) const { return cross_plans_[place]; }
  // What is awaited next and is no tag, with the probability of the rule and that of its likeliest outcome.
  struct Right {
    double reach, value;
    std::uint32_t symbol;
    std::int32_t row;  // of progeny below the symbol
  };
  // Those of a plan; the next call may move them.
  std::span<const Right> rights(std::uint32_t place);
  // The same, that by which most is reached first.
  std::span<const Right> sorted_rights(std::uint32_t place);
  // The probability of the rule with a right child; 0 for none.
  double cross_value(const CrossPlan& plan, std::uint32_t right) const;
  const double* progeny(std::int32_t row) { return progeny_.of(row); }

 private:
  void make(Plan& plan);
  void make(CrossPlan& plan);

  const HhmmGrammar& grammar_;
  ScatteredRow& progeny_;
  WordView view_;
  HashedPlaces places_, cross_places_;
  std::vector<Plan> plans_;
  std::vector<CrossPlan> cross_plans_;
  std::vector<Made> made_;
  std::vector<Emission> tops_;
  std::vector<Right> rights_;
};

// Plans by word: those of words that come again are kept, the least recently used go first. Not for threads.
class WordMemo {
 public:
  WordMemo(const HhmmGrammar& grammar, std::size_t bytes)
      : grammar_(grammar), capacity_(bytes), progeny_(grammar), unkept_(grammar, progeny_) {}
  WordMemo(const WordMemo&) = delete;
  WordMemo& operator=(const WordMemo&) = delete;

  WordPlans& turn_to(std::uint32_t word);
  // A word that the grammar does not know.
  WordPlans& turn_to(std::span<const Emission> emissions);

  std::uint64_t asked() const { return asked_; }
  std::uint64_t found() const { return found_; }
  void reset_counts() { asked_ = found_ = 0; }

 private:
  struct Entry {
    std::uint32_t word;
    std::size_t bytes;
    WordPlans plans;
  };
  void weigh();

  const HhmmGrammar& grammar_;
  std::size_t capacity_, bytes_ = 0;
  std::uint64_t asked_ = 0, found_ = 0;
  ScatteredRow progeny_;
  WordPlans unkept_;
  std::list<Entry> entries_;  // the latest first
  std::unordered_map<std::uint32_t, std::list<Entry>::iterator> places_;
  std::vector<std::uint8_t> seen_;  // words that came once
};

}  // namespace treelm
