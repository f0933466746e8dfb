// The beam search of the right-corner store model: one word at a time, all stores at once.
// Schwartz et al. 2011. Stores are merged before anything is pruned: contributions to one store come from
// stores with the same tail and from those one element deeper, so each tail is worked through once and its
// results are final; no table of all candidates is needed, and pruning can begin at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hhmm/beam.h"
#include "hhmm/grammar.h"
#include "hhmm/plans.h"

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
  HhmmStep advance(const HhmmBeam& beam, std::span<const Emission> emissions, double unigram, WordPlans& plans,
                   Workspace& work) const;
  HhmmStep restart(std::span<const Emission> emissions, double log_prob) const;

  std::shared_ptr<const HhmmGrammar> grammar_;
  HhmmOptions options_;
};

class HhmmSearch::Workspace {
 public:
  // Keeps what was worked out about words in so many bytes, or a little more.
  explicit Workspace(const HhmmGrammar& grammar, std::size_t memo_bytes = std::size_t{128} << 20);

  // Words that were read, and those of them about which everything was known.
  std::uint64_t words_asked() const { return memo_.asked(); }
  std::uint64_t words_found() const { return memo_.found(); }
  void reset_counts() { memo_.reset_counts(); }

 private:
  friend class HhmmSearch;
  friend class StoreExpansion;

  // A store that may come next: below `node` of the old beam, perhaps under a new element active/awaited.
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
  std::vector<std::uint32_t> child_start_, store_start_, plan_of_, cross_of_;
  std::vector<std::pair<double, std::uint32_t>> order_;
  std::vector<double> weight_of_node_, group_reach_;
  std::vector<Candidate> candidates_;
};

}  // namespace treelm
