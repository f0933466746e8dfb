// Sentences that have much in common, such as those of an n-best list, scored by an n-gram table. Their words and what
// these are worth after the words before are looked up once, and then found in two small caches; what a sentence has in
// common with the beginning of the one before it is not read again.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "backoff/table.h"
#include "text/word_encoder.h"

namespace treelm {

class SimilarTexts {
 public:
  // Table and words live at least as long, and so do all texts; `first` is the context of the sentence start, `end` the
  // id of its end. Where `refuses_unknown`, a text with an unknown word is not scored.
  SimilarTexts(const BackoffTable& table, const WordEncoder& words, std::uint32_t first, std::uint32_t end,
               bool refuses_unknown);

  // ln p of a sentence and its end, words separated by white space; false if it has a word that cannot be one.
  bool score(std::string_view text, double* sum);

 private:
  struct CachedWord {
    std::uint64_t letters = 0;
    const char* begin = nullptr;
    std::uint32_t size = 0, id = none;
  };
  struct CachedStep {
    std::uint32_t context = none, word = none, next = none;
    double log_probability = 0;
  };
  // A word of the last text: where it ends, what it is, and the context after it.
  struct ReadWord {
    std::size_t stop;
    std::uint32_t word, context;
  };
  static const char* end_of_word(const char* at, const char* stop, std::uint64_t* letters);
  // Forgets the words of the last text that this one does not begin with.
  void keep_common(std::string_view text);
  std::uint32_t word_id(std::string_view word, std::uint64_t letters, std::uint64_t position);
  CachedStep& place_of(std::uint32_t context, std::uint32_t word);
  bool is_kept(std::uint32_t context, std::uint32_t word);
  double read(std::uint32_t& context, std::uint32_t word);

  const BackoffTable& table_;
  const WordEncoder& words_;
  std::uint32_t first_, end_;
  bool refuses_unknown_;
  std::vector<CachedWord> cached_words_;
  std::vector<CachedStep> cached_steps_;
  std::string_view text_;
  std::vector<ReadWord> read_;
  std::vector<double> log_probabilities_;
};

}  // namespace treelm
