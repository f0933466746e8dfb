// Sequence chains: words one after the other, and many sentences at once.

#include <algorithm>
#include <array>
#include <cmath>

#include "backoff_table.h"

namespace treelm {

BackoffTable::Advance BackoffTable::advance(const std::uint32_t* context, std::uint32_t length,
                                            std::uint32_t word) const {
  const std::uint32_t longest = shape_.widths.front();
  length = std::min(length, longest);
  double p = uniform_base(word);
  std::uint32_t found = 0, kept = 0, slot = entry_root;
  for (std::uint32_t depth = 0; depth <= length; ++depth) {
    slot = entry(depth + 1, slot, depth == 0 ? word : context[depth - 1]);
    if (slot == none) break;
    p = usable_probability(probability(slot));
    found = depth + 1;
    if (depth < longest && matters(backoff(slot))) kept = depth + 1;
  }
  if (found == 0) p *= shape_.empty_backoff;
  std::uint32_t at = entry_root;
  for (std::uint32_t width = 1; width <= length; ++width) {
    at = entry(width, at, context[width - 1]);
    if (at == none) break;
    if (width >= found) p *= usable_weight(backoff(at));
  }
  return {std::log(p), kept};
}

namespace {

constexpr std::size_t batch = 32;

// One word to be scored: itself, then the words before it, most recent first.
struct Query {
  std::array<std::uint32_t, max_columns> column;
  std::uint32_t columns = 0;
  std::uint32_t found = 0;
  std::uint32_t slot = entry_root;
  bool first = false;  // of its sequence
  double probability = 0;
  std::array<double, max_columns> weight;  // of the contexts that this word begins, by width - 1
};

}  // namespace

template <class Value>
void BackoffTable::score_in(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                            std::uint32_t start, std::uint32_t end, double* out) const {
  const Slot<Value>* slots = as<Value>();
  const auto order = static_cast<std::uint32_t>(shape_.columns());
  std::vector<Query> queries(batch);
  std::array<double, max_columns> before{}, after_start;
  after_start.fill(1.0);
  if (const std::uint32_t slot = find_entry(slots, shape_, 1, entry_root, start); slot != none)
    after_start[0] = usable_weight(static_cast<double>(slots[slot].backoff));

  std::size_t filled = 0;
  const auto flush = [&] {
    for (std::uint32_t depth = 0; depth < order; ++depth) {
      bool any = false;
      for (std::size_t i = 0; i < filled; ++i) {
        const Query& query = queries[i];
        if (query.found != depth || query.columns <= depth) continue;
        any = true;
#if defined(__GNUC__)
        if (depth > 0) {
          __builtin_prefetch(slots +
                             shape_.entry_regions[depth - 1].home(mix64(slot_key(query.slot, query.column[depth]))));
        } else if (query.column[0] < shape_.outcomes) {
          __builtin_prefetch(slots + query.column[0]);
        }
#endif
      }
      if (!any) break;
      for (std::size_t i = 0; i < filled; ++i) {
        Query& query = queries[i];
        if (query.found != depth || query.columns <= depth) continue;
        const std::uint32_t slot = find_entry(slots, shape_, depth + 1, query.slot, query.column[depth]);
        if (slot == none) continue;
        query.slot = slot;
        query.found = depth + 1;
        query.probability = usable_probability(static_cast<double>(slots[slot].probability));
        query.weight[depth] = usable_weight(static_cast<double>(slots[slot].backoff));
      }
    }
    for (std::size_t i = 0; i < filled; ++i) {
      Query& query = queries[i];
      if (query.first) before = after_start;
      double p = query.probability;
      if (query.found == 0) p = uniform_base(query.column[0]) * shape_.empty_backoff;
      for (std::uint32_t width = std::max(query.found, 1u); width < query.columns; ++width) p *= before[width - 1];
      *out++ = std::log(p);
      for (std::uint32_t width = query.found; width < order; ++width) query.weight[width] = 1.0;
      before = query.weight;
    }
    filled = 0;
  };
  for (std::size_t s = 0; s + 1 < starts.size(); ++s) {
    const std::uint64_t from = starts[s], to = starts[s + 1];
    const std::uint64_t last = end == none ? to : to + 1;
    for (std::uint64_t at = from; at < last; ++at) {
      Query& query = queries[filled];
      query.column[0] = at == to ? end : ids[at];
      std::uint32_t columns = 1;
      for (std::uint64_t back = at; columns < order && back > from; --back) query.column[columns++] = ids[back - 1];
      if (columns < order) query.column[columns++] = start;
      query.columns = columns;
      query.found = 0;
      query.slot = entry_root;
      query.first = at == from;
      if (++filled == batch) flush();
    }
  }
  flush();
}

void BackoffTable::score_sequences(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                                   std::uint32_t start, std::uint32_t end, double* out) const {
  if (shape_.double_precision)
    score_in<double>(ids, starts, start, end, out);
  else
    score_in<float>(ids, starts, start, end, out);
}

}  // namespace treelm
