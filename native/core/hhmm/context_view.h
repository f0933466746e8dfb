// The words before a parser state, and what they make of its next tag and word. Without tables of such words
// everything is as the grammar says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hhmm/grammar.h"
#include "hhmm/next_tags.h"

namespace treelm {

// Not for threads.
class ContextView {
 public:
  explicit ContextView(const HhmmGrammar& grammar) : grammar_(grammar), next_tags_(grammar) {}

  // Turns to words before, the latest first, as many as the grammar remembers; the view keeps a copy.
  void show(std::span<const std::uint32_t> before);

  // The tags of a word, each with its factor times P(word | tag, words before); the next call writes over them.
  std::span<const Emission> emissions(std::uint32_t word);
  // P(word | tag, words before), where P(word | tag) is known.
  double word_probability(std::uint32_t word, Emission by_tag) const;

  bool weighs_tags() const { return weighs_tags_; }
  // By how much words before make a tag likelier.
  double factor(std::uint32_t tag) const { return weighs_tags_ ? factors_[tag - grammar_.phrasal()] : 1.0; }
  // What the tags after a stack add up to with their factors: by this they are divided.
  double sum(std::uint32_t level, std::uint32_t awaited, std::uint32_t active) {
    return weighs_tags_ ? next_tags_.sum(level, awaited, active) : 1.0;
  }
  // The same before the first word.
  double first_sum() { return weighs_tags_ ? next_tags_.first_sum() : 1.0; }
  NextTags& next_tags() { return next_tags_; }

 private:
  const HhmmGrammar& grammar_;
  NextTags next_tags_;
  std::vector<std::uint32_t> before_;
  bool weighs_tags_ = false;
  std::vector<double> factors_;
  std::vector<Emission> emissions_;
};

// The words before a word that comes after `before`.
std::vector<std::uint32_t> words_before(std::span<const std::uint32_t> before, std::uint32_t word);

}  // namespace treelm
