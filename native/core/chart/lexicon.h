// Scores of words under tags, as the lexicon of a model lists them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace treelm {

struct LexiconArrays {
  std::uint32_t phrasal = 0;
  std::span<const std::int32_t> substates;      // of all symbols
  std::span<const std::int64_t> entry_starts;   // per word, and their number
  std::span<const std::int32_t> entry_symbols;  // tags seen with a word, ascending
  std::span<const double> entry_scores;         // of the tags' subcategories
  std::span<const double> openness;             // per word: weight of open_scores for other tags
  std::span<const double> open_scores;          // per subcategory of all tags
};

// The tags of one word and the scores of their subcategories, none of them all zero.
struct TagScores {
  std::vector<std::uint32_t> tag;
  std::vector<std::uint32_t> start;  // one more than there are tags
  std::vector<double> score;
};

class ChartLexicon {
 public:
  // Throws Error(argument) unless the arrays fit together.
  explicit ChartLexicon(const LexiconArrays& arrays);
  std::uint32_t words() const { return static_cast<std::uint32_t>(openness_.size()); }
  std::uint32_t phrasal() const { return phrasal_; }
  const std::vector<std::uint32_t>& counts() const { return count_; }
  void look_up(std::uint32_t word, TagScores& out) const;

 private:
  std::uint32_t phrasal_;
  std::vector<std::uint32_t> count_;  // subcategories of all symbols
  std::vector<std::uint64_t> entry_first_, score_first_, open_first_;
  std::vector<std::uint32_t> entry_tag_;
  std::vector<double> scores_, openness_, open_;
  std::vector<std::uint32_t> open_tags_;  // tags with an open score above zero
};

}  // namespace treelm
