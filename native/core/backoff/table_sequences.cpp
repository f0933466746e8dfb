// Sequence chains: many sentences at once, each in its own state of the automaton.

#include <algorithm>
#include <array>
#include <cmath>

#include "backoff/table.h"

namespace treelm {

namespace {

// Sentences that are read side by side, so that many memory accesses are under way at once.
constexpr std::size_t lanes = 40;

inline void prefetch([[maybe_unused]] const void* place) {
#if defined(__GNUC__)
  __builtin_prefetch(place);
#endif
}

}  // namespace

// Scores sentences in lanes. Where a lane must read memory that is seldom in a cache, it asks for it, notes what it
// awaits, and lets the other lanes go on.
template <unsigned Bits>
class BackoffTable::SequenceScorer {
 public:
  SequenceScorer(const BackoffTable& table, std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                 std::uint32_t start, std::uint32_t end, double* out)
      : table_(table),
        deepest_(table.shape_.widths.front()),
        slots_(table.arrays_.slots),
        ids_(ids),
        starts_(starts),
        end_(end),
        out_(out) {
    std::copy(table.layout_.starts.begin(), table.layout_.starts.end(), depth_start_.begin());
    for (std::uint32_t depth = 0; depth <= deepest_; ++depth) regions_[depth] = table.layout_.entries[deepest_ - depth];
    double ignored = 0;
    if (deepest_ != 0 && start < table.shape_.outcomes) first_ = table.read<Bits>(empty_context, start, &ignored);
  }

  void run() {
    std::array<Lane, lanes> all;
    std::size_t active = 0;
    while (active < lanes && next_sentence(all[active])) ++active;
    while (active > 0)
      for (std::size_t i = 0; i < active; ++i)
        if (!step(all[i])) all[i--] = all[--active];
  }

 private:
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

  // Takes what the lane has waited for; false if there is nothing left to score.
  bool step(Lane& lane) {
    switch (lane.awaited) {
      case Awaited::bucket: {
        const Region& region = regions_[lane.depth];
        const auto [from, to] = table_.bucket_rows(region, lane.bucket);
        point_at(lane, region, from, to);
        return true;
      }
      case Awaited::weight: {
        const Region& region = regions_[lane.depth - 1];
        const std::uint64_t at = lane.context - depth_start_[lane.depth];
        lane.fall = table_.weight_at<Bits>(region, at);
        lane.link = static_cast<std::uint32_t>(region.link_of(region.head(table_.slot(region, at))));
        fall_back(lane);
        return true;
      }
      default: return read_rows(lane);
    }
  }

  // Looks for the word among the rows of its bucket, and scores it or falls back.
  bool read_rows(Lane& lane) {
    const Region& region = regions_[lane.depth];
    const std::uint8_t* at = lane.from;
    if (lane.depth != 0)
      for (; at < lane.to && region.check_of(region.head(at)) != lane.check; at += region.slot_bytes) ++lane.row;
    double stored = absent;
    if (at < lane.to) stored = load_value<Bits>(at + region.head_bytes, table_.arrays_.codebooks + region.codebook);
    double p;
    if (at < lane.to && (lane.depth > 0 || stored != absent)) {
      p = lane.weight * usable_probability(stored);
      follow(lane, region, at);
    } else if (lane.depth == 0) {
      p = lane.weight * usable_weight(table_.shape_.empty_weight) * table_.uniform_base(lane.current);
      lane.context = empty_context;
      lane.known = false;
    } else if (lane.known) {
      fall_back(lane);
      return true;
    } else {
      lane.awaited = Awaited::weight;
      prefetch(slots_ + regions_[lane.depth - 1].slot(lane.context - depth_start_[lane.depth]));
      return true;
    }
    *lane.out++ = std::log(p);
    return next_word(lane) || next_sentence(lane);
  }

  // Goes on to the context that the entry at `at` leads to.
  void follow(Lane& lane, const Region& region, const std::uint8_t* at) {
    lane.link = static_cast<std::uint32_t>(region.link_of(region.head(at)));
    lane.known = false;
    if (region.has_weight) {
      const std::uint64_t skipped = Bits < 32 ? std::uint64_t{1} << Bits : 0;
      lane.fall = load_value<Bits>(at + region.weight_at(), table_.arrays_.codebooks + region.codebook + skipped);
      lane.known = !std::signbit(lane.fall);
    }
    if (lane.known) {
      lane.context = static_cast<std::uint32_t>(region.first_own + lane.row);
      ++lane.depth;
    } else {
      lane.context = lane.link < region.first_own ? lane.link : empty_context;
      lane.depth = depth_of(lane.context);
    }
  }

  // The word is not known after the context of the lane: tries what it falls back to.
  void fall_back(Lane& lane) {
    lane.weight *= usable_weight(lane.fall);
    lane.context = lane.link < depth_start_[lane.depth] ? lane.link : empty_context;
    lane.depth = depth_of(lane.context);
    lane.known = false;
    seek(lane);
  }

  bool next_word(Lane& lane) {
    if (lane.word < lane.stop) {
      lane.current = *lane.word++;
    } else if (lane.ends) {
      lane.current = end_;
      lane.ends = false;
    } else {
      return false;
    }
    lane.weight = 1;
    seek(lane);
    return true;
  }

  // Gives the lane the next sentence that has something to score.
  bool next_sentence(Lane& lane) {
    while (sentence_ + 1 < starts_.size()) {
      const std::uint64_t from = starts_[sentence_], to = starts_[sentence_ + 1];
      lane.word = ids_.data() + from;
      lane.stop = ids_.data() + to;
      lane.out = out_ + (from - starts_[0]) + (end_ == none ? 0 : sentence_);
      lane.ends = end_ != none;
      lane.context = first_;
      lane.depth = depth_of(first_);
      lane.known = false;
      ++sentence_;
      if (next_word(lane)) return true;
    }
    return false;
  }

  // Makes the lane wait for the entry of its current word after its context.
  void seek(Lane& lane) {
    const Region& region = regions_[lane.depth];
    if (lane.depth == 0) {
      const std::uint64_t at = lane.current;
      point_at(lane, region, at < region.rows ? at : 0, at < region.rows ? at + 1 : 0);
      return;
    }
    const std::uint64_t context = lane.context - depth_start_[lane.depth];
    if (!region.fits(context, lane.current)) {
      point_at(lane, region, 0, 0);
      return;
    }
    const std::uint64_t hash = region.mixer.mix(region.key(context, lane.current));
    lane.check = region.check(hash);
    lane.bucket = region.bucket(hash);
    lane.awaited = Awaited::bucket;
    prefetch(table_.arrays_.index + region.index + lane.bucket);
  }

  void point_at(Lane& lane, const Region& region, std::uint64_t from, std::uint64_t to) {
    lane.awaited = Awaited::rows;
    lane.row = from;
    lane.from = slots_ + region.slot(from);
    lane.to = slots_ + region.slot(to);
    if (from == to) return;
    prefetch(lane.from);
    prefetch(lane.to - 1);
  }

  std::uint32_t depth_of(std::uint32_t context) const {
    std::uint32_t depth = deepest_;
    while (context < depth_start_[depth]) --depth;
    return depth;
  }

  const BackoffTable& table_;
  const std::uint32_t deepest_;
  const std::uint8_t* const slots_;
  const std::span<const std::uint32_t> ids_;
  const std::span<const std::uint64_t> starts_;
  const std::uint32_t end_;
  double* const out_;
  std::uint32_t first_ = empty_context;  // the context at the start of a sentence
  std::size_t sentence_ = 0;             // the next one
  std::array<std::uint64_t, max_columns + 2> depth_start_;
  std::array<Region, max_columns> regions_;  // by the number of words before
};

void BackoffTable::score_sequences(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                                   std::uint32_t start, std::uint32_t end, double* out) const {
  with_value_bits(shape_.value_bits,
                  [&]<unsigned Bits>() { SequenceScorer<Bits>(*this, ids, starts, start, end, out).run(); });
}

}  // namespace treelm
