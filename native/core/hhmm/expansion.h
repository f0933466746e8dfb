// One step of the store model: every store of a beam extended by a word, merged and pruned.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "hhmm/search.h"

namespace treelm {

class StoreExpansion {
 public:
  StoreExpansion(const HhmmGrammar& grammar, const HhmmOptions& options, const HhmmBeam& beam,
                 std::span<const Emission> emissions, WordPlans& plans, HhmmSearch::Workspace& work);

  // The mass of all stores that come next, before any is pruned.
  double run();
  // The stores kept, their weights scaled to 1, and what they weighed.
  std::pair<std::shared_ptr<HhmmBeam>, double> new_beam();

 private:
  using Candidate = HhmmSearch::Workspace::Candidate;
  using Plan = WordPlans::Plan;
  using CrossPlan = WordPlans::CrossPlan;

  void place_stores();
  void order_nodes();
  void expand_node(std::uint32_t node);
  void sum_within(std::uint32_t node, std::uint32_t level);
  double reach_across(std::uint32_t node, std::uint32_t level, double within);
  void reduce_across(std::uint32_t node, std::uint32_t level, double within);
  // An element that a completed constituent below it goes on with.
  struct Above {
    std::uint32_t node, active;
    bool single;                            // whether the node has one store
    double parents;                         // expected number of the active symbol
    std::span<const WordView::Rule> rules;  // by which the one store makes the active symbol
    double within;                          // what the stores of the node bring at most
  };
  std::span<const WordView::Rule> rules_of(std::uint32_t level, std::uint32_t left, std::uint32_t parent);
  void cross_one(const Above& above, std::uint32_t store);
  void cross_several(const Above& above, std::uint32_t level, std::uint32_t first, std::uint32_t last);
  void settle(const Above& above, std::uint32_t right, std::int32_t row, double value);
  void emit_pairs(std::uint32_t node, std::int32_t row);
  void emit_tag(std::uint32_t active, std::uint32_t tag, double value);
  void emit(std::uint32_t node, std::uint32_t active, std::uint32_t awaited, std::int32_t row, double value);
  void emit_plan(std::uint32_t node, std::uint32_t store);
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
  HhmmSearch::Workspace& work_;
  std::vector<std::uint8_t> depths_;
  double total_ = 0, threshold_ = 0, largest_ = 0;
  std::size_t limit_;
};

}  // namespace treelm
