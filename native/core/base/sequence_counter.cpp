#include "base/sequence_counter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/in_order.h"
#include "base/interrupt.h"
#include "base/prefetch.h"
#include "base/radix_sort.h"

namespace treelm {

namespace {

constexpr std::uint64_t events_a_group = std::uint64_t{1} << 20;
constexpr std::uint64_t words_a_poll = std::uint64_t{1} << 14;

// Groups that are sorted before anybody is told how far it is, for each thread.
constexpr std::size_t groups_a_thread = 8;

KeyLayout layout_of(std::size_t columns, std::uint32_t largest) {
  return KeyLayout(std::vector<unsigned>(columns, static_cast<unsigned>(std::bit_width(largest))));
}

template <std::size_t W>
class Counter {
 public:
  Counter(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts, const KeyLayout& layout,
          std::uint32_t end, std::uint32_t pad, std::uint32_t largest, std::size_t threads)
      : ids_(ids),
        starts_(starts),
        layout_(layout),
        end_(end),
        pad_(pad),
        words_(std::size_t{largest} + 1),
        pool_(threads) {}

  SortedEvents run(const ProgressCallback& progress) {
    make_groups();
    sort_positions();
    const std::uint64_t all = events();
    ByteArena keys, counts;
    keys.reserve(all * sizeof(Key<W>));
    counts.reserve(all * sizeof(std::uint32_t));
    std::vector<Sorted> sorted(pool_.size());
    InOrder order(groups_.size());
    const std::size_t at_once = groups_a_thread * pool_.size();
    std::uint64_t done = 0;
    for (std::size_t first = 0; first < groups_.size(); first += at_once) {
      const std::size_t last = std::min(first + at_once, groups_.size());
      pool_.map(last - first, [&](std::size_t i, std::size_t worker) {
        const std::size_t group = first + i;
        const EndOfPiece end(order, group, 1);
        Sorted& own = sorted[worker];
        sort_group(groups_[group], own);
        // Each finds its place behind those of the group before; all of them copy at once.
        order.wait_before(group, 1);
        own.key_place = keys.extend(own.counts.size() * sizeof(Key<W>));
        own.count_place = counts.extend(own.counts.size() * sizeof(std::uint32_t));
        order.set_done(group, 1);
        copy(own);
      });
      for (std::size_t group = first; group < last; ++group) done += groups_[group].events;
      progress(done, all);
    }
    return {layout_, all, keys.finish(), counts.finish()};
  }

 private:
  struct Record {
    static constexpr bool has_ties = false;
    Key<W> key;
    friend bool operator<(const Record& a, const Record& b) { return a.key < b.key; }
  };
  // Words that are counted together, [first, last), and where their places in the text stand.
  struct Group {
    std::uint32_t first, last;
    std::uint64_t events, begin;
  };
  struct Sorted {
    LargeVector<Record> records;
    LargeVector<std::uint32_t> counts;
    std::uint8_t *key_place = nullptr, *count_place = nullptr;
  };

  std::uint64_t events() const { return starts_.back() - starts_.front() + starts_.size() - 1; }

  void make_groups() {
    std::vector<std::uint64_t> number(words_, 0);
    for (std::uint64_t at = starts_.front(); at < starts_.back(); ++at) ++number[ids_[at]];
    std::uint64_t begin = 0;
    Group group{0, 0, 0, 0};
    group_of_.resize(words_);
    for (std::uint32_t w = 0; w < words_; ++w) {
      const std::uint64_t own = number[w] + (w == end_ ? starts_.size() - 1 : 0);
      if (group.events != 0 && group.events + own > events_a_group) {
        groups_.push_back(group);
        group = {w, w, 0, begin};
      }
      group.last = w + 1;
      group.events += own;
      begin += number[w];
      group_of_[w] = static_cast<std::uint32_t>(groups_.size());
    }
    groups_.push_back(group);
  }

  // The places of the words of each group, in ascending order.
  void sort_positions() {
    positions_.resize(starts_.back() - starts_.front());
    std::vector<std::uint64_t> next;
    for (const Group& group : groups_) next.push_back(group.begin);
    for (std::uint64_t at = starts_.front(); at < starts_.back(); ++at) {
      if (at % words_a_poll == 0) poll_interrupt();
      positions_[next[group_of_[ids_[at]]]++] = static_cast<std::uint32_t>(at);
    }
    std::vector<std::uint32_t>().swap(group_of_);
  }

  // The event at a place, whose sequence begins at `from`.
  Key<W> key(std::uint32_t outcome, std::uint64_t at, std::uint64_t from, std::uint32_t* row) const {
    const std::size_t columns = layout_.columns();
    const std::size_t before = std::min<std::uint64_t>(columns - 1, at - from);
#if defined(__SIZEOF_INT128__)
    if constexpr (W <= 2) {  // all columns have the same number of bits
      __extension__ using Wide = unsigned __int128;
      const unsigned bits = layout_.bits(0);
      Wide packed = outcome;
      for (std::size_t k = 1; k <= before; ++k) packed = packed << bits | ids_[at - k];
      for (std::size_t k = before + 1; k < columns; ++k) packed = packed << bits | pad_;
      if (const unsigned unused = 64 * W - layout_.total(); unused < 64 * W) packed <<= unused;
      Key<W> result;
      result.w[W - 1] = static_cast<std::uint64_t>(packed);
      if constexpr (W == 2) result.w[0] = static_cast<std::uint64_t>(packed >> 64);
      return result;
    }
#endif
    row[0] = outcome;
    for (std::size_t k = 1; k <= before; ++k) row[k] = ids_[at - k];
    for (std::size_t k = before + 1; k < columns; ++k) row[k] = pad_;
    return layout_.pack<W>(row);
  }

  void sort_group(const Group& group, Sorted& out) {
    out.records.resize(group.events);
    Record* next = out.records.data();
    std::vector<std::uint32_t> row(layout_.columns());
    const bool ends = end_ >= group.first && end_ < group.last;
    const std::uint64_t last = group.begin + group.events - (ends ? starts_.size() - 1 : 0);
    std::size_t sequence = 0;
    for (std::uint64_t i = group.begin; i < last; ++i) {
      if (i % words_a_poll == 0) poll_interrupt();
      constexpr std::uint64_t early = 16;
      if (i + early < last) prefetch(ids_.data() + positions_[i + early]);
      const std::uint64_t at = positions_[i];
      while (starts_[sequence + 1] <= at) ++sequence;
      *next++ = {key(ids_[at], at, starts_[sequence], row.data())};
    }
    if (ends)
      for (std::size_t s = 0; s + 1 < starts_.size(); ++s)
        *next++ = {key(end_, starts_[s + 1], starts_[s], row.data())};
    // The first bits are the same in all: they are those of few words.
    radix::sort_piece(radix::Piece<Record>{std::span(out.records), 0}, layout_.total());
    fold(out);
  }

  // Adds up equal events.
  static void fold(Sorted& out) {
    LargeVector<Record>& records = out.records;
    out.counts.clear();
    out.counts.reserve(records.size());
    for (std::size_t i = 0; i < records.size();) {
      std::size_t same = i + 1;
      while (same < records.size() && records[same].key == records[i].key) ++same;
      if (same - i > std::numeric_limits<std::uint32_t>::max())
        throw Error(ErrorCode::overflow, "an event was counted " + std::to_string(same - i) + " times");
      records[out.counts.size()] = records[i];
      out.counts.push_back(static_cast<std::uint32_t>(same - i));
      i = same;
    }
  }

  static void copy(const Sorted& from) {
    const std::size_t rows = from.counts.size();
    if (rows == 0) return;
    std::memcpy(from.key_place, from.records.data(), rows * sizeof(Key<W>));
    std::memcpy(from.count_place, from.counts.data(), rows * sizeof(std::uint32_t));
  }

  std::span<const std::uint32_t> ids_;
  std::span<const std::uint64_t> starts_;
  const KeyLayout& layout_;
  std::uint32_t end_, pad_;
  std::size_t words_;
  ThreadPool pool_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_;   // by word
  LargeVector<std::uint32_t> positions_;  // of words in the text, by group
};

}  // namespace

SortedEvents count_sequences(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                             std::size_t columns, std::uint32_t end, std::uint32_t pad, std::size_t threads,
                             const ProgressCallback& progress) {
  if (columns == 0) throw Error(ErrorCode::argument, "an event needs at least one column");
  if (starts.empty() || starts.back() > ids.size()) throw Error(ErrorCode::argument, "starts do not fit the word ids");
  if (!std::is_sorted(starts.begin(), starts.end())) throw Error(ErrorCode::argument, "starts must not decrease");
  if (ids.size() > std::numeric_limits<std::uint32_t>::max())
    throw Error(ErrorCode::too_large, "more than four billion words are counted in pieces only");
  std::uint32_t largest = std::max(end, columns > 1 ? pad : end);
  for (const std::uint32_t id : ids.subspan(starts.front(), starts.back() - starts.front()))
    largest = std::max(largest, id);
  const KeyLayout layout = layout_of(columns, largest);
  if (starts.size() == 1) return {layout, 0, ByteArena().finish(), ByteArena().finish()};
  return with_key_words(layout.words(), [&]<std::size_t W>() {
    return Counter<W>(ids, starts, layout, end, pad, largest, threads).run(progress);
  });
}

std::uint64_t memory_to_count(std::uint64_t words, std::uint64_t sequences, std::size_t columns, std::uint32_t largest,
                              std::size_t threads) {
  const std::uint64_t events = words + sequences;
  const std::uint64_t row = stored_words(layout_of(columns, largest).words()) * sizeof(std::uint64_t) + 4;
  // The most frequent word, or the ends, can be a group of many more events than others have: a tenth of all, about.
  const std::uint64_t group = std::max(events_a_group, std::max(events / 10, sequences)) + events_a_group;
  return words * 4 + events * row + std::max<std::size_t>(threads, 1) * group * row + (std::uint64_t{largest} + 1) * 16;
}

}  // namespace treelm
