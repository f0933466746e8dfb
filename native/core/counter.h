// Counts events: rows of column values (outcome first, then the context in order of retention) go in,
// sorted distinct rows with their counts come out. The result depends on the set of events only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "large_vector.h"
#include "packed_keys.h"
#include "thread_pool.h"

namespace treelm {

// Distinct rows in ascending order, packed, with their counts.
struct SortedEvents {
  KeyLayout layout;
  LargeVector<std::uint64_t> keys;  // stored_words(layout.words()) a row
  LargeVector<std::uint32_t> counts;
  std::uint64_t total = 0;

  std::size_t rows() const { return counts.size(); }
  std::size_t stride() const { return stored_words(layout.words()); }
  template <std::size_t W>
  const Key<W>* keys_as() const {
    return reinterpret_cast<const Key<W>*>(keys.data());
  }
};

class EventCounter {
 public:
  // `run_rows`: rows sorted at a time.
  EventCounter(std::size_t columns, std::size_t threads, std::size_t run_rows);

  std::size_t columns() const { return layout_.columns(); }
  // Adds `count` rows of columns() values, each once or weights[i] times.
  void add(const std::uint32_t* rows, std::size_t count, const std::uint64_t* weights = nullptr);
  // Adds the n-grams of word sequences, n = columns(): sequence s is ids[starts[s]..starts[s+1]) and
  // then `end`; the k-th column is the word k places back, `pad` before the first.
  void add_sequences(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts, std::uint32_t end,
                     std::uint32_t pad);
  // Adds what another counter has counted.
  void merge(const SortedEvents& other);
  // Everything counted; the counter is empty then.
  SortedEvents finish();
  std::uint64_t total() const { return total_; }

 private:
  void widen(const std::vector<std::uint32_t>& largest);
  void close_run();
  template <std::size_t W>
  void sort_run(LargeVector<std::uint64_t>& keys, const std::uint64_t* weights);

  KeyLayout layout_;
  std::size_t run_rows_;
  LargeVector<std::uint64_t> pending_;  // packed rows, not yet sorted
  std::vector<SortedEvents> runs_;
  std::uint64_t total_ = 0;
  ThreadPool pool_;
};

// Merges sorted events of one layout.
SortedEvents merge_sorted(std::vector<SortedEvents> runs);

}  // namespace treelm
