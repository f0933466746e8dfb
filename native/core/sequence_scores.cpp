// Sequence chains: many sentences at once, each in its own state of the automaton.

#include <algorithm>
#include <array>
#include <cmath>

#include "backoff_table.h"

namespace treelm {

namespace {

// Sentences that are read side by side, so that many memory accesses are under way at once.
constexpr std::size_t lanes = 24;

struct Lane {
  const std::uint32_t* word = nullptr;  // the next one
  const std::uint32_t* stop = nullptr;  // behind the last one of the sentence
  double* out = nullptr;
  std::uint32_t context = 0, depth = 0, current = 0;
  bool ends = false;   // the end of the sentence is still to be scored
  bool falls = false;  // the weight of `context` is awaited, not an entry
  double weight = 1;
  std::uint64_t hash = 0, home = 0;
};

}  // namespace

template <class Value>
void BackoffTable::score_in(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                            std::uint32_t start, std::uint32_t end, double* out) const {
  const Slot<Value>* slots = slot<Value>();
  const ContextInfo<Value>* contexts = info<Value>();
  const std::uint32_t deepest = shape_.widths.front();
  const std::uint64_t context_count = shape_.contexts();
  std::array<std::uint64_t, max_columns + 2> depth_start;
  std::copy(shape_.context_starts.begin(), shape_.context_starts.end(), depth_start.begin());
  const Region direct = shape_.entry_regions.back();
  double ignored = 0;
  const std::uint32_t first =
      deepest == 0 || start >= shape_.outcomes ? empty_context : read<Value>(empty_context, start, &ignored);

  std::size_t sentence = 0;
  const std::size_t sentences = starts.size() - 1;
  std::size_t active = 0;
  std::array<Lane, lanes> all;

  const auto depth_of = [&](std::uint32_t context) {
    std::uint32_t depth = deepest;
    while (context < depth_start[depth]) --depth;
    return depth;
  };
  // Makes the lane wait for the entry of its current word after its context.
  const auto seek = [&](Lane& lane) {
    lane.falls = false;
    if (lane.depth == 0) {
      lane.home = direct.begin + lane.current;
    } else {
      lane.hash = mix64(slot_key(lane.context, lane.current));
      lane.home = shape_.entry_regions[deepest - lane.depth].home(lane.hash);
    }
#if defined(__GNUC__)
    if (lane.depth != 0 || lane.current < direct.length) __builtin_prefetch(slots + lane.home);
#endif
  };
  const auto next_word = [&](Lane& lane) {
    if (lane.word < lane.stop) {
      lane.current = *lane.word++;
    } else if (lane.ends) {
      lane.current = end;
      lane.ends = false;
    } else {
      return false;
    }
    lane.weight = 1;
    seek(lane);
    return true;
  };
  // Gives the lane the next sentence that has something to score.
  const auto next_sentence = [&](Lane& lane) {
    while (sentence < sentences) {
      const std::uint64_t from = starts[sentence], to = starts[sentence + 1];
      lane.word = ids.data() + from;
      lane.stop = ids.data() + to;
      lane.out = out + (from - starts[0]) + (end == none ? 0 : sentence);
      lane.ends = end != none;
      lane.context = first;
      lane.depth = depth_of(first);
      ++sentence;
      if (next_word(lane)) return true;
    }
    return false;
  };
  while (active < lanes && next_sentence(all[active])) ++active;

  while (active > 0) {
    for (std::size_t i = 0; i < active; ++i) {
      Lane& lane = all[i];
      if (lane.falls) {
        const ContextInfo<Value>& from = contexts[lane.context];
        lane.weight *= usable_weight(static_cast<double>(from.backoff));
        // Whatever the file says, the search goes down.
        lane.context = from.shorter < lane.context ? from.shorter : empty_context;
        lane.depth = std::min(lane.depth - 1, depth_of(lane.context));
        if (lane.depth == 0) lane.context = empty_context;
        seek(lane);
        continue;
      }
      std::uint64_t found = empty_key;
      if (lane.depth == 0) {
        if (lane.current < direct.length && slots[lane.home].key != empty_key) found = lane.home;
      } else {
        const Region& region = shape_.entry_regions[deepest - lane.depth];
        const std::uint64_t wanted = slot_key(lane.context, lane.current);
        const std::uint64_t stop = std::min(lane.home + longest_probe, region.begin + region.length);
        for (std::uint64_t at = lane.home; at < stop; ++at) {
          const std::uint64_t key = slots[at].key;
          if (key == wanted) {
            found = at;
            break;
          }
          if (key == empty_key || mix64(key) > lane.hash) break;
        }
      }
      double p;
      if (found != empty_key) {
        p = lane.weight * usable_probability(static_cast<double>(slots[found].probability));
        const std::uint32_t next = slots[found].next;
        lane.context = next < context_count ? next : empty_context;
        lane.depth = depth_of(lane.context);
      } else if (lane.depth == 0) {
        p = lane.weight * usable_weight(static_cast<double>(contexts[empty_context].backoff)) *
            uniform_base(lane.current);
        lane.context = empty_context;
      } else {
        lane.falls = true;
#if defined(__GNUC__)
        __builtin_prefetch(contexts + lane.context);
#endif
        continue;
      }
      *lane.out++ = std::log(p);
      if (!next_word(lane) && !next_sentence(lane)) all[i--] = all[--active];
    }
  }
}

void BackoffTable::score_sequences(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                                   std::uint32_t start, std::uint32_t end, double* out) const {
  if (shape_.double_precision)
    score_in<double>(ids, starts, start, end, out);
  else
    score_in<float>(ids, starts, start, end, out);
}

}  // namespace treelm
