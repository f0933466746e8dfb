// An immutable back-off table: contexts by number, entries by (context, outcome), all of it used
// where it lies in memory.
//
// Contexts are numbered by their number of columns, the empty context first. Each has a back-off
// weight and the number of the context to fall back to. Entries lie in one region a level; those of
// the empty context stand at their outcome. In a hashed region rows lie in the order of their hash,
// as near to hash * capacity / 2^64 as those before them allow, so a search ends at the first slot
// that is empty or has a larger hash. A slot is
//   an entry:    key = context << 32 | outcome, its probability (negative, -p, where the entry was not
//                estimated and only leads on), and, in a sequence chain (n-grams), the number of the
//                context that comes next: an automaton that reads words;
//   a context:   key = shorter context << 32 | last column, and its number (other chains only).
// Whatever the arrays contain, nothing outside them is read and every search ends.
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

inline constexpr std::uint64_t empty_key = ~std::uint64_t{0};
inline constexpr std::uint64_t longest_probe = 1024;  // slots looked at, at most
inline constexpr std::uint32_t max_columns = 32;
inline constexpr std::uint32_t empty_context = 0;

constexpr std::uint64_t slot_key(std::uint32_t context, std::uint32_t last) {
  return std::uint64_t{context} << 32 | last;
}

template <class Value>
struct Slot {
  std::uint64_t key;
  Value probability;
  std::uint32_t next;  // a context
};

template <class Value>
struct ContextInfo {
  Value backoff;
  std::uint32_t shorter;  // the context to fall back to
};
static_assert(sizeof(Slot<float>) == 16 && sizeof(Slot<double>) == 24);
static_assert(sizeof(ContextInfo<float>) == 8 && sizeof(ContextInfo<double>) == 16);

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

struct Region {
  std::uint64_t begin = 0;
  std::uint64_t capacity = 0;  // slots that hashes point at
  std::uint64_t length = 0;    // with those pushed beyond the end

  std::uint64_t home(std::uint64_t hash) const { return begin + multiply_high(hash, capacity); }
};

struct TableShape {
  std::vector<std::uint32_t> widths;          // context columns of each level, strictly falling
  std::uint64_t outcomes = 0;                 // all outcomes are below
  std::uint64_t first_contexts = 0;           // all first context columns are below; 0 in a sequence chain
  std::vector<Region> entry_regions;          // by level
  std::vector<Region> context_regions;        // contexts of 1, 2, ... columns; none in a sequence chain
  std::vector<std::uint64_t> context_starts;  // number of the first context of 0, 1, ... columns, and the end
  bool sequence = false;                      // contexts are the outcomes before
  bool double_precision = false;
  std::uint64_t base_size = 0;  // the base is uniform over ids below; 0: from elsewhere, or none
  std::uint32_t pad = none;     // sequence chain: the word before the first

  std::size_t levels() const { return widths.size(); }
  std::uint32_t columns() const { return 1 + widths.front(); }
  std::uint64_t contexts() const { return context_starts.empty() ? 0 : context_starts.back(); }
  std::uint64_t slots() const;
  std::size_t slot_bytes() const { return double_precision ? sizeof(Slot<double>) : sizeof(Slot<float>); }
  std::size_t context_bytes() const {
    return double_precision ? sizeof(ContextInfo<double>) : sizeof(ContextInfo<float>);
  }
  // Whether the entries of a level stand at their outcome.
  bool direct(std::size_t level) const { return widths[level] == 0; }
  std::uint32_t depth_of(std::uint32_t context) const {
    std::uint32_t depth = 0;
    while (depth + 2 < context_starts.size() && context >= context_starts[depth + 1]) ++depth;
    return depth;
  }
};

// Throws Error(table) if no table can have this shape.
void check_table_shape(const TableShape& shape);

template <class Value>
std::uint64_t find_in_region(const Slot<Value>* slots, const Region& region, std::uint64_t wanted) {
  const std::uint64_t hash = mix64(wanted);
  std::uint64_t at = region.home(hash);
  const std::uint64_t stop = region.begin + region.length;
  for (const std::uint64_t end = at + longest_probe < stop ? at + longest_probe : stop; at < end; ++at) {
    const std::uint64_t found = slots[at].key;
    if (found == wanted) return at;
    if (found == empty_key || mix64(found) > hash) return empty_key;
  }
  return empty_key;
}

// A stored weight as it is used: 1 if it is no number.
inline double usable_weight(double stored) { return stored >= 0 && stored <= 1e30 ? stored : 1.0; }

inline double usable_probability(double stored) {
  const double size = stored < 0 ? -stored : stored;
  return size <= 1 ? size : (size > 1 ? 1.0 : 0.0);
}

class BackoffTable {
 public:
  // The arrays hold shape.slots() slots and shape.contexts() contexts and live as long as `owner`.
  BackoffTable(TableShape shape, const void* slots, const void* contexts, std::shared_ptr<const void> owner);

  const TableShape& shape() const { return shape_; }
  const void* slots() const { return slots_; }
  const void* contexts() const { return contexts_; }

  // p(x | context) by the levels `from` and below, for a row (x, e1..em); `base` is the base
  // probability of the row.
  double probability_from(std::size_t from, const std::uint32_t* row, double base) const;
  // Weight of the context of level j, 1 where it has no counts.
  double backoff_of(std::size_t j, const std::uint32_t* columns) const;
  double uniform_base(std::uint32_t outcome) const {
    return outcome < shape_.base_size ? 1.0 / static_cast<double>(shape_.base_size) : 0.0;
  }
  // The stored contexts of every level from `from` on, `none` where there is none.
  void find_contexts(std::size_t from, const std::uint32_t* columns, std::uint32_t* found) const;

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

  // Calls visit(slot, context, outcome, probability, next) for every entry of a level.
  template <class Visit>
  void each_entry(std::size_t level, const Visit& visit) const;
  double backoff(std::uint32_t context) const {
    return shape_.double_precision ? info<double>()[context].backoff
                                   : static_cast<double>(info<float>()[context].backoff);
  }

 private:
  template <class Value>
  const Slot<Value>* slot() const {
    return static_cast<const Slot<Value>*>(slots_);
  }
  template <class Value>
  const ContextInfo<Value>* info() const {
    return static_cast<const ContextInfo<Value>*>(contexts_);
  }
  template <class Value>
  std::uint64_t find_entry(std::size_t level, std::uint32_t context, std::uint32_t outcome) const;
  template <class Value>
  double probability_in(std::size_t from, const std::uint32_t* row, double base) const;
  template <class Value>
  void contexts_in(std::size_t from, const std::uint32_t* columns, std::uint32_t* found) const;
  template <class Value>
  std::uint32_t read(std::uint32_t context, std::uint32_t word, double* p) const;
  template <class Value>
  void score_in(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts, std::uint32_t start,
                std::uint32_t end, double* out) const;

  TableShape shape_;
  const void* slots_;
  const void* contexts_;
  std::shared_ptr<const void> owner_;
};

// The columns of every context, most important first; filled in once for those who list a table.
class ContextColumns {
 public:
  explicit ContextColumns(const BackoffTable& table);
  // Writes the columns of a context and returns their number, or `none` if it leads nowhere.
  std::uint32_t columns(std::uint32_t context, std::uint32_t* out) const;

 private:
  const TableShape& shape_;
  std::vector<std::uint32_t> shorter_, column_;
};

template <class Visit>
void BackoffTable::each_entry(std::size_t level, const Visit& visit) const {
  const Region& region = shape_.entry_regions[level];
  for (std::uint64_t i = region.begin; i < region.begin + region.length; ++i) {
    const std::uint64_t key = shape_.double_precision ? slot<double>()[i].key : slot<float>()[i].key;
    if (key == empty_key) continue;
    const auto context = static_cast<std::uint32_t>(key >> 32), outcome = static_cast<std::uint32_t>(key);
    if (context >= shape_.contexts() || outcome >= shape_.outcomes) continue;
    const double p =
        shape_.double_precision ? slot<double>()[i].probability : static_cast<double>(slot<float>()[i].probability);
    const std::uint32_t next = shape_.double_precision ? slot<double>()[i].next : slot<float>()[i].next;
    visit(i, context, outcome, p, next);
  }
}

}  // namespace treelm
