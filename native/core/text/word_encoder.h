// Words -> ids of a closed vocabulary: known words, signatures of the others, <unk>.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/symbols.h"
#include "text/signature.h"
#include "text/unicode.h"

namespace treelm {

// What stands between words: ASCII white space; any other space is part of a word.
constexpr bool is_white_space(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r' || byte == '\v' || byte == '\f';
}

// Sentence boundaries, never words of a text.
constexpr bool is_reserved_word(std::string_view word) { return word == "<s>" || word == "</s>"; }
// A word as messages show it: the beginning, if it is long.
std::string shown_word(std::string_view word);
Error reserved_word_error(std::string_view word, Place place = {});

// Immutable, so any number of threads may ask it at once.
class WordEncoder {
 public:
  static constexpr std::uint32_t unknown = 0;

  // A word that training text knows only from a place on: sentences from 1, positions from 0.
  struct LateEntry {
    std::uint32_t id;
    std::uint64_t sentence;
    std::uint64_t position;
  };

  // `symbols` by id, symbol 0 is <unk>; `is_signature` has one entry for each. Without `rules`, or
  // without a signature among the symbols, what is not known is <unk>.
  WordEncoder(const std::vector<std::string>& symbols, const std::vector<bool>& is_signature,
              const std::vector<LateEntry>& late, std::optional<SignatureRules> rules);

  // Throws Error(reserved_symbol) for <s> and </s>.
  std::uint32_t encode(std::string_view word, std::uint64_t position) const {
    const std::uint32_t id = symbols_.find(word);
    return is_word(id) ? id : replace(word, position, [](std::uint32_t) { return true; });
  }
  // As `encode`, but a late word counts as unknown before its place: for the text it was made from.
  std::uint32_t encode_training(std::string_view word, std::uint64_t sentence, std::uint64_t position) const;

  // The id of a word that is known wherever it stands, or `none`. `training` as in encode_training.
  std::uint32_t find_settled(std::string_view word, bool training) const {
    const std::uint32_t id = symbols_.find(word);
    if (!is_word(id) || (training && has_late_words() && (entries_[id].sentence != 0 || entries_[id].position != 0)))
      return none;
    return id;
  }

  std::uint32_t size() const { return symbols_.size(); }
  std::string_view symbol(std::uint32_t id) const { return symbols_[id]; }
  bool has_late_words() const { return !entries_.empty(); }
  // Whether `id` stands for words that are not known.
  bool is_unknown(std::uint32_t id) const { return id == unknown || is_signature_[id] != 0; }

 private:
  struct Entry {
    std::uint64_t sentence = 0, position = 0;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };

  bool is_word(std::uint32_t id) const { return id != none && is_signature_[id] == 0; }
  template <class IsKnown>
  std::uint32_t replace(std::string_view word, std::uint64_t position, IsKnown is_known) const;

  Symbols symbols_;
  std::vector<std::uint8_t> is_signature_;
  std::vector<Entry> entries_;  // by id; empty if no word is late
  std::optional<SignatureRules> rules_;
};

// The id of the signature or <unk> for a word that is not known; `is_known(id)` says whether the
// lower-cased word is, where that is a word of the vocabulary.
template <class IsKnown>
std::uint32_t WordEncoder::replace(std::string_view word, std::uint64_t position, IsKnown is_known) const {
  if (is_reserved_word(word)) throw reserved_word_error(word);
  if (!rules_) return unknown;
  bool known_lower = false;
  if (position == 0) {
    std::string lower;
    lower_case(word, lower);
    const std::uint32_t id = symbols_.find(lower);
    known_lower = is_word(id) && is_known(id);
  }
  const std::uint32_t id = symbols_.find(signature(*rules_, word, position, known_lower));
  return id == none ? unknown : id;
}

}  // namespace treelm
