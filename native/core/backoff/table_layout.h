// How a back-off table lies in memory and in its file: regions of slots, each in the order of a hash,
// or, in a compact table, of rows of a few bits, each sorted by context and last column.
//
// A region holds rows (context, last column) of one kind: the entries of a level, or, where contexts
// are not entries themselves, the contexts of so many columns. Its rows are numbered by their place.
// A hash that has an inverse puts them in order and into buckets, whose bounds stand in the index; a
// slot therefore keeps only the bits of its hash that the bucket does not tell. Rows that a small
// number points at directly (entries of the empty context, contexts of one column) have neither.
//   slot = check bits and link bits in as few bytes as hold them, then probability, then weight
// What a region has of these follows from its kind. All sizes follow from the numbers in TableShape.
//
// A row of a compact table has its last column, probability and weight in as many bits as they need,
// and no link. Where the rows of each context lie stands in the index (child_ranges.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "backoff/child_ranges.h"
#include "base/error.h"
#include "base/symbols.h"

namespace treelm {

inline constexpr std::uint32_t max_columns = 32;
inline constexpr std::uint32_t empty_context = 0;
inline constexpr std::uint64_t longest_bucket = 1024;  // rows looked at, at most
inline constexpr std::uint64_t no_position = ~std::uint64_t{0};
inline constexpr std::size_t slot_padding = 8;  // bytes behind the last slot that may be read
inline constexpr unsigned most_code_bits = 20;  // of a compact table

// A probability that says that nothing stands at this place of a direct region.
inline constexpr double absent = -2.0;
// A weight that says that nothing stored follows.
inline constexpr double not_a_context = -1.0;

// A permutation of the numbers of `bits` bits, and its inverse.
class BitMixer {
 public:
  explicit BitMixer(unsigned bits = 0)
      : mask_(bits == 0 ? 0 : ~std::uint64_t{0} >> (64 - bits)), shift_(std::max(1u, (bits + 1) / 2)) {}
  std::uint64_t mix(std::uint64_t x) const {
    x ^= x >> shift_;
    x = x * first & mask_;
    x ^= x >> shift_;
    x = x * second & mask_;
    return x ^ x >> shift_;
  }
  std::uint64_t unmix(std::uint64_t x) const {
    x ^= x >> shift_;
    x = x * inverse(second) & mask_;
    x ^= x >> shift_;
    x = x * inverse(first) & mask_;
    return x ^ x >> shift_;
  }

 private:
  static constexpr std::uint64_t first = 0xBF58476D1CE4E5B9ull, second = 0x94D049BB133111EBull;
  static constexpr std::uint64_t inverse(std::uint64_t odd) {
    std::uint64_t x = odd;  // right in the last three bits, and each step doubles them
    for (int i = 0; i < 5; ++i) x *= 2 - odd * x;
    return x;
  }
  std::uint64_t mask_;
  unsigned shift_;
};

// What a file says about a region.
struct RegionSize {
  std::uint64_t rows = 0;
  std::uint64_t buckets = 0;  // 0: direct; 1 in any other region of a compact table
  std::uint32_t last_bits = 0;
  std::uint32_t probability_bits = 0, weight_bits = 0;  // of a compact table: fewer than 32 are codes

  friend bool operator==(const RegionSize&, const RegionSize&) = default;
};

struct TableShape {
  std::vector<std::uint32_t> widths;  // context columns of each level, strictly falling
  std::uint64_t outcomes = 0;         // all outcomes are below
  std::uint64_t first_contexts = 0;   // all first context columns are below; 0 in a sequence chain
  std::vector<RegionSize> entries;    // by level
  std::vector<RegionSize> contexts;   // of 1, 2, ... columns; none in a sequence chain
  bool sequence = false;              // contexts are the outcomes before: every entry may be one
  std::uint32_t value_bits = 32;      // of probabilities and weights: 8 and 16 are codes, 32 and 64 floats
  std::uint64_t base_size = 0;        // the base is uniform over ids below; 0: from elsewhere, or none
  std::uint32_t pad = none;           // sequence chain: the word before the first
  double empty_weight = 1;            // of the empty context
  bool compact = false;

  std::size_t levels() const { return widths.size(); }
  std::uint32_t columns() const { return 1 + widths.front(); }
  bool coded() const { return value_bits < 32; }
  // Whether the entries of a level stand at their outcome.
  bool direct(std::size_t level) const { return widths[level] == 0; }
};

struct Region {
  std::uint64_t begin = 0;  // byte of the first slot
  std::uint64_t rows = 0;
  std::uint64_t index = 0;  // of its first bucket
  std::uint64_t buckets = 0;
  std::uint64_t contexts = 1;       // its rows go on from so many
  std::uint64_t first_context = 0;  // their numbers begin here
  std::uint64_t first_own = 0;      // the number of its first row, where rows are contexts
  unsigned context_bits = 0, last_bits = 0, check_bits = 0, link_bits = 0;
  std::size_t head_bytes = 0, value_bytes = 0, slot_bytes = 0;
  bool has_probability = false, has_weight = false;
  std::uint64_t codebook = 0;  // of its first code, that for probabilities before that for weights
  std::uint64_t hashes_a_bucket = 0, hashes_left = 0;  // of all hashes, divided among the buckets
  BitMixer mixer;
  // Compact tables.
  unsigned probability_bits = 0, weight_bits = 0, row_bits = 0;
  std::uint64_t weight_codebook = 0;
  ChildRanges ranges;

  bool direct() const { return buckets == 0; }
  unsigned key_bits() const { return context_bits + last_bits; }
  bool fits(std::uint64_t context, std::uint32_t last) const {
    return context < contexts && (last_bits >= 32 || last >> last_bits == 0);
  }
  std::uint64_t key(std::uint64_t context, std::uint32_t last) const { return context << last_bits | last; }
  std::uint64_t check(std::uint64_t hash) const { return hash & low_bits(check_bits); }
  // Sets the buckets, and what follows from them and the bits of a key.
  void divide(std::uint64_t into);
  // The bucket of a hash, and how far into the bucket it lies, in 2^-64.
  struct Place {
    std::uint64_t bucket, fraction;
  };
  Place place(std::uint64_t hash) const;
  std::uint64_t bucket(std::uint64_t hash) const { return place(hash).bucket; }
  // The smallest hash of a bucket.
  std::uint64_t lowest(std::uint64_t bucket) const {
    return bucket * hashes_a_bucket + (bucket * hashes_left + buckets - 1) / buckets;
  }
  std::uint64_t slot(std::uint64_t position) const { return begin + position * slot_bytes; }
  // The bit that a row of a compact table begins at.
  std::uint64_t row(std::uint64_t position) const { return begin * 8 + position * row_bits; }
  std::size_t weight_at() const { return head_bytes + (has_probability ? value_bytes : 0); }

  static std::uint64_t low_bits(unsigned bits) { return lowest_bits(bits); }
  std::uint64_t head(const std::uint8_t* slot) const {
    std::uint64_t head;
    std::memcpy(&head, slot, sizeof head);
    return head & low_bits(check_bits + link_bits);
  }
  std::uint64_t check_of(std::uint64_t head) const { return head & low_bits(check_bits); }
  std::uint64_t link_of(std::uint64_t head) const { return link_bits == 0 ? 0 : head >> check_bits; }
};

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

inline Region::Place Region::place(std::uint64_t hash) const {
  const std::uint64_t share = key_bits() == 0 ? 0 : hash << (64 - key_bits());
  return {multiply_high(share, buckets), share * buckets};
}

// The regions of a table, in the order of the file: level after level from the last one up, each
// after the contexts that it adds.
class TableLayout {
 public:
  // Throws Error(table) if no table can have this shape.
  explicit TableLayout(const TableShape& shape);
  TableLayout() = default;

  std::vector<Region> entries;        // by level
  std::vector<Region> contexts;       // of 1, 2, ... columns; none in a sequence chain
  std::vector<std::uint64_t> starts;  // number of the first context of 0, 1, ... columns, and the end
  std::uint64_t slot_bytes = 0;       // of all slots, with what may be read behind them
  std::uint64_t index_length = 0;     // buckets and one more a region
  std::uint64_t codebook_length = 0;

  std::uint64_t context_count() const { return starts.back(); }
  std::uint32_t depth_of(std::uint32_t context) const {
    std::uint32_t depth = 0;
    while (depth + 2 < starts.size() && context >= starts[depth + 1]) ++depth;
    return depth;
  }
};

// Region by region, for those who build a table: what follows from the regions below.
Region entry_region(const TableShape& shape, std::size_t level, const RegionSize& size,
                    const std::vector<std::uint64_t>& starts);
Region context_region(const TableShape& shape, std::uint32_t depth, const RegionSize& size,
                      const std::vector<std::uint64_t>& starts);

}  // namespace treelm
