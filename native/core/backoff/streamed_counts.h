// Level counts of a back-off chain that do not fit into memory: every level is read from the sorted
// events as often as it is needed. See continuation.h for what is counted.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "backoff/continuation.h"
#include "base/counter.h"

namespace treelm {

// The entries of one level in ascending order, one at a time.
template <std::size_t W>
class LevelCursor {
 public:
  LevelCursor(const SortedEvents& events, const ChainShape& shape, bool token_counts, std::size_t j);

  // Moves to the next entry; false if there is none.
  bool next();
  // Its first columns; those beyond the width of the level are those of some row.
  const Key<W>& key() const { return key_; }
  std::uint32_t count() const { return count_; }
  std::uint32_t tokens() const { return tokens_; }
  // How many entries came before it.
  std::uint64_t rank() const { return rank_; }

 private:
  std::uint32_t pads(const Key<W>& key, std::uint32_t width) const;

  const SortedEvents& events_;
  const ChainShape& shape_;
  std::size_t j_;
  bool raw_;  // token counts
  unsigned prefix_, above_prefix_;
  std::size_t row_ = 0, passed_ = 0;
  Key<W> key_{};
  std::uint32_t count_ = 0, tokens_ = 0;
  std::uint64_t rank_ = ~std::uint64_t{0};
};

class StreamedCounts {
 public:
  StreamedCounts(std::shared_ptr<const SortedEvents> events, ChainShape shape, bool token_counts, std::size_t threads,
                 MemoryLimit limit, const ProgressCallback& progress = no_progress);

  const ChainShape& shape() const { return shape_; }
  const SortedEvents& events() const { return *events_; }
  bool token_counts() const { return token_counts_; }
  std::size_t threads() const { return threads_; }
  const MemoryLimit& limit() const { return limit_; }
  std::size_t levels() const { return shape_.levels(); }
  std::size_t size(std::size_t j) const { return sizes_[j]; }
  bool has_tokens() const { return true; }
  std::array<std::uint64_t, 4> counts_of_counts(std::size_t j) const { return counts_of_counts_[j]; }

 private:
  std::shared_ptr<const SortedEvents> events_;
  ChainShape shape_;
  bool token_counts_;
  std::size_t threads_;
  MemoryLimit limit_;
  std::vector<std::size_t> sizes_;
  std::vector<std::array<std::uint64_t, 4>> counts_of_counts_;
};

// Number of entries of every level, at most.
std::vector<std::size_t> level_sizes(const SortedEvents& events, const ChainShape& shape);
// Bytes that ChainCounts and estimate() need for these events, at most.
std::size_t memory_to_estimate(const SortedEvents& events, const ChainShape& shape, bool keep_tokens);

}  // namespace treelm
