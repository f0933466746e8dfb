#include "text/word_encoder.h"

#include <algorithm>
#include <utility>

namespace treelm {

std::string shown_word(std::string_view word) {
  constexpr std::size_t most = 80;
  if (word.size() <= most) return std::string(word);
  std::size_t size = most;
  while (size > 0 && (static_cast<unsigned char>(word[size]) & 0xC0) == 0x80) --size;  // whole characters
  return std::string(word.substr(0, size)) + "...";
}

Error reserved_word_error(std::string_view word, Place place) {
  return {ErrorCode::reserved_symbol, std::string(word), place};
}

WordEncoder::WordEncoder(const std::vector<std::string>& symbols, const std::vector<bool>& is_signature,
                         const std::vector<LateEntry>& late, std::optional<SignatureRules> rules)
    : is_signature_(is_signature.begin(), is_signature.end()) {
  if (symbols.empty()) throw Error(ErrorCode::argument, "a vocabulary needs at least one symbol, the unknown word");
  if (symbols.size() != is_signature.size())
    throw Error(ErrorCode::argument, "is_signature needs one entry for each symbol");
  for (const std::string& symbol : symbols) {
    const std::uint32_t next = symbols_.size();
    if (symbols_.intern(symbol) != next)
      throw Error(ErrorCode::argument, "\"" + symbol + "\" occurs twice in the vocabulary");
  }
  if (!late.empty()) entries_.resize(symbols.size());
  for (const LateEntry& entry : late) {
    if (entry.id >= symbols.size()) throw Error(ErrorCode::argument, "the symbol of a late entry is out of range");
    entries_[entry.id] = {entry.sentence, entry.position};
  }
  if (std::find(is_signature.begin(), is_signature.end(), true) != is_signature.end()) rules_ = std::move(rules);
}

std::uint32_t WordEncoder::encode_training(std::string_view word, std::uint64_t sentence,
                                           std::uint64_t position) const {
  if (entries_.empty()) return encode(word, position);
  const Entry here{sentence, position};
  const std::uint32_t id = symbols_.find(word);
  if (is_word(id) && entries_[id] <= here) return id;
  return replace(word, position, [&](std::uint32_t lower) { return entries_[lower] < here; });
}

}  // namespace treelm
