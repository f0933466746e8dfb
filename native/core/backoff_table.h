// An immutable back-off table: a trie of rows in one array, used where it lies in memory.
//
// Slots: one for every outcome (direct), one for every first context column (direct; none in a
// sequence chain), then a hashed region for every number of columns. In a region rows lie in the
// order of their hash, as near to hash * capacity / 2^64 as those before them allow, so a search ends
// at the first slot that is empty or has a larger hash. A slot is its key (slot of the parent row
// << 32 | last column), a probability and a back-off weight:
//   row (x, e1..ew):   p = p_j(x | e1..ew), negative (-p) where the row only carries longer ones
//   context (e1..ew):  its back-off weight, negative where nothing stored follows the context
// In a sequence chain (n-grams) a context is the row of the word before, (e1; e2..ew): one slot for
// both. Elsewhere contexts have slots and regions of their own. Whatever the slots contain, nothing
// outside the array is read and every search ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "error.h"
#include "random.h"
#include "symbols.h"

namespace treelm {

inline constexpr std::uint32_t entry_root = 0xFFFFFFFEu;
inline constexpr std::uint32_t context_root = 0xFFFFFFFDu;
inline constexpr std::uint64_t empty_key = ~std::uint64_t{0};
inline constexpr std::uint64_t longest_probe = 512;  // slots looked at, at most
inline constexpr std::uint32_t max_columns = 32;

constexpr std::uint64_t slot_key(std::uint32_t parent, std::uint32_t element) {
  return std::uint64_t{parent} << 32 | element;
}

template <class Value>
struct Slot {
  std::uint64_t key;
  Value probability;
  Value backoff;
};
static_assert(sizeof(Slot<float>) == 16 && sizeof(Slot<double>) == 24);

// floor(a * b / 2^64)
inline std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
#if defined(__SIZEOF_INT128__)
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64);
#else
  const std::uint64_t low = 0xFFFFFFFFull;
  const std::uint64_t al = a & low, ah = a >> 32, bl = b & low, bh = b >> 32;
  const std::uint64_t middle = ah * bl + (al * bl >> 32);
  const std::uint64_t other = al * bh + (middle & low);
  return ah * bh + (middle >> 32) + (other >> 32);
#endif
}

// The rows of one number of columns.
struct Region {
  std::uint64_t begin = 0;
  std::uint64_t capacity = 0;  // slots that hashes point at
  std::uint64_t length = 0;    // with those pushed beyond the end

  std::uint64_t home(std::uint64_t hash) const { return begin + multiply_high(hash, capacity); }
};

struct TableShape {
  std::vector<std::uint32_t> widths;    // context columns of each level, strictly falling
  std::uint64_t outcomes = 0;           // direct slots of outcomes
  std::uint64_t first_contexts = 0;     // direct slots of first context columns
  std::vector<Region> entry_regions;    // rows of 2, 3, ... columns
  std::vector<Region> context_regions;  // contexts of 2, 3, ... columns; none in a sequence chain
  bool sequence = false;                // contexts are rows of the words before
  bool double_precision = false;
  std::uint64_t base_size = 0;  // the base is uniform over ids below; 0: from elsewhere, or none
  double empty_backoff = 1;     // weight of the empty context
  std::uint32_t pad = none;     // sequence chain: the word before the first

  std::size_t levels() const { return widths.size(); }
  std::uint32_t columns() const { return 1 + widths.front(); }
  std::uint64_t roots() const { return outcomes + first_contexts; }
  std::uint64_t slots() const;
  std::size_t slot_bytes() const { return double_precision ? sizeof(Slot<double>) : sizeof(Slot<float>); }
};

// Throws Error(table) if no table can have this shape.
void check_table_shape(const TableShape& shape);

template <class Value>
std::uint32_t find_in_region(const Slot<Value>* slots, const Region& region, std::uint64_t wanted) {
  const std::uint64_t hash = mix64(wanted);
  std::uint64_t at = region.home(hash);
  const std::uint64_t stop = region.begin + region.length;
  for (const std::uint64_t end = at + longest_probe < stop ? at + longest_probe : stop; at < end; ++at) {
    const std::uint64_t found = slots[at].key;
    if (found == wanted) return static_cast<std::uint32_t>(at);
    if (found == empty_key || mix64(found) > hash) return none;
  }
  return none;
}

// The slot of a row of `columns` columns whose first columns have the slot `parent`, or `none`.
template <class Value>
std::uint32_t find_entry(const Slot<Value>* slots, const TableShape& shape, std::uint32_t columns, std::uint32_t parent,
                         std::uint32_t element) {
  if (columns == 1) return element < shape.outcomes && slots[element].key != empty_key ? element : none;
  return find_in_region(slots, shape.entry_regions[columns - 2], slot_key(parent, element));
}

template <class Value>
std::uint32_t find_context(const Slot<Value>* slots, const TableShape& shape, std::uint32_t columns,
                           std::uint32_t parent, std::uint32_t element) {
  if (shape.sequence) return find_entry(slots, shape, columns, parent, element);
  if (columns == 1) {
    const std::uint64_t at = shape.outcomes + element;
    return element < shape.first_contexts && slots[at].key != empty_key ? static_cast<std::uint32_t>(at) : none;
  }
  return find_in_region(slots, shape.context_regions[columns - 2], slot_key(parent, element));
}

// A stored weight as it is used: its size, and 1 if it is no number.
inline double usable_weight(double stored) {
  const double size = stored < 0 ? -stored : stored;
  return size <= 1e30 ? size : 1.0;
}

inline double usable_probability(double stored) {
  const double size = stored < 0 ? -stored : stored;
  return size <= 1 ? size : (size > 1 ? 1.0 : 0.0);
}

// Whether what follows depends on a context with this stored weight.
inline bool matters(double stored) { return stored != -1.0; }

class BackoffTable {
 public:
  // `slots` holds shape.slots() slots and lives as long as `owner`.
  BackoffTable(TableShape shape, const void* slots, std::shared_ptr<const void> owner);

  const TableShape& shape() const { return shape_; }
  const void* data() const { return slots_; }

  std::uint32_t entry(std::uint32_t columns, std::uint32_t parent, std::uint32_t element) const {
    return shape_.double_precision ? find_entry(as<double>(), shape_, columns, parent, element)
                                   : find_entry(as<float>(), shape_, columns, parent, element);
  }
  std::uint32_t context(std::uint32_t columns, std::uint32_t parent, std::uint32_t element) const {
    return shape_.double_precision ? find_context(as<double>(), shape_, columns, parent, element)
                                   : find_context(as<float>(), shape_, columns, parent, element);
  }
  // As stored, with their signs.
  double probability(std::uint32_t slot) const {
    return shape_.double_precision ? as<double>()[slot].probability
                                   : static_cast<double>(as<float>()[slot].probability);
  }
  double backoff(std::uint32_t slot) const {
    return shape_.double_precision ? as<double>()[slot].backoff : static_cast<double>(as<float>()[slot].backoff);
  }
  std::uint64_t key(std::uint32_t slot) const {
    return shape_.double_precision ? as<double>()[slot].key : as<float>()[slot].key;
  }

  // p(x | context) by the levels `from` and below, for a row (x, e1..em); `base` is the base
  // probability of the row.
  double probability_from(std::size_t from, const std::uint32_t* row, double base) const;
  // Slot of a context of `width` columns, or `none`.
  std::uint32_t context_slot(const std::uint32_t* columns, std::uint32_t width) const;
  // Weight of the context of level j, 1 where it has no counts.
  double backoff_of(std::size_t j, const std::uint32_t* columns) const;
  double uniform_base(std::uint32_t outcome) const {
    return outcome < shape_.base_size ? 1.0 / static_cast<double>(shape_.base_size) : 0.0;
  }

  // Sequence chains. ln p of a word after `context` (most recent first, `length` words), and the
  // number of words of (word, context...) that matter from now on.
  struct Advance {
    double log_probability;
    std::uint32_t kept;
  };
  Advance advance(const std::uint32_t* context, std::uint32_t length, std::uint32_t word) const;
  // ln p of every word of the sequences, and of `end` after each unless it is `none`.
  void score_sequences(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts, std::uint32_t start,
                       std::uint32_t end, double* out) const;

  // Calls visit(slot, row) for every stored row of `columns` columns, in the order of the slots.
  template <class Visit>
  void each_row(std::uint32_t columns, const Visit& visit) const;

 private:
  template <class Value>
  const Slot<Value>* as() const {
    return static_cast<const Slot<Value>*>(slots_);
  }
  template <class Value>
  void score_in(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts, std::uint32_t start,
                std::uint32_t end, double* out) const;
  bool path(std::uint32_t slot, std::uint32_t columns, std::uint32_t* row) const;

  TableShape shape_;
  const void* slots_;
  std::shared_ptr<const void> owner_;
};

template <class Visit>
void BackoffTable::each_row(std::uint32_t columns, const Visit& visit) const {
  const std::uint64_t begin = columns == 1 ? 0 : shape_.entry_regions[columns - 2].begin;
  const std::uint64_t end = columns == 1 ? shape_.outcomes : begin + shape_.entry_regions[columns - 2].length;
  std::uint32_t row[max_columns];
  for (std::uint64_t i = begin; i < end; ++i) {
    const auto slot = static_cast<std::uint32_t>(i);
    if (key(slot) != empty_key && path(slot, columns, row)) visit(slot, static_cast<const std::uint32_t*>(row));
  }
}

}  // namespace treelm
