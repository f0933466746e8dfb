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
  // Begins a step: the shares of stacks are those of a new beam.
  void begin_step() { ++step_; }

  WordView& view() { return view_; }
  const WordView& view() const { return view_; }
  std::size_t bytes() const;

  // A new stack below a node: an element `pair` is pushed and a tag emits the word.
  struct Outcome {
    double value;
    std::uint32_t pair, tag;
  };
  // A completed constituent becomes the left child of a new one in the same element: for all stacks with one row of
  // progeny above them and one active symbol.
  struct Plan {
    std::int32_t row = 0;
    std::uint32_t active = 0, level = 0;
    double expected = 0;       // of the active symbol in the row
    double largest_share = 0;  // of a stack of this step
    std::uint64_t step = 0;
    double total = 0, largest = 0;  // probability of anything, and of the likeliest outcome
    double cut = 0;                 // outcomes that are less likely are not listed
    bool made = false;
    std::uint32_t first = 0, size = 0, first_top = 0, tops = 0;
  };
  // The place of the plan of a stack; `share` is its weight, to be divided by what is expected.
  std::uint32_t find(std::int32_t row, std::uint32_t active, std::uint32_t level, double weight);
  const Plan& plan(std::uint32_t place) const { return plans_[place]; }
  // The plan with every outcome by which a stack of this step reaches the threshold.
  const Plan& made(std::uint32_t place, double threshold);
  // Outcomes of a plan, the likeliest first.
  std::span<const Outcome> outcomes(const Plan& plan) const { return {outcomes_.data() + plan.first, plan.size}; }
  // Those that push nothing: an active symbol whose right child is a tag of the word.
  std::span<const Emission> tops(const Plan& plan) const { return {tops_.data() + plan.first_top, plan.tops}; }

  // A completed constituent becomes the left child of what the element above awaits.
  struct CrossPlan {
    std::uint32_t awaited = 0, active = 0, level = 0;
    double total = 0, largest = 0;
    std::uint32_t first = 0, size = 0;
  };
  std::uint32_t find_cross(std::uint32_t level, std::uint32_t awaited, std::uint32_t active);
  const CrossPlan& cross(std::uint32_t place) const { return cross_plans_[place]; }
  // What is awaited next, with the probability of the rule: tags first, then those by which most is reached.
  struct Right {
    double reach;  // the probability of the likeliest outcome; of tags without end
    double value;
    std::uint32_t symbol;
    std::int32_t row;  // of progeny below the symbol; -1 for tags
  };
  std::span<const Right> rights(const CrossPlan& plan) const { return {rights_.data() + plan.first, plan.size}; }
  const double* progeny(std::int32_t row) { return progeny_.of(row); }

 private:
  void make(Plan& plan, double cut);
  void make(CrossPlan& plan);

  const HhmmGrammar& grammar_;
  ScatteredRow& progeny_;
  WordView view_;
  std::uint64_t step_ = 0;
  HashedPlaces places_, cross_places_;
  std::vector<Plan> plans_;
  std::vector<CrossPlan> cross_plans_;
  std::vector<Outcome> outcomes_;
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
