#include "counter.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "radix_sort.h"

namespace treelm {

namespace {

template <std::size_t W>
struct PlainRecord {
  static constexpr bool has_ties = false;
  Key<W> key;
  friend bool operator<(const PlainRecord& a, const PlainRecord& b) { return a.key < b.key; }
};

template <std::size_t W>
struct WeightedRecord {
  static constexpr bool has_ties = false;
  Key<W> key;
  std::uint64_t weight;
  friend bool operator<(const WeightedRecord& a, const WeightedRecord& b) { return a.key < b.key; }
};

std::uint32_t checked_count(std::uint64_t count) {
  if (count > std::numeric_limits<std::uint32_t>::max())
    throw Error(ErrorCode::overflow, "an event was counted " + std::to_string(count) + " times");
  return static_cast<std::uint32_t>(count);
}

// Appends `key` with `count`, or adds to the last one if it is the same.
template <std::size_t W>
class Folder {
 public:
  explicit Folder(SortedEvents& out) : out_(out) {}
  void add(const Key<W>& key, std::uint64_t count) {
    if (any_ && key == last_) {
      count_ += checked_count(count);  // both fit 32 bits, so the sum cannot wrap
      checked_count(count_);
      return;
    }
    flush();
    any_ = true;
    last_ = key;
    count_ = checked_count(count);
  }
  void flush() {
    if (!any_) return;
    out_.keys.insert(out_.keys.end(), last_.w.begin(), last_.w.end());
    out_.counts.push_back(static_cast<std::uint32_t>(count_));
    any_ = false;
  }

 private:
  SortedEvents& out_;
  Key<W> last_{};
  std::uint64_t count_ = 0;
  bool any_ = false;
};

template <std::size_t W>
SortedEvents fold(std::span<const PlainRecord<W>> records, const KeyLayout& layout) {
  SortedEvents out;
  out.layout = layout;
  std::size_t distinct = 0;
  for (std::size_t i = 0; i < records.size(); ++i) distinct += i == 0 || !(records[i].key == records[i - 1].key);
  out.keys.reserve(distinct * W);
  out.counts.reserve(distinct);
  Folder<W> folder(out);
  for (const auto& record : records) folder.add(record.key, 1);
  folder.flush();
  out.total = records.size();
  return out;
}

// The same rows under a layout that has at least as many bits for every column: order is kept.
SortedEvents relaid(const SortedEvents& events, const KeyLayout& layout) {
  SortedEvents out;
  out.layout = layout;
  out.total = events.total;
  out.counts = events.counts;
  out.keys.resize(events.rows() * out.stride());
  std::vector<std::uint32_t> row(layout.columns());
  with_key_words(events.layout.words(), [&]<std::size_t V>() {
    with_key_words(layout.words(), [&]<std::size_t W>() {
      auto* to = reinterpret_cast<Key<W>*>(out.keys.data());
      const auto* from = events.keys_as<V>();
      for (std::size_t i = 0; i < events.rows(); ++i) {
        events.layout.unpack(from[i], row.data());
        to[i] = layout.pack<W>(row.data());
      }
    });
  });
  return out;
}

}  // namespace

EventCounter::EventCounter(std::size_t columns, std::size_t threads, std::size_t run_rows)
    : layout_(std::vector<unsigned>(columns, 0)), run_rows_(std::max<std::size_t>(run_rows, 1024)), pool_(threads) {
  if (columns == 0) throw Error(ErrorCode::argument, "an event has at least one column");
}

void EventCounter::widen(const std::vector<std::uint32_t>& largest) {
  std::vector<unsigned> bits(layout_.columns());
  bool wider = false;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = layout_.bits(i);
    if (!layout_.fits(i, largest[i])) {
      bits[i] = static_cast<unsigned>(std::bit_width(largest[i]));
      wider = true;
    }
  }
  if (!wider) return;
  KeyLayout layout(std::move(bits));
  SortedEvents unsorted;  // the pending rows move like a run: relaying asks for no order
  unsorted.layout = layout_;
  unsorted.keys = std::move(pending_);
  unsorted.counts.assign(unsorted.keys.size() / unsorted.stride(), 1);
  pending_ = relaid(unsorted, layout).keys;
  for (SortedEvents& run : runs_) run = relaid(run, layout);
  layout_ = std::move(layout);
}

void EventCounter::add(const std::uint32_t* rows, std::size_t count, const std::uint64_t* weights) {
  if (count == 0) return;
  const std::size_t columns = layout_.columns();
  std::vector<std::uint32_t> largest(columns, 0);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t c = 0; c < columns; ++c) largest[c] = std::max(largest[c], rows[i * columns + c]);
  widen(largest);
  with_key_words(layout_.words(), [&]<std::size_t W>() {
    if (weights != nullptr) {
      LargeVector<std::uint64_t> keys(count * W);
      for (std::size_t i = 0; i < count; ++i)
        reinterpret_cast<Key<W>*>(keys.data())[i] = layout_.pack<W>(rows + i * columns);
      sort_run<W>(keys, weights);
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Key<W> key = layout_.pack<W>(rows + i * columns);
      pending_.insert(pending_.end(), key.w.begin(), key.w.end());
      if (pending_.size() >= run_rows_ * W) close_run();
    }
    total_ += count;
  });
}

void EventCounter::add_sequences(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                                 std::uint32_t end, std::uint32_t pad) {
  if (starts.empty() || starts.back() > ids.size()) throw Error(ErrorCode::argument, "starts do not fit the word ids");
  if (!std::is_sorted(starts.begin(), starts.end())) throw Error(ErrorCode::argument, "starts must not fall");
  const std::size_t columns = layout_.columns();
  std::uint32_t largest = std::max(end, columns > 1 ? pad : end);
  for (const std::uint32_t id : ids.subspan(starts.front(), starts.back() - starts.front()))
    largest = std::max(largest, id);
  widen(std::vector<std::uint32_t>(columns, largest));
  with_key_words(layout_.words(), [&]<std::size_t W>() {
    std::vector<std::uint32_t> row(columns);
    for (std::size_t s = 0; s + 1 < starts.size(); ++s) {
      std::fill(row.begin(), row.end(), pad);
      for (std::uint64_t at = starts[s]; at <= starts[s + 1]; ++at) {
        if (at != starts[s]) std::copy_backward(row.begin(), row.end() - 1, row.end());
        row[0] = at == starts[s + 1] ? end : ids[at];
        const Key<W> key = layout_.pack<W>(row.data());
        pending_.insert(pending_.end(), key.w.begin(), key.w.end());
        ++total_;
      }
      if (pending_.size() >= run_rows_ * W) close_run();
    }
  });
}

void EventCounter::merge(const SortedEvents& other) {
  if (other.layout.columns() != layout_.columns())
    throw Error(ErrorCode::argument, "the counts to merge have another number of columns");
  if (other.rows() == 0) return;
  std::vector<std::uint32_t> largest(layout_.columns());
  for (std::size_t i = 0; i < largest.size(); ++i) {
    const unsigned bits = other.layout.bits(i);
    largest[i] = bits == 0 ? 0 : static_cast<std::uint32_t>((std::uint64_t{1} << bits) - 1);
  }
  widen(largest);
  runs_.push_back(relaid(other, layout_));
  total_ += other.total;
}

template <std::size_t W>
void EventCounter::sort_run(LargeVector<std::uint64_t>& keys, const std::uint64_t* weights) {
  auto* packed = reinterpret_cast<PlainRecord<W>*>(keys.data());
  const std::size_t count = keys.size() / W;
  if (weights == nullptr) {
    const std::span<PlainRecord<W>> records(packed, count);
    radix_sort(records, layout_.total(), pool_);
    runs_.push_back(fold<W>(records, layout_));
    return;
  }
  LargeVector<WeightedRecord<W>> records(count);
  for (std::size_t i = 0; i < count; ++i) records[i] = {packed[i].key, weights[i]};
  radix_sort(std::span(records), layout_.total(), pool_);
  SortedEvents run;
  run.layout = layout_;
  Folder<W> folder(run);
  for (const auto& record : records) {
    if (record.weight == 0) continue;
    folder.add(record.key, record.weight);
    run.total += record.weight;
  }
  folder.flush();
  total_ += run.total;
  if (run.rows() != 0) runs_.push_back(std::move(run));
}

void EventCounter::close_run() {
  if (pending_.empty()) return;
  with_key_words(layout_.words(), [&]<std::size_t W>() { sort_run<W>(pending_, nullptr); });
  pending_.clear();
}

SortedEvents EventCounter::finish() {
  close_run();
  LargeVector<std::uint64_t>().swap(pending_);
  total_ = 0;
  if (runs_.empty()) {
    SortedEvents none_counted;
    none_counted.layout = layout_;
    return none_counted;
  }
  return merge_sorted(std::exchange(runs_, {}));
}

SortedEvents merge_sorted(std::vector<SortedEvents> runs) {
  if (runs.size() == 1) return std::move(runs.front());
  SortedEvents out;
  out.layout = runs.front().layout;
  // Room for all rows: what is not used in the end is never touched.
  std::size_t most = 0;
  for (const SortedEvents& run : runs) {
    most += run.rows();
    out.total += run.total;
  }
  out.counts.reserve(most);
  out.keys.reserve(most * out.stride());
  with_key_words(out.layout.words(), [&]<std::size_t W>() {
    struct Head {
      Key<W> key;
      std::size_t run;
      bool operator>(const Head& other) const { return key > other.key; }
    };
    std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
    std::vector<std::size_t> at(runs.size(), 0);
    for (std::size_t r = 0; r < runs.size(); ++r)
      if (runs[r].rows() != 0) heads.push({runs[r].template keys_as<W>()[0], r});
    Folder<W> folder(out);
    while (!heads.empty()) {
      const Head head = heads.top();
      heads.pop();
      SortedEvents& run = runs[head.run];
      std::size_t& i = at[head.run];
      folder.add(head.key, run.counts[i]);
      if (++i < run.rows()) {
        heads.push({run.template keys_as<W>()[i], head.run});
      } else {
        LargeVector<std::uint64_t>().swap(run.keys);
        LargeVector<std::uint32_t>().swap(run.counts);
      }
    }
    folder.flush();
  });
  return out;
}

}  // namespace treelm
