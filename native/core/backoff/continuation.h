// Level counts of a back-off chain, from one sorted pass over the events.
//
// Level j keeps the first widths[j] context columns. Its counts are those of Kneser & Ney: tokens at
// the first level, below it the number of distinct entries of the level above; contexts that hold
// exactly one pad keep token counts, contexts with more have no counts at all.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/counter.h"
#include "base/symbols.h"

namespace treelm {

struct ChainShape {
  std::vector<std::uint32_t> widths;  // strictly falling
  std::vector<std::uint32_t> pads;    // per context column the id of its pad, or `none`

  std::size_t levels() const { return widths.size(); }
  std::size_t columns() const { return pads.size() + 1; }
};

// Throws Error(chain) unless every level follows from the one above and a step drops at most one pad.
void check_shape(const ChainShape& shape);
// The same, and that the chain fits the events, of which there are some.
void check_events(const SortedEvents& events, const ChainShape& shape);

struct LevelCounts {
  LargeVector<std::uint32_t> first_row;  // of each entry, in ascending order
  LargeVector<std::uint32_t> count;      // N_j
  LargeVector<std::uint32_t> tokens;     // tok_j; empty where it equals `count`
};

// What is known of one context.
struct ContextCounts {
  std::uint64_t total = 0;                     // S
  std::array<std::uint32_t, 3> outcomes_of{};  // outcomes counted once, twice, more often

  std::uint64_t types() const {
    return std::uint64_t{outcomes_of[0]} + std::uint64_t{outcomes_of[1]} + std::uint64_t{outcomes_of[2]};
  }
};

// The contexts of one level, in ascending order, and which one each entry has.
struct LevelContexts {
  LargeVector<ContextCounts> counts;
  LargeVector<std::uint32_t> an_entry;    // some entry of each context
  LargeVector<std::uint32_t> context_of;  // per entry of the level
};

class ChainCounts {
 public:
  // `token_counts`: tok_j at every level instead of continuation counts.
  // `keep_tokens`: tok_j is kept beside continuation counts.
  ChainCounts(std::shared_ptr<const SortedEvents> events, ChainShape shape, bool token_counts, bool keep_tokens,
              std::size_t threads);

  const ChainShape& shape() const { return shape_; }
  const SortedEvents& events() const { return *events_; }
  std::size_t levels() const { return levels_.size(); }
  const LevelCounts& level(std::size_t j) const { return levels_[j]; }
  std::size_t size(std::size_t j) const { return levels_[j].count.size(); }
  bool has_tokens() const { return token_counts_ || keep_tokens_; }
  // Whether the counts of all levels are those of tokens.
  bool counts_tokens() const { return token_counts_; }
  std::uint32_t tokens(std::size_t j, std::size_t entry) const {
    return levels_[j].tokens.empty() ? levels_[j].count[entry] : levels_[j].tokens[entry];
  }
  // n_1..n_4: entries of level j counted once, twice, three and four times.
  std::array<std::uint64_t, 4> counts_of_counts(std::size_t j) const;
  LevelContexts contexts(std::size_t j) const;
  // Entry of level j that holds the first columns of `row`, or `none`.
  std::uint32_t find(std::size_t j, const std::uint32_t* row) const;
  std::vector<std::uint32_t> row(std::size_t j, std::size_t entry) const;
  std::size_t threads() const { return threads_; }

 private:
  template <std::size_t W>
  void count_levels();
  template <std::size_t W, std::size_t V>
  LevelContexts group(std::size_t j) const;

  std::shared_ptr<const SortedEvents> events_;
  ChainShape shape_;
  bool token_counts_, keep_tokens_;
  std::size_t threads_;
  std::vector<LevelCounts> levels_;
};

}  // namespace treelm
