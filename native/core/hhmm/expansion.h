// One step of the HHMM: every stack of a beam extended by a word, merged and pruned.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "hhmm/beam.h"
#include "hhmm/grammar.h"
#include "hhmm/plans.h"

namespace treelm {

struct HhmmOptions {
  std::size_t beam = 2000;  // stacks kept; 0 for all
  double ratio = 0;         // stacks lighter than this share of the heaviest are dropped
  double epsilon = 0;       // share of the unigram model, which makes every word possible
  bool single = true;       // weights are rounded to 32 bits
};

// What a thread needs for one step after another.
class HhmmWorkspace {
 public:
  // Keeps what was worked out about words in so many bytes, or a little more.
  explicit HhmmWorkspace(const HhmmGrammar& grammar, std::size_t memo_bytes = std::size_t{128} << 20);

  // Words that were read, and those of them about which everything was known.
  std::uint64_t words_asked() const { return memo_.asked(); }
  std::uint64_t words_found() const { return memo_.found(); }
  void reset_counts() { memo_.reset_counts(); }
  WordMemo& memo() { return memo_; }

 private:
  friend class StackExpansion;

  // A stack that may come next: below `node` of the old beam, perhaps under a new element active/awaited.
  struct Candidate {
    double value;
    std::uint32_t node, active, awaited;  // active is no_symbol where there is no new element
    std::uint32_t top;
  };

  WordMemo memo_;
  std::uint64_t node_stamp_ = 0;
  std::vector<double> pair_sum_, right_sum_, top_sum_;
  std::vector<std::uint64_t> pair_mark_, parent_mark_;
  std::vector<std::pair<std::uint32_t, std::int32_t>> pairs_;  // and the row below the right child, negative for tags
  std::vector<std::uint32_t> rights_, tops_;
  std::vector<double> share_;
  std::vector<std::uint32_t> child_start_, stack_start_, plan_of_, cross_of_;
  std::vector<std::pair<double, std::uint32_t>> order_;
  std::vector<double> weight_of_node_, group_reach_;
  std::vector<Candidate> candidates_;
};

class StackExpansion {
 public:
  StackExpansion(const HhmmGrammar& grammar, const HhmmOptions& options, const HhmmBeam& beam,
                 std::span<const Emission> emissions, WordPlans& plans, HhmmWorkspace& work);

  // The mass of all stacks that come next, before any is pruned.
  double run();
  // The stacks kept, their weights scaled to 1, and what they weighed.
  std::pair<std::shared_ptr<HhmmBeam>, double> new_beam();

 private:
  using Candidate = HhmmWorkspace::Candidate;
  using Plan = WordPlans::Plan;
  using CrossPlan = WordPlans::CrossPlan;

  void place_stacks();
  void order_nodes();
  void expand_node(std::uint32_t node);
  void sum_within(std::uint32_t node, std::uint32_t level);
  double reach_across(std::uint32_t node, std::uint32_t level, double within);
  void reduce_across(std::uint32_t node, std::uint32_t level, double within);
  // An element that a completed constituent below it goes on with.
  struct Above {
    std::uint32_t node, active;
    bool single;                            // whether the node has one stack
    double parents;                         // expected number of the active symbol
    std::span<const WordView::Rule> rules;  // by which the one stack makes the active symbol
    double within;                          // what the stacks of the node bring at most
  };
  std::span<const WordView::Rule> rules_of(std::uint32_t level, std::uint32_t left, std::uint32_t parent);
  void cross_one(const Above& above, std::uint32_t stack);
  void cross_several(const Above& above, std::uint32_t level, std::uint32_t first, std::uint32_t last);
  void settle(const Above& above, std::uint32_t right, std::int32_t row, double value);
  void emit_pairs(std::uint32_t node, std::int32_t row);
  void emit_tag(std::uint32_t active, std::uint32_t tag, double value);
  void emit(std::uint32_t node, std::uint32_t active, std::uint32_t awaited, std::int32_t row, double value);
  void emit_plan(std::uint32_t node, std::uint32_t stack);
  void flush_tops(std::uint32_t node);
  void add(const Candidate& candidate);
  void prune();
  std::vector<std::uint32_t> symbols_of(const Candidate& candidate) const;

  const HhmmGrammar& grammar_;
  const HhmmOptions& options_;
  const HhmmBeam& beam_;
  std::span<const Emission> emissions_;
  WordPlans& plans_;
  const WordView& word_;
  HhmmWorkspace& work_;
  std::vector<std::uint8_t> depths_;
  double total_ = 0, threshold_ = 0, largest_ = 0;
  std::size_t limit_;
};

}  // namespace treelm
