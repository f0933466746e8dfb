// The streaming rule of Pauls & Klein: which words a corpus makes known, and where.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/symbols.h"
#include "text/signature.h"

namespace treelm {

// Reads a corpus once, in order, as ids of its words. After the first sentences a new word is
// replaced with a small probability; it stays new until it is kept.
class StreamRule {
 public:
  // `signatures`: how replaced words are written; without them they are not counted.
  StreamRule(std::uint64_t seed, double probability, std::uint64_t start_after,
             std::optional<SignatureRules> signatures);

  // The next stretch, as `TextEncoder` hands it out: ids of `words`, and where sentences begin.
  void feed(const Symbols& words, std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts);

  // By id: the place at which the word was kept (sentences from 1; 0: never), and how many of its
  // occurrences were replaced.
  const std::vector<std::uint64_t>& entry_sentence() const { return entry_sentence_; }
  const std::vector<std::uint64_t>& entry_position() const { return entry_position_; }
  const std::vector<std::uint64_t>& replaced() const { return replaced_; }
  // What replaced words became, "<unk>" among it.
  const Symbols& signatures() const { return signatures_; }
  const std::vector<std::uint64_t>& signature_counts() const { return signature_counts_; }

 private:
  void replace(const Symbols& words, std::uint32_t id, std::uint64_t position);

  std::uint64_t seed_;
  double probability_;
  std::uint64_t start_after_;
  std::optional<SignatureRules> rules_;
  std::uint64_t sentence_ = 0, position_ = 0, tokens_ = 0;
  std::vector<std::uint64_t> entry_sentence_, entry_position_, replaced_;
  Symbols signatures_;
  std::vector<std::uint64_t> signature_counts_;
};

}  // namespace treelm
