// The beam search of the right-corner HHMM: one word at a time, all stacks at once.
// Schwartz et al. 2011. Stacks are merged before anything is pruned: contributions to one stack come from
// stacks with the same tail and from those one element deeper, so each tail is worked through once and its
// results are final; no table of all candidates is needed, and pruning can begin at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hhmm/beam.h"
#include "hhmm/expansion.h"
#include "hhmm/grammar.h"

namespace treelm {

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
  using Workspace = HhmmWorkspace;

  SharedBeam initial() const;
  // Throws Error(argument) for a word that does not exist.
  HhmmStep advance(const HhmmBeam& beam, std::uint32_t word, Workspace& work) const;
  // The same for a word that the grammar does not know: tags ascending, and its frequency. Throws Error(argument) if
  // the grammar remembers words.
  HhmmStep advance(const HhmmBeam& beam, std::span<const Emission> emissions, double unigram, Workspace& work) const;
  double finish(const HhmmBeam& beam, Workspace& work) const;
  // The probability of every symbol to emit what comes next, that of the end at its place.
  std::vector<double> next_tags(const HhmmBeam& beam, Workspace& work) const;
  // The probability of every word to come next, without the unigram model.
  std::vector<double> next_words(const HhmmBeam& beam, Workspace& work) const;
  // P(word | tag, words before) for each tag of a word. Throws Error(argument) for a word that does not exist.
  std::vector<double> emissions(const HhmmBeam& beam, std::uint32_t word, Workspace& work) const;
  // The probability of coming to where a word with these tags can be emitted, before it is (Roark et al. 2009).
  double reach(const HhmmBeam& beam, std::span<const Emission> emissions, Workspace& work) const;

 private:
  HhmmStep advance(const HhmmBeam& beam, std::span<const Emission> emissions, double unigram, WordPlans& plans,
                   std::vector<std::uint32_t> before, Workspace& work) const;
  HhmmStep restart(std::span<const Emission> emissions, double log_prob, std::vector<std::uint32_t> before) const;
  std::vector<double> weighed_tags(const HhmmBeam& beam, ContextView& context) const;

  std::shared_ptr<const HhmmGrammar> grammar_;
  HhmmOptions options_;
};

}  // namespace treelm
