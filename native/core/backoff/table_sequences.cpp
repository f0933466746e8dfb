// Sequence chains: many sentences at once, each in its own state of the automaton.

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "backoff/table.h"

namespace treelm {

namespace {

// Sentences that are read side by side, so that many memory accesses are under way at once.
constexpr std::size_t lanes = 32;

}  // namespace

// Scores sentences in lanes. Between two rounds every lane waits for one look-up. The first half of a round reads where
// the rows lie that may answer it; the second half reads these, and goes on until the lane needs another look-up. What
// a lane reads has been asked for half a round before, so that the other lanes fill the time that it takes to come.
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
    while (active > 0) {
      for (std::size_t i = 0; i < active; ++i) open_bucket(all[i]);
      for (std::size_t i = 0; i < active; ++i)
        if (!look_up(all[i])) all[i--] = all[--active];
    }
    const std::size_t sentences = starts_.size() - 1;
    const std::uint64_t events = starts_.back() - starts_.front() + (end_ == none ? 0 : sentences);
    for (std::uint64_t i = 0; i < events; ++i) out_[i] = std::log(out_[i]);
  }

 private:
  // A sentence that is read, and the look-up that it waits for: `current` after `context`, at least one word.
  struct Lane {
    const std::uint32_t* word = nullptr;  // the next one
    const std::uint32_t* stop = nullptr;  // behind the last one of the sentence
    double* out = nullptr;
    double weight = 1, fall = 1;
    std::uint32_t context = 0, depth = 0, current = 0;
    std::uint32_t link = 0;  // what `context` falls back to, if that is known
    bool ends = false;       // the end of the sentence is still to be scored
    bool known = false;      // `link` and `fall` are those of `context`
    bool possible = false;   // a row may be what it waits for
    bool failed = false;     // the look-up has failed, and the lane waits for the row of `context`
    std::uint64_t hash = 0;
    Region::Place place{};
    std::uint64_t from = 0, to = 0;  // the rows of the bucket
  };

  // Reads where the rows of the bucket lie.
  void open_bucket(Lane& lane) {
    if (lane.failed) return;
    const Region& region = regions_[lane.depth];
    lane.from = lane.to = 0;
    if (lane.possible) std::tie(lane.from, lane.to) = table_.bucket_rows(region, lane.place.bucket);
    table_.prefetch_rows(region, lane.place, lane.from, lane.to);
  }

  // Looks for the word among the rows of its bucket, and goes on to the next look-up; false if there is none.
  bool look_up(Lane& lane) {
    if (!lane.failed) {
      const Region& region = regions_[lane.depth];
      const std::uint64_t row =
          lane.from == lane.to ? no_position : table_.find_between(region, lane.hash, lane.place, lane.from, lane.to);
      if (row != no_position) {
        *lane.out++ = lane.weight * usable_probability(table_.probability_at<Bits>(region, row));
        follow(lane, region, row);
        return next_word(lane);
      }
      if (!lane.known && lane.depth > 1) {
        lane.failed = true;
        prefetch(row_of_context(lane));
        return true;
      }
    }
    lane.failed = false;
    fall_back(lane);
    if (lane.depth != 0) {
      seek(lane);
      return true;
    }
    read_unigram(lane);
    return next_word(lane);
  }

  // Goes on to the context that an entry leads to.
  void follow(Lane& lane, const Region& region, std::uint64_t row) {
    const std::uint8_t* at = table_.slot(region, row);
    lane.link = static_cast<std::uint32_t>(region.link_of(region.head(at)));
    lane.known = false;
    if (region.has_weight) {
      lane.fall = table_.weight_at<Bits>(region, row);
      lane.known = !std::signbit(lane.fall);
    }
    if (lane.known) {
      lane.context = static_cast<std::uint32_t>(region.first_own + row);
      ++lane.depth;
    } else {
      lane.context = lane.link < region.first_own ? lane.link : empty_context;
      lane.depth = depth_of(lane.context);
    }
  }

  // The word is not known after the context of the lane: goes on to what that falls back to.
  void fall_back(Lane& lane) {
    if (!lane.known) {
      const Region& region = regions_[lane.depth - 1];
      lane.fall = table_.weight_at<Bits>(region, lane.context - depth_start_[lane.depth]);
      lane.link = static_cast<std::uint32_t>(region.link_of(region.head(row_of_context(lane))));
    }
    lane.weight *= usable_weight(lane.fall);
    lane.context = lane.link < depth_start_[lane.depth] ? lane.link : empty_context;
    lane.depth = depth_of(lane.context);
    lane.known = false;
  }

  // Scores the word after no context.
  void read_unigram(Lane& lane) {
    const Region& region = regions_[0];
    const std::uint64_t row = lane.current;
    const double stored = row < region.rows ? table_.probability_at<Bits>(region, row) : absent;
    if (stored != absent) {
      *lane.out++ = lane.weight * usable_probability(stored);
      follow(lane, region, row);
    } else {
      *lane.out++ = lane.weight * usable_weight(table_.shape_.empty_weight) * table_.uniform_base(lane.current);
      lane.context = empty_context;
      lane.known = false;
    }
  }

  // Goes on to the next word that must be looked up.
  bool next_word(Lane& lane) {
    for (;;) {
      if (lane.word < lane.stop) {
        lane.current = *lane.word++;
      } else if (lane.ends) {
        lane.current = end_;
        lane.ends = false;
      } else {
        return next_sentence(lane);
      }
      lane.weight = 1;
      if (lane.depth != 0) {
        seek(lane);
        return true;
      }
      read_unigram(lane);
    }
  }

  // Gives the lane the next sentence that has something to look up.
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
    const std::uint64_t context = lane.context - depth_start_[lane.depth];
    if (lane.depth == 1) {  // what comes next if this fails: small regions, which are seldom far away
      if (!lane.known) prefetch(row_of_context(lane));
      if (lane.current < regions_[0].rows) prefetch(table_.slot(regions_[0], lane.current));
    }
    lane.possible = region.fits(context, lane.current);
    lane.hash = region.mixer.mix(region.key(context, lane.current));
    lane.place = region.place(lane.hash);
    prefetch(table_.arrays_.index + region.index + (lane.possible ? lane.place.bucket : 0));
  }

  const std::uint8_t* row_of_context(const Lane& lane) const {
    return table_.slot(regions_[lane.depth - 1], lane.context - depth_start_[lane.depth]);
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
  if (shape_.compact) return score_compact(ids, starts, start, end, out);
  with_value_bits(shape_.value_bits,
                  [&]<unsigned Bits>() { SequenceScorer<Bits>(*this, ids, starts, start, end, out).run(); });
}

void BackoffTable::read_words(std::uint32_t context, std::span<const std::uint32_t> words, double* out) const {
  if (shape_.compact) return read_compact(context, words, out);
  constexpr std::size_t piece = most_fetched - max_columns;
  const std::size_t before = shape_.widths.front();
  FoundRows found;
  with_value_bits(shape_.value_bits, [&]<unsigned Bits>() {
    std::size_t first = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      // In pieces, each with the words before it that may be its context.
      if (i % piece == 0) {
        first = i - std::min(i, before);
        look_ahead(words.subspan(first, std::min(words.size(), i + piece) - first), found);
      }
      const auto& known = found[i - first];
      const auto find_known = [&](const Region& region, std::uint32_t depth, std::uint64_t row) {
        if (depth - 1 < most_depths && known[depth - 1].context == row) return known[depth - 1].row;
        return find<Bits>(region, row, words[i]);
      };
      context = read_with<Bits>(find_known, context, words[i], out + i);
    }
  });
  for (std::size_t i = 0; i < words.size(); ++i) out[i] = std::log(out[i]);
}

void BackoffTable::fetch_after(std::uint32_t context, std::uint32_t word) const {
  const std::uint32_t depth = depth_of(context);
  const Region& region = layout_.entries[shape_.widths.front() - depth];
  const std::uint64_t before = context - layout_.starts[depth];
  if (shape_.compact || region.direct() || !region.fits(before, word)) return;
  const Region::Place place = region.place(region.mixer.mix(region.key(before, word)));
  const auto [from, to] = bucket_rows(region, place.bucket);
  prefetch_rows(region, place, from, to);
}

void BackoffTable::fetch_word(std::uint32_t before, std::uint32_t word) const {
  const Region& unigrams = layout_.entries.back();
  if (shape_.compact) return;  // its contexts are looked up first
  if (word < unigrams.rows) prefetch(slot(unigrams, word));
  if (shape_.levels() < 2) return;
  const Region& region = layout_.entries[shape_.levels() - 2];
  if (!region.fits(before, word)) return;
  const Region::Place place = region.place(region.mixer.mix(region.key(before, word)));
  const auto [from, to] = bucket_rows(region, place.bucket);
  prefetch_rows(region, place, from, to);
}

BackoffTable::Sought BackoffTable::seek(std::uint32_t context, std::uint32_t before, std::uint32_t word) const {
  Sought sought;
  if (shape_.compact) return sought;  // its contexts are looked up first
  const Region& unigrams = layout_.entries.back();
  if (word < unigrams.rows) prefetch(slot(unigrams, word));
  const auto look = [&](std::uint32_t depth, std::uint64_t row) {
    const Region& region = layout_.entries[shape_.widths.front() - depth];
    if (!region.fits(row, word)) return;
    const std::uint64_t hash = region.mixer.mix(region.key(row, word));
    const Region::Place place = region.place(hash);
    prefetch(arrays_.index + region.index + place.bucket);
    sought.looks_[sought.count_++] = {&region, row, hash, place};
  };
  std::uint32_t depth = depth_of(context);
  while (depth > 1 && sought.count_ + 1 < sought.looks_.size()) {
    look(depth, context - layout_.starts[depth]);
    context = shorter(context, depth);
    depth = depth_of(context);
  }
  if (depth != 0) look(1, depth == 1 ? context - layout_.starts[1] : before);
  return sought;
}

void BackoffTable::fetch(const Sought& sought) const {
  for (std::size_t i = 0; i < sought.count_; ++i) {
    const Sought::Look& look = sought.looks_[i];
    const auto [from, to] = bucket_rows(*look.region, look.place.bucket);
    prefetch_rows(*look.region, look.place, from, to);
  }
}

double BackoffTable::read_sought(const Sought& sought, std::uint32_t& context, std::uint32_t word) const {
  if (shape_.compact) return read_word(context, word);
  double p = 0;
  context = with_value_bits(shape_.value_bits, [&]<unsigned Bits>() {
    std::size_t i = 0;  // the looks go from longer contexts to shorter ones, as reading does
    const auto find_sought = [&](const Region& region, std::uint32_t, std::uint64_t row) {
      while (i < sought.count_ && sought.looks_[i].region < &region) ++i;
      if (i == sought.count_ || sought.looks_[i].region != &region || sought.looks_[i].row != row)
        return find<Bits>(region, row, word);
      const Sought::Look& look = sought.looks_[i];
      const auto [from, to] = bucket_rows(region, look.place.bucket);
      return from == to ? no_position : find_between(region, look.hash, look.place, from, to);
    };
    return read_with<Bits>(find_sought, context, word, &p);
  });
  return std::log(p);
}

void BackoffTable::fetch_back(std::uint32_t context) const {
  if (shape_.compact) return;
  const std::uint32_t depth = depth_of(context);
  if (depth < 2) return;
  const std::uint32_t next = shorter(context, depth);
  const std::uint32_t next_depth = depth_of(next);
  if (next_depth != 0) prefetch(slot(contexts_of(next_depth), next - layout_.starts[next_depth]));
}

void BackoffTable::look_ahead(std::span<const std::uint32_t> words, FoundRows& found) const {
  struct Sought {  // all of it is written before it is read
    std::uint64_t hash;
    Region::Place place;
    std::uint64_t from, to;
    std::uint64_t row;  // of the words up to this one, among those with as many words before
  };
  std::array<Sought, most_fetched> sought;
  const std::size_t count = std::min(words.size(), most_fetched);
  const Region& unigrams = layout_.entries.back();
  for (std::size_t i = 0; i < count; ++i) {
    found[i].fill(Found{});
    sought[i].row = words[i] < unigrams.rows ? words[i] : no_position;
    if (sought[i].row != no_position) prefetch(slot(unigrams, words[i]));
  }
  for (std::size_t depth = 1; depth < shape_.levels() && depth < count; ++depth) {
    const Region& region = layout_.entries[shape_.levels() - 1 - depth];
    const bool kept = depth <= most_depths;
    // From the last word on: what is sought for one needs what was found for the word before.
    for (std::size_t i = count; i-- > depth;) {
      const std::uint64_t context = sought[i - 1].row;
      sought[i].row = no_position;
      if (context == no_position || !region.fits(context, words[i])) continue;
      sought[i].row = 0;
      sought[i].hash = region.mixer.mix(region.key(context, words[i]));
      sought[i].place = region.place(sought[i].hash);
      prefetch(arrays_.index + region.index + sought[i].place.bucket);
      if (kept) found[i][depth - 1].context = context;
    }
    bool any = false;
    for (std::size_t i = depth; i < count; ++i) {
      if (sought[i].row == no_position) continue;
      std::tie(sought[i].from, sought[i].to) = bucket_rows(region, sought[i].place.bucket);
      prefetch_rows(region, sought[i].place, sought[i].from, sought[i].to);
    }
    for (std::size_t i = depth; i < count; ++i) {
      Sought& each = sought[i];
      if (each.row == no_position) continue;
      each.row = each.from == each.to ? no_position : find_between(region, each.hash, each.place, each.from, each.to);
      if (kept) found[i][depth - 1].row = each.row;
      any = any || each.row != no_position;
    }
    if (!any) return;
  }
}

}  // namespace treelm
