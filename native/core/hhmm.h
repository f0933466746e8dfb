// The beam search of the right-corner store model: one word at a time, all stores at once.
// Schwartz et al. 2011. Stores are merged before anything is pruned: contributions to one store come from
// stores with the same tail and from those one element deeper, so each tail is worked through once and its
// results are final; no table of all candidates is needed, and pruning can begin at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hhmm_beam.h"
#include "hhmm_grammar.h"
#include "hhmm_word.h"

namespace treelm {

struct HhmmOptions {
  std::size_t beam = 2000;  // stores kept; 0 for all
  double ratio = 0;         // stores lighter than this share of the heaviest are dropped
  double epsilon = 0;       // share of the unigram model, which makes every word possible
  bool single = true;       // weights are rounded to 32 bits
};

struct HhmmStep {
  double log_prob = 0;
  double log_mass = 0;  // natural logarithm by which the mass of the beam has changed
  double kept = 0;      // share of the mass that pruning left
  bool restarted = false;
  SharedBeam beam;
};

class HhmmSearch {
 public:
  HhmmSearch(std::shared_ptr<const HhmmGrammar> grammar, HhmmOptions options);

  const HhmmGrammar& grammar() const { return *grammar_; }
  const HhmmOptions& options() const { return options_; }

  // What a thread needs; one for each.
  class Workspace;

  SharedBeam initial() const;
  // Throws Error(argument) for a word that does not exist.
  HhmmStep advance(const HhmmBeam& beam, std::uint32_t word, Workspace& work) const;
  // The same for a word that the grammar does not know: tags ascending, and its frequency.
  HhmmStep advance(const HhmmBeam& beam, std::span<const Emission> emissions, double unigram, Workspace& work) const;
  double finish(const HhmmBeam& beam) const;
  // The probability of every symbol to emit what comes next, that of the end at its place.
  std::vector<double> next_tags(const HhmmBeam& beam) const;

 private:
  HhmmStep restart(std::span<const Emission> emissions, double log_prob) const;

  std::shared_ptr<const HhmmGrammar> grammar_;
  HhmmOptions options_;
};

class HhmmSearch::Workspace {
 public:
  explicit Workspace(const HhmmGrammar& grammar);

 private:
  friend class StoreExpansion;

  // A store that may come next: below `node` of the old beam, perhaps under a new element active/awaited.
  struct Candidate {
    double value;
    std::uint32_t node, active, awaited;  // active is no_symbol where there is no new element
    std::uint32_t top;
  };

  // What stores with one row of progeny above them and one active symbol do next, worked out once for all of
  // them: the probability of anything, and what is likely enough to matter.
  struct Outcome {
    double value;
    std::uint32_t pair, tag;
  };
  struct Plan {
    std::uint64_t stamp = 0;
    std::int32_t row = 0;
    std::uint32_t active = 0, level = 0;
    double largest_share = 0, total = 0, largest = 0;
    bool made = false;
    std::uint32_t first = 0, size = 0, first_top = 0, tops = 0;
  };
  struct CrossPlan {
    std::uint64_t stamp = 0;
    std::uint32_t awaited = 0, active = 0, level = 0;
    double total = 0, largest = 0;
    std::uint32_t first = 0, size = 0;
  };

  WordView word_;
  std::uint64_t stamp_ = 0, node_stamp_ = 0;
  std::vector<double> pair_sum_, right_sum_, top_sum_, progeny_;
  std::vector<std::uint64_t> pair_mark_;
  std::vector<std::uint32_t> pairs_, rights_, tops_;
  std::vector<double> share_;
  std::vector<std::uint32_t> child_start_, store_start_, plan_of_, order_;
  std::vector<double> weight_of_node_;
  std::vector<Plan> plans_;
  std::vector<CrossPlan> cross_plans_;
  std::vector<Outcome> outcomes_;
  std::vector<Emission> top_outcomes_, cross_outcomes_;
  std::vector<Candidate> candidates_;
};

}  // namespace treelm
