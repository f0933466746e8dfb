// Sequence chains: many sentences at once, each in its own state of the automaton.

#include <algorithm>
#include <array>
#include <cmath>

#include "backoff/table.h"

namespace treelm {

namespace {

// Sentences that are read side by side, so that many memory accesses are under way at once.
constexpr std::size_t lanes = 40;

// What a lane waits for.
enum class Awaited : std::uint8_t {
  bucket,  // the bounds of the bucket of its word
  rows,    // the rows of the bucket
  weight,  // the weight of its context, and the context to fall back to
};

struct Lane {
  const std::uint32_t* word = nullptr;  // the next one
  const std::uint32_t* stop = nullptr;  // behind the last one of the sentence
  double* out = nullptr;
  std::uint32_t context = 0, depth = 0, current = 0;
  std::uint32_t link = 0;  // what `context` falls back to, if that is known
  Awaited awaited = Awaited::rows;
  bool ends = false;   // the end of the sentence is still to be scored
  bool known = false;  // `link` and `fall` are those of `context`
  double weight = 1, fall = 1;
  std::uint64_t check = 0, bucket = 0;
  std::uint64_t row = 0;                              // position of the first one to look at
  const std::uint8_t *from = nullptr, *to = nullptr;  // where these rows lie
};

inline void prefetch([[maybe_unused]] const void* place) {
#if defined(__GNUC__)
  __builtin_prefetch(place);
#endif
}

}  // namespace

template <unsigned Bits>
void BackoffTable::score_in(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                            std::uint32_t start, std::uint32_t end, double* out) const {
  const std::uint32_t deepest = shape_.widths.front();
  std::array<std::uint64_t, max_columns + 2> depth_start;
  std::copy(layout_.starts.begin(), layout_.starts.end(), depth_start.begin());
  std::array<Region, max_columns> regions;  // by the number of words before
  for (std::uint32_t depth = 0; depth <= deepest; ++depth) regions[depth] = layout_.entries[deepest - depth];
  const std::uint8_t* const slots = arrays_.slots;
  double ignored = 0;
  const std::uint32_t first =
      deepest == 0 || start >= shape_.outcomes ? empty_context : read<Bits>(empty_context, start, &ignored);

  std::size_t sentence = 0;
  const std::size_t sentences = starts.size() - 1;
  std::size_t active = 0;
  std::array<Lane, lanes> all;

  const auto depth_of = [&](std::uint32_t context) {
    std::uint32_t depth = deepest;
    while (context < depth_start[depth]) --depth;
    return depth;
  };
  const auto point_at = [&](Lane& lane, const Region& region, std::uint64_t from, std::uint64_t to) {
    lane.awaited = Awaited::rows;
    lane.row = from;
    lane.from = slots + region.slot(from);
    lane.to = slots + region.slot(to);
    if (from == to) return;
    prefetch(lane.from);
    prefetch(lane.to - 1);
  };
  // Makes the lane wait for the entry of its current word after its context.
  const auto seek = [&](Lane& lane) {
    const Region& region = regions[lane.depth];
    if (lane.depth == 0) {
      const std::uint64_t at = lane.current;
      point_at(lane, region, at < region.rows ? at : 0, at < region.rows ? at + 1 : 0);
      return;
    }
    const std::uint64_t context = lane.context - depth_start[lane.depth];
    if (!region.fits(context, lane.current)) {
      point_at(lane, region, 0, 0);
      return;
    }
    const std::uint64_t hash = region.mixer.mix(region.key(context, lane.current));
    lane.check = region.check(hash);
    lane.bucket = region.bucket(hash);
    lane.awaited = Awaited::bucket;
    prefetch(arrays_.index + region.index + lane.bucket);
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
      lane.known = false;
      ++sentence;
      if (next_word(lane)) return true;
    }
    return false;
  };
  // The word is not known after the context of the lane: try what it falls back to.
  const auto fall_back = [&](Lane& lane) {
    lane.weight *= usable_weight(lane.fall);
    lane.context = lane.link < depth_start[lane.depth] ? lane.link : empty_context;
    lane.depth = depth_of(lane.context);
    lane.known = false;
    seek(lane);
  };
  while (active < lanes && next_sentence(all[active])) ++active;

  while (active > 0) {
    for (std::size_t i = 0; i < active; ++i) {
      Lane& lane = all[i];
      if (lane.awaited == Awaited::bucket) {
        const Region& region = regions[lane.depth];
        const auto [from, to] = bucket_rows(region, lane.bucket);
        point_at(lane, region, from, to);
        continue;
      }
      if (lane.awaited == Awaited::weight) {
        const Region& region = regions[lane.depth - 1];
        const std::uint64_t at = lane.context - depth_start[lane.depth];
        lane.fall = weight_at<Bits>(region, at);
        lane.link = static_cast<std::uint32_t>(region.link_of(region.head(slot(region, at))));
        fall_back(lane);
        continue;
      }
      const Region& region = regions[lane.depth];
      const std::uint8_t* at = lane.from;
      if (lane.depth != 0)
        for (; at < lane.to && region.check_of(region.head(at)) != lane.check; at += region.slot_bytes) ++lane.row;
      double stored = absent;
      if (at < lane.to) stored = load_value<Bits>(at + region.head_bytes, arrays_.codebooks + region.codebook);
      double p;
      if (at < lane.to && (lane.depth > 0 || stored != absent)) {
        p = lane.weight * usable_probability(stored);
        lane.link = static_cast<std::uint32_t>(region.link_of(region.head(at)));
        lane.known = false;
        if (region.has_weight) {
          const std::uint64_t skipped = Bits < 32 ? std::uint64_t{1} << Bits : 0;
          lane.fall = load_value<Bits>(at + region.weight_at(), arrays_.codebooks + region.codebook + skipped);
          lane.known = !std::signbit(lane.fall);
        }
        if (lane.known) {
          lane.context = static_cast<std::uint32_t>(region.first_own + lane.row);
          ++lane.depth;
        } else {
          lane.context = lane.link < region.first_own ? lane.link : empty_context;
          lane.depth = depth_of(lane.context);
        }
      } else if (lane.depth == 0) {
        p = lane.weight * usable_weight(shape_.empty_weight) * uniform_base(lane.current);
        lane.context = empty_context;
        lane.known = false;
      } else if (lane.known) {
        fall_back(lane);
        continue;
      } else {
        lane.awaited = Awaited::weight;
        prefetch(slots + regions[lane.depth - 1].slot(lane.context - depth_start[lane.depth]));
        continue;
      }
      *lane.out++ = std::log(p);
      if (!next_word(lane) && !next_sentence(lane)) all[i--] = all[--active];
    }
  }
}

void BackoffTable::score_sequences(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                                   std::uint32_t start, std::uint32_t end, double* out) const {
  with_value_bits(shape_.value_bits, [&]<unsigned Bits>() { score_in<Bits>(ids, starts, start, end, out); });
}

}  // namespace treelm
