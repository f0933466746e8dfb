// Phrase pairs as lines of a Moses phrase table and of a table of lexicalised reordering.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "translation/extraction.h"

namespace treelm {

class PhraseLines {
 public:
  // Pairs seen fewer than `min_count` times are left out, after their counts went into all sums. `pairs` and the words
  // must live as long as this.
  PhraseLines(const PhrasePairs& pairs, const std::vector<std::string>& source_words,
              const std::vector<std::string>& target_words, std::uint32_t min_count);

  std::size_t size() const { return order_.size(); }
  // source ||| target ||| p(f|e) lex(f|e) p(e|f) lex(e|f) ||| links ||| counts of e, of f, of both |||
  std::string phrase_table(std::size_t first, std::size_t last) const;
  // source ||| target ||| monotone, swap, discontinuous to the phrase before, and the same to the phrase after
  std::string reordering(std::size_t first, std::size_t last) const;

 private:
  void append_phrases(std::string& out, std::uint32_t pair) const;

  const PhrasePairs& pairs_;
  const std::vector<std::string>&source_words_, &target_words_;
  std::vector<std::uint32_t> order_;  // of the pairs: by the bytes of source, then target
  std::vector<std::uint64_t> source_counts_, target_counts_;
  std::array<double, orientations> prior_{};  // of the orientations in the whole text
};

}  // namespace treelm
