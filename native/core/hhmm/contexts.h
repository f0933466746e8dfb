// What the words before tell an HHMM about the next one, beside its stacks: P(word | tag, words before), and how much
// likelier they make each tag. Both come from back-off tables.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backoff/table.h"

namespace treelm {

struct Emission {
  std::uint32_t tag;
  double value;
};

inline constexpr std::uint32_t longest_hhmm_context = 4;

// Tags count from 0 here. Words before are given the latest first; before the first word of a sentence stands the pad,
// which is the number of words.
class HhmmContexts {
 public:
  // `words` holds words by tag and words before, `tags` tags by words before; either may be missing. A tag x after
  // words h counts (P(x | h) / P(x)) ^ power times, with P(x) from `tag_shares`. Throws Error(table).
  HhmmContexts(std::shared_ptr<const BackoffTable> words, std::shared_ptr<const BackoffTable> tags,
               std::vector<double> tag_shares, double power);

  // Throws Error(table) unless the tables are about so many words and tags.
  void check(std::size_t words, std::size_t tags) const;
  // Words that a state remembers.
  std::uint32_t length() const { return length_; }
  bool weighs_tags() const { return tags_ != nullptr; }

  // P(word | tag, before), where P(word | tag) is all that is known without words before.
  double word_probability(std::uint32_t word, std::uint32_t tag, std::span<const std::uint32_t> before,
                          double by_tag) const;
  // By how much words before make each tag likelier.
  void tag_factors(std::span<const std::uint32_t> before, std::vector<double>& out) const;

 private:
  std::shared_ptr<const BackoffTable> words_, tags_;
  std::vector<double> inverse_shares_;
  double power_;
  std::uint32_t length_ = 0, word_columns_ = 0, tag_columns_ = 0;
};

}  // namespace treelm
