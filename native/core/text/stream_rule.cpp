#include "text/stream_rule.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "text/unicode.h"

namespace treelm {

StreamRule::StreamRule(std::uint64_t seed, double probability, std::uint64_t start_after,
                       std::optional<SignatureRules> signatures)
    : seed_(seed), probability_(probability), start_after_(start_after), rules_(std::move(signatures)) {}

void StreamRule::feed(const Symbols& words, std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts) {
  entry_sentence_.resize(words.size());
  entry_position_.resize(words.size());
  replaced_.resize(words.size());
  std::size_t next = 0;  // sentence of `starts`
  for (const std::uint32_t id : ids) {
    if (id >= words.size()) throw Error(ErrorCode::argument, "a word id is out of range");
    for (; next < starts.size() && starts[next] == tokens_; ++next) {
      ++sentence_;  // one without words counts too
      position_ = 0;
    }
    if (entry_sentence_[id] == 0) {
      if (sentence_ <= start_after_ || random_uniform(seed_, sentence_, position_) >= probability_) {
        entry_sentence_[id] = sentence_;
        entry_position_[id] = position_;
      } else {
        replace(words, id, position_);
      }
    }
    ++position_;
    ++tokens_;
  }
  for (; next < starts.size() && starts[next] == tokens_; ++next) {
    ++sentence_;
    position_ = 0;
  }
  if (next != starts.size()) throw Error(ErrorCode::argument, "a sentence begins outside the ids given");
}

void StreamRule::replace(const Symbols& words, std::uint32_t id, std::uint64_t position) {
  ++replaced_[id];
  if (!rules_) return;
  const std::string_view word = words[id];
  bool known_lower = false;
  if (position == 0) {
    std::string lower;
    lower_case(word, lower);
    const std::uint32_t of_lower = words.find(lower);
    known_lower = of_lower != none && entry_sentence_[of_lower] != 0;
  }
  const std::uint32_t made = signatures_.intern(signature(*rules_, word, position, known_lower));
  if (made == signature_counts_.size()) signature_counts_.push_back(0);
  ++signature_counts_[made];
}

}  // namespace treelm
