// An immutable back-off table: contexts by number, entries by (context, outcome), all of it used
// where it lies in memory (see table_layout.h).
//
// An entry has its probability (negative, -p, where it was not estimated and only leads on). In a
// sequence chain (n-grams) entries of all levels but the longest are contexts themselves, with a
// back-off weight, negative if nothing stored follows; the link of an entry is the longest context
// that remains when its oldest word is dropped: an automaton that reads words. In other chains contexts
// have regions of their own. Whatever the arrays contain, nothing outside them is read and every
// search ends.
//
// A compact table says the same in fewer bytes: its rows are sorted, and have no links, so that a
// chain of contexts is found by looking the word up after each of the contexts before.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backoff/table_layout.h"
#include "base/error.h"
#include "base/prefetch.h"
#include "base/symbols.h"

namespace treelm {

// Weights and probabilities as they are used, whatever a file says.
inline double usable_weight(double stored) { return stored >= 0 && stored <= 1e30 ? stored : 1.0; }

inline double usable_probability(double stored) {
  const double size = stored < 0 ? -stored : stored;
  return size <= 1 ? size : (size > 1 ? 1.0 : 0.0);
}

// A stored value; codes have theirs in a book.
template <unsigned Bits>
double load_value(const std::uint8_t* place, const float* codebook) {
  if constexpr (Bits == 8) {
    return static_cast<double>(codebook[*place]);
  } else if constexpr (Bits == 16) {
    std::uint16_t code;
    std::memcpy(&code, place, sizeof code);
    return static_cast<double>(codebook[code]);
  } else if constexpr (Bits == 32) {
    float value;
    std::memcpy(&value, place, sizeof value);
    return static_cast<double>(value);
  } else {
    double value;
    std::memcpy(&value, place, sizeof value);
    return value;
  }
}

// Stands for the bits of a value where these differ from region to region: in compact tables.
inline constexpr unsigned own_bits = 0;

// A value of a row of a compact table.
inline double load_field(const std::uint8_t* slots, std::uint64_t bit, unsigned bits, const float* codebook) {
  if (bits <= most_code_bits) return static_cast<double>(codebook[read_bits(slots, bit, bits)]);
  const std::uint64_t low = read_bits(slots, bit, 32);
  if (bits == 32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(low)));
  return std::bit_cast<double>(read_bits(slots, bit + 32, 32) << 32 | low);
}

// Calls body.template operator()<Bits>() for the bits of a value.
template <class Body>
decltype(auto) with_value_bits(unsigned bits, Body&& body) {
  switch (bits) {
    case own_bits: return body.template operator()<own_bits>();
    case 8: return body.template operator()<8>();
    case 16: return body.template operator()<16>();
    case 32: return body.template operator()<32>();
    default: return body.template operator()<64>();
  }
}

// The arrays of a table; they live as long as `owner`.
struct TableArrays {
  const std::uint8_t* slots = nullptr;
  const std::uint32_t* index = nullptr;
  const float* codebooks = nullptr;
  std::shared_ptr<const void> owner;
  std::function<void()> forget = nullptr;  // lets what was read leave the memory, if it can come back from a file
};

class BackoffTable {
 public:
  // The arrays are as long as TableLayout says. Throws Error(table) if the ranges of a compact table are not some.
  BackoffTable(TableShape shape, TableArrays arrays);

  const TableShape& shape() const { return shape_; }
  const TableLayout& layout() const { return layout_; }
  const TableArrays& arrays() const { return arrays_; }
  std::uint64_t contexts() const { return layout_.context_count(); }
  std::uint32_t depth_of(std::uint32_t context) const { return layout_.depth_of(context); }

  // p(x | context) by the levels `from` and below, for a row (x, e1..em); `base` is the base
  // probability of the row.
  double probability_from(std::size_t from, const std::uint32_t* row, double base) const;
  // The same for all outcomes from 0 on after one context, by all levels, with the uniform base.
  void distribution(const std::uint32_t* columns, std::span<double> out) const;
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
  // The same one word after the other: the context that stands for words, most recent first; then what reading a word
  // after a context gives, ln p and the context that comes next.
  std::uint32_t context_after(const std::uint32_t* words, std::uint32_t length) const;
  double read_word(std::uint32_t& context, std::uint32_t word) const;
  // How many words the longest stored sequence has that `word` ends after a context; 0 if it has no entry at all.
  std::uint32_t matched_words(std::uint32_t context, std::uint32_t word) const;
  // The same as `read_word` for words one after the other, which are looked up side by side as far as can be.
  void read_words(std::uint32_t context, std::span<const std::uint32_t> words, double* out) const;
  // Asks for what a word will need if it is known after a context.
  void fetch_after(std::uint32_t context, std::uint32_t word) const;
  // The same if it is not known after more than the one word before it.
  void fetch_word(std::uint32_t before, std::uint32_t word) const;
  // What a word may need at any depth after a context that ends with `before`, asked for in two steps. Whoever has
  // something else to do does it between them: the first asks where the rows lie, the second for the rows.
  class Sought {
    friend class BackoffTable;
    struct Look {
      const Region* region;
      std::uint64_t row;  // of the context
      std::uint64_t hash;
      Region::Place place;
    };
    std::array<Look, 4> looks_;
    std::size_t count_ = 0;
  };
  Sought seek(std::uint32_t context, std::uint32_t before, std::uint32_t word) const;
  void fetch(const Sought& sought) const;
  // What `read_word` gives for the word that was sought after a context.
  double read_sought(const Sought& sought, std::uint32_t& context, std::uint32_t word) const;
  // Asks for what falling back from a context will need.
  void fetch_back(std::uint32_t context) const;
  // ln p of every word of the sequences, and of `end` after each unless it is `none`.
  void score_sequences(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts, std::uint32_t start,
                       std::uint32_t end, double* out) const;

  // Calls visit(position, context, last) for every row of a region, by position, once.
  template <class Visit>
  void each_row(const Region& region, const Visit& visit) const;
  // Calls visit(position, context, outcome, probability, own) for every entry of a level; `own` is the
  // number of the entry as a context, or the empty one if it is none.
  template <class Visit>
  void each_entry(std::size_t level, const Visit& visit) const;
  double backoff(std::uint32_t context) const;
  // The context of a sequence chain without its oldest word.
  std::uint32_t shorter_context(std::uint32_t context) const;
  // The value at a row of a region.
  double probability_of(const Region& region, std::uint64_t position) const {
    return with_value_bits(access(), [&]<unsigned Bits>() { return probability_at<Bits>(region, position); });
  }
  double weight_of_row(const Region& region, std::uint64_t position) const {
    return with_value_bits(access(), [&]<unsigned Bits>() { return weight_at<Bits>(region, position); });
  }

 private:
  unsigned access() const { return shape_.compact ? own_bits : shape_.value_bits; }
  // Where the rows of a bucket lie; none if the index is nonsense.
  std::pair<std::uint64_t, std::uint64_t> bucket_rows(const Region& region, std::uint64_t bucket) const {
    const std::uint64_t from = arrays_.index[region.index + bucket], to = arrays_.index[region.index + bucket + 1];
    if (from > to || to > region.rows) return {0, 0};
    return {from, std::min(to, from + longest_bucket)};
  }
  const std::uint8_t* slot(const Region& region, std::uint64_t position) const {
    return arrays_.slots + region.slot(position);
  }
  // The row of a bucket to look at first: rows lie in the order of their hashes, which are spread evenly.
  static std::uint64_t likely_row(const Region::Place& place, std::uint64_t from, std::uint64_t to) {
    return from + multiply_high(place.fraction, to - from);
  }
  void prefetch_rows(const Region& region, const Region::Place& place, std::uint64_t from, std::uint64_t to) const {
    const std::uint8_t* row = slot(region, likely_row(place, from, to));
    prefetch(row - region.slot_bytes);
    prefetch(row + 2 * region.slot_bytes);
  }
  // The position of the row with this hash among those of its bucket, at least one; or no_position.
  std::uint64_t find_between(const Region& region, std::uint64_t hash, const Region::Place& place, std::uint64_t from,
                             std::uint64_t to) const {
    const std::uint64_t lowest = region.lowest(place.bucket), wanted = region.check(hash - lowest);
    const auto offset = [&](std::uint64_t position) {
      return region.check(region.check_of(region.head(slot(region, position))) - lowest);
    };
    std::uint64_t at = likely_row(place, from, to), found = offset(at);
    while (found < wanted && ++at < to) found = offset(at);
    while (found > wanted && at > from) found = offset(--at);
    return found == wanted ? at : no_position;
  }
  // What was found when words one after the other were looked up at once, each after one, two, ... words before it.
  static constexpr std::size_t most_fetched = 64, most_depths = 4;
  struct Found {
    std::uint64_t context = no_position;  // row of the words before; no_position if nothing was looked up
    std::uint64_t row = no_position;
  };
  using FoundRows = std::array<std::array<Found, most_depths>, most_fetched>;
  // Looks these words up, no more than `most_fetched`, and brings what reading them will need into the caches.
  void look_ahead(std::span<const std::uint32_t> words, FoundRows& found) const;
  // The position of a row, or no_position.
  template <unsigned Bits>
  std::uint64_t find(const Region& region, std::uint64_t context, std::uint32_t last) const;
  // The region that holds the contexts of so many columns, at least one.
  const Region& contexts_of(std::uint32_t depth) const {
    return shape_.sequence ? layout_.entries[shape_.widths.front() + 1 - depth] : layout_.contexts[depth - 1];
  }
  template <unsigned Bits>
  double probability_at(const Region& region, std::uint64_t position) const {
    if constexpr (Bits == own_bits)
      return load_field(arrays_.slots, region.row(position) + region.last_bits, region.probability_bits,
                        arrays_.codebooks + region.codebook);
    return load_value<Bits>(slot(region, position) + region.head_bytes, arrays_.codebooks + region.codebook);
  }
  template <unsigned Bits>
  double weight_at(const Region& region, std::uint64_t position) const {
    if constexpr (Bits == own_bits)
      return load_field(arrays_.slots, region.row(position) + region.last_bits + region.probability_bits,
                        region.weight_bits, arrays_.codebooks + region.weight_codebook);
    const std::uint64_t skipped = Bits < 32 && region.has_probability ? std::uint64_t{1} << Bits : 0;
    return load_value<Bits>(slot(region, position) + region.weight_at(), arrays_.codebooks + region.codebook + skipped);
  }
  template <unsigned Bits>
  double weight_of(std::uint32_t context, std::uint32_t depth) const {
    if (depth == 0) return shape_.empty_weight;
    return weight_at<Bits>(contexts_of(depth), context - layout_.starts[depth]);
  }
  // What an entry of a sequence chain leads to.
  std::uint32_t follow(const Region& region, std::uint64_t position, double weight) const {
    if (region.has_weight && !std::signbit(weight)) return static_cast<std::uint32_t>(region.first_own + position);
    const std::uint64_t link = region.link_of(region.head(slot(region, position)));
    return link < region.first_own ? static_cast<std::uint32_t>(link) : empty_context;
  }
  // The context to fall back to from one of `depth` words.
  std::uint32_t shorter(std::uint32_t context, std::uint32_t depth) const {
    const Region& region = contexts_of(depth);
    const std::uint64_t link = region.link_of(region.head(slot(region, context - layout_.starts[depth])));
    return link < layout_.starts[depth] ? static_cast<std::uint32_t>(link) : empty_context;
  }
  template <unsigned Bits>
  double probability_in(std::size_t from, const std::uint32_t* row, double base) const;
  template <unsigned Bits>
  void distribution_in(const std::uint32_t* columns, std::span<double> out) const;
  template <unsigned Bits>
  void contexts_in(std::size_t from, const std::uint32_t* columns, std::uint32_t* found) const;
  template <unsigned Bits>
  std::uint32_t read(std::uint32_t context, std::uint32_t word, double* p) const;
  // The same, where find(region, depth, row of the context) gives the row of the word.
  template <unsigned Bits, class Find>
  std::uint32_t read_with(const Find& find, std::uint32_t context, std::uint32_t word, double* p) const;
  template <unsigned Bits>
  class SequenceScorer;

  // Compact tables.
  class CompactScorer;
  ChildRanges::Range rows_of(const Region& region, std::uint64_t context) const {
    return region.ranges.range(arrays_.index + region.index, context);
  }
  std::uint32_t last_of(const Region& region, std::uint64_t position) const {
    return static_cast<std::uint32_t>(read_bits(arrays_.slots, region.row(position), region.last_bits));
  }
  // The position of the row with this last column among sorted ones, or no_position.
  std::uint64_t find_sorted(const Region& region, std::uint64_t from, std::uint64_t to, std::uint32_t last) const {
    while (from < to) {
      const std::uint64_t middle = from + (to - from) / 2;
      const std::uint32_t found = last_of(region, middle);
      if (found == last) return middle;
      if (found < last)
        from = middle + 1;
      else
        to = middle;
    }
    return no_position;
  }
  // The contexts that words before end with, of 0, 1, ... words: `none` where there is none.
  struct Suffixes {
    std::uint32_t longest = 0;
    std::array<std::uint32_t, max_columns + 1> contexts{};  // up to the longest
  };
  Suffixes suffixes_of(std::uint32_t context) const;
  // The same after words, most recent first.
  Suffixes suffixes_after(const std::uint32_t* words, std::uint32_t length) const;
  void score_compact(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts, std::uint32_t start,
                     std::uint32_t end, double* out) const;
  void read_compact(std::uint32_t context, std::span<const std::uint32_t> words, double* out) const;
  // Reads a word: its probability, and the contexts that come next.
  double read_after(Suffixes& before, std::uint32_t word) const;

  TableShape shape_;
  TableLayout layout_;
  TableArrays arrays_;
};

// The columns of every context, most important first; filled in once for those who list a table.
class ContextColumns {
 public:
  explicit ContextColumns(const BackoffTable& table);
  // Writes the columns of a context and returns their number, or `none` if it leads nowhere.
  std::uint32_t columns(std::uint32_t context, std::uint32_t* out) const;

 private:
  const BackoffTable& table_;
  std::vector<std::uint32_t> shorter_, column_;
};

template <unsigned Bits, class Find>
std::uint32_t BackoffTable::read_with(const Find& find, std::uint32_t context, std::uint32_t word, double* p) const {
  double weight = 1;
  std::uint32_t depth = depth_of(context);
  for (;;) {
    const Region& region = layout_.entries[shape_.widths.front() - depth];
    const std::uint64_t at = find(region, depth, context - layout_.starts[depth]);
    const double stored = at == no_position ? absent : probability_at<Bits>(region, at);
    if (at != no_position && (depth > 0 || stored != absent)) {
      *p = weight * usable_probability(stored);
      return follow(region, at, region.has_weight ? weight_at<Bits>(region, at) : not_a_context);
    }
    weight *= usable_weight(weight_of<Bits>(context, depth));
    if (depth == 0) {
      *p = weight * uniform_base(word);
      return empty_context;
    }
    context = shorter(context, depth);
    depth = depth_of(context);
  }
}

template <class Visit>
void BackoffTable::each_row(const Region& region, const Visit& visit) const {
  if (region.direct()) {
    for (std::uint64_t i = 0; i < region.rows; ++i)
      visit(i, static_cast<std::uint32_t>(region.first_context), static_cast<std::uint32_t>(i));
    return;
  }
  if (shape_.compact) {
    for (std::uint64_t context = 0; context < region.contexts; ++context)
      for (auto [i, to] = rows_of(region, context); i < to; ++i)
        visit(i, static_cast<std::uint32_t>(region.first_context + context), last_of(region, i));
    return;
  }
  std::uint64_t i = 0;  // buckets that overlap would list a row many times
  for (std::uint64_t bucket = 0; bucket < region.buckets; ++bucket) {
    const auto [from, to] = bucket_rows(region, bucket);
    const std::uint64_t lowest = region.lowest(bucket);
    for (i = std::max(i, from); i < to; ++i) {
      const std::uint64_t hash = lowest + region.check(region.check_of(region.head(slot(region, i))) - lowest);
      if (hash > Region::low_bits(region.key_bits())) continue;
      const std::uint64_t key = region.mixer.unmix(hash), context = key >> region.last_bits;
      if (region.last_bits == 64 || context >= region.contexts) continue;
      visit(i, static_cast<std::uint32_t>(region.first_context + context),
            static_cast<std::uint32_t>(key & Region::low_bits(region.last_bits)));
    }
  }
}

template <class Visit>
void BackoffTable::each_entry(std::size_t level, const Visit& visit) const {
  const Region& region = layout_.entries[level];
  with_value_bits(access(), [&]<unsigned Bits>() {
    each_row(region, [&](std::uint64_t i, std::uint32_t context, std::uint32_t outcome) {
      const double p = probability_at<Bits>(region, i);
      if (outcome >= shape_.outcomes || (region.direct() && p == absent)) return;
      const bool own = shape_.sequence && region.has_weight && !std::signbit(weight_at<Bits>(region, i));
      visit(i, context, outcome, p, own ? static_cast<std::uint32_t>(region.first_own + i) : empty_context);
    });
  });
}

}  // namespace treelm
