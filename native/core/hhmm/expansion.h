// One step of the HHMM: every stack of a beam extended by a word, merged and pruned.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "hhmm/beam.h"
#include "hhmm/context_view.h"
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
  ContextView& context() { return context_; }

 private:
  friend class StackExpansion;

  // A stack that may come next: below `node` of the old beam, perhaps under a new element active/awaited.
  struct Candidate {
    double value;
    std::uint32_t node, active, awaited;  // active is no_symbol where there is no new element
    std::uint32_t top;
  };
  // A stack of the old beam: what it does next, and what that brings at most.
  struct Source {
    double share;                // its weight, by what is expected
    double within, within_top;   // to a new stack with the same tail, with and without a new element
    double across, across_tags;  // to one with a shorter tail
    std::uint32_t plan, cross;
  };
  // The stacks one element deeper than a node, below elements with one active symbol.
  struct Group {
    std::uint32_t active, first, last;  // sources
    double across;                      // what they bring at most to an element
    double within;                      // what the stacks of the node bring at most to one with this active symbol
    double expected;                    // how often the symbol is expected below the node
  };

  WordMemo memo_;
  ContextView context_;
  std::uint64_t node_stamp_ = 0, group_stamp_ = 0;        // of what is being looked at
  std::vector<double> top_sum_, right_sum_, within_sum_;  // by symbol, as are the marks
  std::vector<std::uint64_t> right_mark_, group_mark_;
  std::vector<std::uint32_t> tops_;
  std::vector<std::pair<std::uint32_t, std::int32_t>> rights_;  // and their rows
  std::vector<Group> tag_groups_;  // those that bring something where a tag is awaited; so much at most
  std::vector<std::uint32_t> child_start_, stack_start_;
  std::vector<Source> sources_;
  std::vector<const WordView::Parent*> parents_;  // of one symbol, by stack of the node
  std::vector<double> node_reach_, values_;
  double guess_factor_ = 1;  // by which thresholds are guessed higher, because that has been right
  std::vector<Candidate> candidates_;
  std::vector<std::uint32_t> bucket_size_;                // number of candidates by weight
  std::uint32_t lowest_bucket_ = 1, highest_bucket_ = 0;  // with candidates
  std::vector<std::uint8_t> used_;
  std::vector<std::uint32_t> place_, node_of_, new_start_;
};

class StackExpansion {
 public:
  // The context of the workspace is that of the beam.
  StackExpansion(const HhmmGrammar& grammar, const HhmmOptions& options, const HhmmBeam& beam,
                 std::span<const Emission> emissions, WordPlans& plans, HhmmWorkspace& work);

  // The mass of all stacks that come next, before any is pruned.
  double run();
  // The stacks kept, their weights scaled to 1, and what they weighed; `before` are the words before the next one.
  std::pair<std::shared_ptr<HhmmBeam>, double> new_beam(std::vector<std::uint32_t> before);

 private:
  using Candidate = HhmmWorkspace::Candidate;
  using Source = HhmmWorkspace::Source;
  using Group = HhmmWorkspace::Group;

  void place_stacks();
  void weigh_nodes();
  double guessed_threshold() const;
  bool expand(double threshold);
  void expand_node(std::uint32_t node);
  void expand_groups(std::int32_t row);
  double find_parents(std::uint32_t symbol, double expected);
  void add_up(const Group& group);
  void add_within();
  void look_through(const Group& group);
  double sum_across(const Group& group, std::uint32_t right) const;
  double sum_within(std::uint32_t right) const;
  // The share of a stack of the node; that of an only one comes into its sum at the end.
  double own_share(std::uint32_t source) const {
    return node_.last - node_.first == 1 ? 1.0 : work_.sources_[source].share;
  }
  void expand_alone();
  void expand_together();
  void expand_tops(std::int32_t row);
  void expand_top_alone();
  void expand_tops_together(std::int32_t row, double within);
  void add_tags(const Group& group);
  void add_within_tags();
  double take_tags(double expected);
  // An element and the tags below it: what comes from one element deeper, and what the stacks of the node bring, to be
  // multiplied by how often the active symbol is expected.
  void emit(std::uint32_t active, std::uint32_t awaited, std::int32_t row, double across, double expected,
            double within) {
    const double value = across + expected * (node_.share * within);
    if (value * word_.largest_emission(row) >= careful * threshold_)
      emit_tags({value, node_.node, active, awaited, no_symbol}, row, across, expected * within);
  }
  void emit_tags(const Candidate& element, std::int32_t row, double across, double within);
  void begin(double threshold);
  void add(const Candidate& candidate);
  void prune();
  std::vector<std::uint32_t> symbols_of(const Candidate& candidate) const;
  void place_nodes(HhmmBeam& made);

  // Rounding must not leave out what just reaches a threshold.
  static constexpr double careful = 1 - 1e-9;

  const HhmmGrammar& grammar_;
  const HhmmOptions& options_;
  const HhmmBeam& beam_;
  std::span<const Emission> emissions_;
  WordPlans& plans_;
  const WordView& word_;
  HhmmWorkspace& work_;
  std::vector<std::uint8_t> depths_;
  struct {
    std::uint32_t node, level, first, last;  // its stacks and their level
    double share;                            // that of an only stack, else 1
    double within;                           // what these bring at most to an element
  } node_{};
  double total_ = 0, threshold_ = 0, largest_ = 0;
  std::uint32_t bucket_ = 0;  // that of the threshold
  std::size_t above_ = 0;     // candidates in higher ones
  std::size_t limit_;
};

}  // namespace treelm
