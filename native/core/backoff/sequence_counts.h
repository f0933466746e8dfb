// Level counts of word sequences (continuation.h says what is counted) in a fifth of the memory of other chains: a
// trie.
//
// An entry of depth d is a word and the d - 1 words before it, the nearest first. Entries of a depth are in ascending
// order, so those that add an older word to the same shorter entry lie side by side; for each there is only that word,
// its count and the number of entries that go on from it. Depth 1 has a place for every word, counted or not.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "backoff/continuation.h"
#include "base/counter.h"
#include "base/large_vector.h"
#include "base/small_numbers.h"
#include "base/thread_pool.h"

namespace treelm {

// The entries of a depth of two words or more.
struct SequenceDepth {
  LargeVector<std::uint32_t> words;   // the oldest one of each entry
  SmallNumbers children;              // entries of the next depth that go on from it; empty at the last one
  SmallNumbers counts;                // N
  LargeVector<std::uint32_t> tokens;  // empty unless they are kept and differ from `counts`
  std::vector<std::uint32_t> begins;  // per newest word where its entries begin, and where the last ones end

  std::size_t size() const { return begins.empty() ? 0 : begins.back(); }
};

class SequenceCounts {
 public:
  // All words are below `outcomes`. The events are not needed afterwards.
  SequenceCounts(const SortedEvents& events, const ChainShape& shape, std::uint64_t outcomes, bool token_counts,
                 bool keep_tokens, std::size_t threads);

  // Level 0 is the last depth.
  const ChainShape& shape() const { return shape_; }
  std::size_t levels() const { return shape_.levels(); }
  std::size_t size(std::size_t level) const { return sizes_[level]; }
  bool has_tokens() const { return has_tokens_; }
  std::array<std::uint64_t, 4> counts_of_counts(std::size_t level) const { return counts_of_counts_[level]; }
  std::size_t threads() const { return threads_; }

  // Counts of the words alone, 0 for those that were not counted.
  const std::vector<std::uint32_t>& words() const { return words_; }
  const std::vector<std::uint32_t>& word_tokens() const { return word_tokens_.empty() ? words_ : word_tokens_; }
  // By number of words, none for 0 and 1. Other copies keep theirs, which are the same: only the last user may change
  // them.
  std::vector<std::shared_ptr<SequenceDepth>> take_depths() { return std::move(depths_); }

 private:
  template <std::size_t W>
  class Builder;
  void count_counts(ThreadPool& pool);

  ChainShape shape_;
  std::size_t threads_;
  bool has_tokens_;
  std::vector<std::uint32_t> words_, word_tokens_;
  std::vector<std::shared_ptr<SequenceDepth>> depths_;
  std::vector<std::size_t> sizes_;
  std::vector<std::array<std::uint64_t, 4>> counts_of_counts_;
};

// Bytes that SequenceCounts of these events and estimating from them need, at most; the events included, as long as
// they are there: until the end, unless they are used up.
std::size_t memory_of_sequences(const SortedEvents& events, const ChainShape& shape, bool keep_tokens, bool use_up);

// Pieces of the entries of a depth for threads: numbers of newest words, from the first to the end. No word is in two.
std::vector<std::uint32_t> word_pieces(const std::vector<std::uint32_t>& begins, std::size_t threads);

}  // namespace treelm
