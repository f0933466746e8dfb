// Fills a back-off table, level after level from the last one up.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backoff/table.h"
#include "base/byte_arena.h"
#include "base/interrupt.h"
#include "base/large_vector.h"
#include "base/packed_keys.h"
#include "base/thread_pool.h"

namespace treelm {

// A row of a region: where it belongs, and what it says.
template <class Value>
struct TableRow {
  static constexpr bool has_ties = false;
  Key<1> key;  // context and last column, then the hash of the two in the first bits
  Value probability, weight;
  std::uint32_t link;
  std::uint32_t rank;  // by which its position is told
  friend bool operator<(const TableRow& a, const TableRow& b) { return a.key < b.key; }
};

// The rows of a region, in any order.
class RowBatch {
 public:
  explicit RowBatch(bool wide) : wide_(wide) {}
  void reserve(std::size_t rows);
  std::size_t size() const { return wide_ ? doubles_.size() : floats_.size(); }
  // `context` is a position: its number less that of the first context of so many columns.
  void add(std::uint64_t context, std::uint32_t last, double probability, double weight, std::uint32_t link,
           std::uint32_t rank) {
    largest_last_ |= last;
    const Key<1> key{{context << 32 | last}};
    if (wide_)
      doubles_.push_back({key, probability, weight, link, rank});
    else
      floats_.push_back({key, static_cast<float>(probability), static_cast<float>(weight), link, rank});
  }

 private:
  friend class TableBuilder;
  bool wide_;
  std::uint32_t largest_last_ = 0;
  LargeVector<TableRow<float>> floats_;
  LargeVector<TableRow<double>> doubles_;
};

// Writes the rows of a hashed region, which come in the order of their hashes.
class RegionWriter {
 public:
  RegionWriter(const Region& region, ByteArena& slots, ByteArena& index);
  // Returns the position of the row.
  std::uint64_t add(std::uint64_t hash, double probability, double weight, std::uint32_t link);
  void finish();

 private:
  const Region& region_;
  ByteArena& slots_;
  ByteArena& index_;
  std::uint64_t position_ = 0, bucket_ = 0, bucket_begin_ = 0;
};

// Fills a hashed region in any order, by several threads: rows are counted, then put into their buckets, and in the end
// every bucket is sorted. A row is counted and put by its hash.
class RegionFiller {
 public:
  // `slots`, `index`: room for the region. `shared`: several threads count and put.
  RegionFiller(const Region& region, std::uint8_t* slots, std::uint32_t* index, bool shared);

  const Region& region() const { return region_; }
  const void* bucket_place(std::uint64_t bucket) const { return index_ + bucket; }
  void count(std::uint64_t hash) { increase(index_[region_.bucket(hash)]); }
  // All rows were counted.
  void allot();
  // The place of a row, which `put` fills.
  std::uint8_t* take(std::uint64_t bucket) { return slots_ + increase(index_[bucket]) * region_.slot_bytes; }
  void put(std::uint8_t* place, std::uint64_t hash, double probability, double weight, std::uint32_t link) const;
  // All rows were put.
  void close();
  // Sorts the rows of the buckets [from, to), then calls visit(position, place) for each. `ask(place)` is called some
  // time before, for any row.
  template <class Ask, class Visit>
  void sort(std::uint64_t from, std::uint64_t to, const Ask& ask, const Visit& visit) const {
    const std::uint64_t end = index_[to];
    constexpr std::uint64_t early = 32;
    for (std::uint64_t bucket = from; bucket < to; ++bucket) {
      if (bucket % 512 == 0) poll_interrupt();
      sort_bucket(bucket);
      for (std::uint64_t i = index_[bucket]; i < index_[bucket + 1]; ++i) {
        if (i + early < end) ask(slots_ + (i + early) * region_.slot_bytes);
        visit(i, slots_ + i * region_.slot_bytes);
      }
    }
  }

 private:
  std::uint64_t increase(std::uint32_t& number) const {
    if (!shared_) return number++;
    return std::atomic_ref(number).fetch_add(1, std::memory_order_relaxed);
  }
  void sort_bucket(std::uint64_t bucket) const;

  const Region region_;
  std::uint8_t* slots_;
  std::uint32_t* index_;
  bool shared_;
};

class TableBuilder {
 public:
  // `expected_rows`: how many there will be, about. `folder`: where the table is written; empty for
  // memory.
  TableBuilder(TableShape shape, std::uint64_t expected_rows, std::size_t threads, const std::string& folder = {});

  const TableShape& shape() const { return shape_; }
  bool wide() const { return shape_.value_bits == 64; }
  RowBatch batch() const { return RowBatch(wide()); }
  void set_empty_weight(double weight) { shape_.empty_weight = weight; }
  // The number of the first context of so many columns.
  std::uint64_t start(std::uint32_t depth) const { return starts_[depth]; }

  // Adds the entries of a level; the last level first, in other chains than sequences after the
  // contexts of its width. The rows differ from each other. Fills in positions by rank, if wanted.
  void add_entries(std::size_t level, RowBatch rows, LargeVector<std::uint32_t>* positions);
  // Adds contexts of 1, 2, ... columns.
  void add_contexts(std::uint32_t depth, RowBatch rows, LargeVector<std::uint32_t>* positions);
  std::shared_ptr<const BackoffTable> finish();

  // The same for rows that come in the order of their hashes, `rows` of them.
  Region open_entries(std::size_t level, std::uint64_t rows, unsigned last_bits);
  // How keys of a region to come are hashed.
  Region entries_to_come(std::size_t level, unsigned last_bits) const;
  Region contexts_to_come(std::uint32_t depth, unsigned last_bits) const;
  Region open_contexts(std::uint32_t depth, std::uint64_t rows, unsigned last_bits);
  RegionWriter writer(const Region& region) { return {region, slots_, index_}; }
  // For rows that come in any order.
  RegionFiller filler(const Region& region);

 private:
  void add_rows(const Region& region, RowBatch rows, LargeVector<std::uint32_t>* positions);
  template <class Value>
  void write_sorted(const Region& region, LargeVector<TableRow<Value>>& rows, LargeVector<std::uint32_t>* positions);
  template <class Value>
  void write_direct(const Region& region, const LargeVector<TableRow<Value>>& rows,
                    LargeVector<std::uint32_t>* positions);

  TableShape shape_;
  std::vector<std::uint64_t> starts_{0, 1};
  ThreadPool pool_;
  ByteArena slots_, index_;
};

}  // namespace treelm
