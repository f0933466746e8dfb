// Fills a back-off table, level after level from the last one up.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backoff_table.h"
#include "large_vector.h"
#include "packed_keys.h"
#include "thread_pool.h"

namespace treelm {

class TableBuilder {
 public:
  // `expected_rows`: how many there will be, about.
  TableBuilder(TableShape shape, std::uint64_t expected_rows, std::size_t threads);

  // A row of a region: where it belongs, and what it says.
  struct Row {
    static constexpr bool has_ties = false;
    Key<1> key;  // its hash
    double probability;
    std::uint32_t next;
    friend bool operator<(const Row& a, const Row& b) { return a.key < b.key; }
  };
  static Row row(std::uint32_t context, std::uint32_t last, double probability, std::uint32_t next) {
    return {{{mix64(slot_key(context, last))}}, probability, next};
  }

  // Contexts get their numbers in this order; `depth` must not fall.
  void add_context(std::uint32_t depth, double backoff, std::uint32_t shorter);
  std::uint64_t contexts() const { return context_count_; }
  // Adds the entries of a level; the last level first. The rows differ from each other.
  void add_entries(std::size_t level, LargeVector<Row> rows);
  // Adds contexts of 1, 2, ... columns, after all entries.
  void add_context_rows(std::uint32_t depth, LargeVector<Row> rows);
  double backoff(std::uint32_t context) const;
  std::shared_ptr<const BackoffTable> finish();

 private:
  struct Memory {
    LargeVector<std::uint64_t> slots, contexts;
  };
  Region direct_region(std::uint64_t size, const LargeVector<Row>& rows);
  Region hashed_region(LargeVector<Row> rows);
  void clear(std::uint64_t from, std::uint64_t to);
  void write(std::uint64_t at, std::uint64_t key, const Row& row);

  TableShape shape_;
  ThreadPool pool_;
  std::uint64_t context_count_ = 0;
  std::shared_ptr<Memory> memory_;
};

}  // namespace treelm
