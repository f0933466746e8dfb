// Counts events: rows of column values (outcome first, then the context in order of retention) go in,
// sorted distinct rows with their counts come out. The result depends on the set of events only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/byte_arena.h"
#include "base/large_vector.h"
#include "base/packed_keys.h"
#include "base/progress.h"
#include "base/thread_pool.h"

namespace treelm {

// Distinct rows in ascending order, packed, with their counts; in memory, or mapped from files.
class SortedEvents {
 public:
  SortedEvents() = default;
  SortedEvents(KeyLayout layout, std::uint64_t total, std::shared_ptr<const StoredBytes> keys,
               std::shared_ptr<const StoredBytes> counts);
  // Arrays owned and checked by the caller.
  SortedEvents(KeyLayout layout, std::uint64_t total, std::size_t rows, const std::uint64_t* keys,
               const std::uint32_t* counts, std::shared_ptr<const void> owner);

  const KeyLayout& layout() const { return layout_; }
  std::uint64_t total() const { return total_; }
  std::size_t rows() const { return rows_; }
  // Words of a key as it is stored.
  std::size_t stride() const { return stored_words(layout_.words()); }
  const std::uint64_t* keys() const { return keys_; }
  const std::uint32_t* counts() const { return counts_; }
  template <std::size_t W>
  const Key<W>* keys_as() const {
    return reinterpret_cast<const Key<W>*>(keys_);
  }
  std::size_t bytes() const { return rows_ * (stride() * sizeof(std::uint64_t) + sizeof(std::uint32_t)); }
  bool mapped() const { return key_bytes_ && key_bytes_->mapped(); }
  // Tells those who read from the first row to the last that rows before `row` are not needed.
  void pass(std::size_t row, std::size_t& passed) const;

 private:
  KeyLayout layout_;
  std::uint64_t total_ = 0;
  std::size_t rows_ = 0;
  const std::uint64_t* keys_ = nullptr;
  const std::uint32_t* counts_ = nullptr;
  std::shared_ptr<const StoredBytes> key_bytes_, count_bytes_;
  std::shared_ptr<const void> owner_;
};

// Collects rows that come in ascending order; rows that are equal are added up.
template <std::size_t W>
class SortedEventsWriter {
 public:
  // An empty folder name keeps everything in memory.
  SortedEventsWriter(KeyLayout layout, std::size_t rows, const std::string& folder);
  void add(const Key<W>& key, std::uint64_t count);
  SortedEvents finish();

 private:
  void flush();

  KeyLayout layout_;
  ByteArena keys_, counts_;
  Key<W> last_{};
  std::uint64_t count_ = 0, total_ = 0;
  bool any_ = false;
};

// How much memory there is, and where the rest goes.
struct MemoryLimit {
  std::size_t bytes = 0;  // 0: no limit
  std::string folder;
};

class EventCounter {
 public:
  // `run_rows`: rows sorted at a time, fewer where the limit says so.
  EventCounter(std::size_t columns, std::size_t threads, std::size_t run_rows, MemoryLimit limit = {});

  std::size_t columns() const { return layout_.columns(); }
  // Adds `count` rows of columns() values, each once or weights[i] times.
  void add(const std::uint32_t* rows, std::size_t count, const std::uint64_t* weights = nullptr);
  // Adds the n-grams of word sequences, n = columns(): sequence s is ids[starts[s]..starts[s+1]) and
  // then `end`; the k-th column is the word k places back, `pad` before the first.
  void add_sequences(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts, std::uint32_t end,
                     std::uint32_t pad);
  // Adds what another counter has counted.
  void merge(const SortedEvents& other);
  // Everything counted; the counter is empty then. Progress is told in rows.
  SortedEvents finish(const ProgressCallback& progress = no_progress);
  std::uint64_t total() const { return total_; }

 private:
  void widen(const std::vector<std::uint32_t>& largest);
  void close_run();
  void add_run(SortedEvents run);
  template <std::size_t W>
  void sort_run(LargeVector<std::uint64_t>& keys, const std::uint64_t* weights);

  KeyLayout layout_;
  std::size_t run_rows_;
  MemoryLimit limit_;
  LargeVector<std::uint64_t> pending_;  // packed rows, not yet sorted
  std::vector<SortedEvents> runs_;
  std::uint64_t total_ = 0;
  ThreadPool pool_;
};

// Throws Error(table) unless the rows ascend, no count is 0, the counts sum to `total`, and no column
// has an id above the one in `largest`.
void check_sorted(const SortedEvents& events, const std::vector<std::uint32_t>& largest);

// Merges sorted events of one layout.
SortedEvents merge_sorted(std::vector<SortedEvents> runs, const std::string& folder, const ProgressCallback& progress);
// The same events in a file.
SortedEvents spilled(const SortedEvents& events, const std::string& folder);

}  // namespace treelm
