// Sentences that have much in common, such as those of an n-best list, scored by an n-gram table. Their words and what
// these are worth after the words before are looked up once, and then found in two small caches. Some texts are read
// side by side, a word of each in turn: none waits for what another is looking up.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "backoff/table.h"
#include "text/word_encoder.h"

namespace treelm {

class SimilarTexts {
 public:
  // Table and words live at least as long; `first` is the context of the sentence start, `end` the id of its end. Where
  // `refuses_unknown`, a text with an unknown word is not scored.
  SimilarTexts(const BackoffTable& table, const WordEncoder& words, std::uint32_t first, std::uint32_t end,
               bool refuses_unknown);

  // ln p of sentences and their ends, words separated by white space; false if one has a word that cannot be one.
  bool score(std::span<const std::string_view> texts, double* sums);

 private:
  // The first sixteen letters of a word, zeros after its end, and how many it has.
  struct CachedWord {
    std::uint64_t letters = 0, more_letters = 0;
    std::uint64_t size = 0;
    std::uint32_t id = none;
  };
  struct CachedStep {
    std::uint32_t context = none, word = none, next = none;
    double log_probability = 0;
  };
  // A text: its words that were not read yet, its end among them, the context of the next one, and where its sum is
  // made from.
  struct Lane {
    const std::uint32_t* next;
    const std::uint32_t* stop;
    double* log_probability;
    std::uint32_t context;
  };
  bool read_text(std::string_view text);
  // Finds where the words of `padded_` begin and end, in turns, and says how many of these there are.
  std::size_t find_bounds(std::size_t size);
  std::uint32_t word_id(const char* begin, std::size_t size, std::uint64_t position);
  CachedStep& place_of(std::uint32_t context, std::uint32_t word) {
    return cached_steps_[((std::uint64_t{context} << 32 | word) * scatter) >> (64 - step_bits)];
  }
  // Reads a word of a text if what it is worth is kept.
  bool read_kept(Lane& lane);
  void read_missed(std::span<Lane* const> missed, bool are_first);
  bool score_side_by_side(std::span<const std::string_view> texts, double* sums);

  // Words and steps that are kept; what falls into the same place is replaced.
  static constexpr unsigned word_bits = 11, step_bits = 13;
  static constexpr std::uint64_t scatter = 0x9E3779B97F4A7C15u;

  const BackoffTable& table_;
  const WordEncoder& words_;
  std::uint32_t first_, end_;
  bool refuses_unknown_;
  std::vector<CachedWord> cached_words_;
  std::vector<CachedStep> cached_steps_;
  std::vector<char> padded_;  // a text and white space
  std::vector<std::size_t> bounds_;
  std::vector<std::uint32_t> ids_;
  std::vector<std::size_t> starts_;  // of the ids of each text
  std::vector<double> log_probabilities_;
};

}  // namespace treelm
