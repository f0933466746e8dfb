// Fills a back-off table, one number of columns after the other.
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
  // Regions are made as rows are added; `expected_rows` is how many there will be, about.
  TableBuilder(TableShape shape, std::uint64_t expected_rows, std::size_t threads);

  // A row to be added: its last column and its value below a parent that is in the table already.
  struct Row {
    static constexpr bool has_ties = false;
    Key<1> key;  // its hash
    double value;
    std::uint32_t index;
    friend bool operator<(const Row& a, const Row& b) { return a.key < b.key; }
  };
  static Row row(std::uint32_t parent, std::uint32_t element, double value, std::uint32_t index) {
    return {{{mix64(slot_key(parent, element))}}, value, index};
  }

  // The slot of a row of one column, made if it is not there.
  std::uint32_t first_entry(std::uint32_t element);
  std::uint32_t first_context(std::uint32_t element);
  // Adds all rows of the next number of columns; they differ from each other. The slot of a row goes
  // to slots[index], unless there are none. The value of an entry is its probability, that of a context its weight.
  void add_entries(LargeVector<Row> rows, std::span<std::uint32_t> slots) { add(std::move(rows), slots, true); }
  void add_contexts(LargeVector<Row> rows, std::span<std::uint32_t> slots) { add(std::move(rows), slots, false); }

  std::uint32_t entry(std::uint32_t columns, std::uint32_t parent, std::uint32_t element) const {
    return shape_.double_precision ? find_entry(as<double>(), shape_, columns, parent, element)
                                   : find_entry(as<float>(), shape_, columns, parent, element);
  }
  std::uint32_t context(std::uint32_t columns, std::uint32_t parent, std::uint32_t element) const {
    return shape_.double_precision ? find_context(as<double>(), shape_, columns, parent, element)
                                   : find_context(as<float>(), shape_, columns, parent, element);
  }
  void prefetch(std::uint32_t columns, std::uint32_t parent, std::uint32_t element) const;
  double probability(std::uint32_t slot) const;
  double backoff(std::uint32_t slot) const;
  void set_probability(std::uint32_t slot, double value);
  void set_backoff(std::uint32_t slot, double value);
  void set_empty_backoff(double value) { shape_.empty_backoff = value; }
  const TableShape& shape() const { return shape_; }
  std::shared_ptr<const BackoffTable> finish();

 private:
  template <class Value>
  Slot<Value>* as() const {
    return reinterpret_cast<Slot<Value>*>(memory_->data());
  }
  void add(LargeVector<Row> rows, std::span<std::uint32_t> slots, bool entries);
  template <class Value>
  void place(const LargeVector<Row>& rows, std::span<std::uint32_t> slots, Region& region, bool entries);
  void fill_direct(std::uint64_t slot, std::uint64_t key);

  TableShape shape_;
  ThreadPool pool_;
  std::shared_ptr<LargeVector<std::uint64_t>> memory_;
};

}  // namespace treelm
