#include "base/counter.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "base/radix_sort.h"

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

template <std::size_t W>
SortedEvents fold(std::span<const PlainRecord<W>> records, const KeyLayout& layout) {
  std::size_t distinct = 0;
  for (std::size_t i = 0; i < records.size(); ++i) distinct += i == 0 || !(records[i].key == records[i - 1].key);
  SortedEventsWriter<W> writer(layout, distinct, {});
  for (const auto& record : records) writer.add(record.key, 1);
  return writer.finish();
}

// Packed rows under a layout that has at least as many bits for every column: order is kept.
LargeVector<std::uint64_t> relaid_keys(const std::uint64_t* keys, std::size_t rows, const KeyLayout& before,
                                       const KeyLayout& layout) {
  LargeVector<std::uint64_t> out(rows * stored_words(layout.words()));
  std::vector<std::uint32_t> row(layout.columns());
  with_key_words(before.words(), [&]<std::size_t V>() {
    with_key_words(layout.words(), [&]<std::size_t W>() {
      auto* to = reinterpret_cast<Key<W>*>(out.data());
      const auto* from = reinterpret_cast<const Key<V>*>(keys);
      for (std::size_t i = 0; i < rows; ++i) {
        before.unpack(from[i], row.data());
        to[i] = layout.pack<W>(row.data());
      }
    });
  });
  return out;
}

SortedEvents relaid(const SortedEvents& events, const KeyLayout& layout, const std::string& folder) {
  return with_key_words(layout.words(), [&]<std::size_t W>() {
    SortedEventsWriter<W> writer(layout, events.rows(), folder);
    std::vector<std::uint32_t> row(layout.columns());
    std::size_t passed = 0;
    with_key_words(events.layout().words(), [&]<std::size_t V>() {
      for (std::size_t i = 0; i < events.rows(); ++i) {
        events.layout().unpack(events.keys_as<V>()[i], row.data());
        writer.add(layout.pack<W>(row.data()), events.counts()[i]);
        events.pass(i, passed);
      }
    });
    return writer.finish();
  });
}

}  // namespace

SortedEvents::SortedEvents(KeyLayout layout, std::uint64_t total, std::shared_ptr<const StoredBytes> keys,
                           std::shared_ptr<const StoredBytes> counts)
    : layout_(std::move(layout)),
      total_(total),
      rows_(counts->size() / sizeof(std::uint32_t)),
      keys_(reinterpret_cast<const std::uint64_t*>(keys->data())),
      counts_(reinterpret_cast<const std::uint32_t*>(counts->data())),
      key_bytes_(std::move(keys)),
      count_bytes_(std::move(counts)) {}

SortedEvents::SortedEvents(KeyLayout layout, std::uint64_t total, std::size_t rows, const std::uint64_t* keys,
                           const std::uint32_t* counts, std::shared_ptr<const void> owner)
    : layout_(std::move(layout)), total_(total), rows_(rows), keys_(keys), counts_(counts), owner_(std::move(owner)) {}

void SortedEvents::pass(std::size_t row, std::size_t& passed) const {
  constexpr std::size_t step = std::size_t{1} << 15;
  if (row < passed + step || !mapped()) return;
  const std::size_t key_size = stride() * sizeof(std::uint64_t);
  key_bytes_->forget(passed * key_size, row * key_size);
  count_bytes_->forget(passed * sizeof(std::uint32_t), row * sizeof(std::uint32_t));
  passed = row;
}

template <std::size_t W>
SortedEventsWriter<W>::SortedEventsWriter(KeyLayout layout, std::size_t rows, const std::string& folder)
    : layout_(std::move(layout)), keys_(folder), counts_(folder) {
  keys_.reserve(rows * sizeof(Key<W>));
  counts_.reserve(rows * sizeof(std::uint32_t));
}

template <std::size_t W>
void SortedEventsWriter<W>::add(const Key<W>& key, std::uint64_t count) {
  total_ += checked_count(count);
  if (any_ && key == last_) {
    count_ += count;  // both fit 32 bits, so the sum cannot wrap
    checked_count(count_);
    return;
  }
  flush();
  any_ = true;
  last_ = key;
  count_ = count;
}

template <std::size_t W>
void SortedEventsWriter<W>::flush() {
  if (!any_) return;
  const auto count = static_cast<std::uint32_t>(count_);
  keys_.append(&last_, sizeof last_);
  counts_.append(&count, sizeof count);
  any_ = false;
}

template <std::size_t W>
SortedEvents SortedEventsWriter<W>::finish() {
  flush();
  return {layout_, total_, keys_.finish(), counts_.finish()};
}

template class SortedEventsWriter<1>;
template class SortedEventsWriter<2>;
template class SortedEventsWriter<4>;
template class SortedEventsWriter<max_key_words>;

EventCounter::EventCounter(std::size_t columns, std::size_t threads, std::size_t run_rows, MemoryLimit limit)
    : layout_(std::vector<unsigned>(columns, 0)), run_rows_(run_rows), limit_(std::move(limit)), pool_(threads) {
  if (columns == 0) throw Error(ErrorCode::argument, "an event needs at least one column");
  // A run and what is left of it after adding up equal rows.
  if (limit_.bytes != 0) run_rows_ = std::min(run_rows_, limit_.bytes / (4 * 4 * sizeof(std::uint64_t)));
  run_rows_ = std::max<std::size_t>(run_rows_, 1024);
}

void EventCounter::add_run(SortedEvents run) {
  runs_.push_back(std::move(run));
  if (limit_.bytes == 0) return;
  std::size_t held = 0;
  for (const SortedEvents& each : runs_) held += each.mapped() ? 0 : each.bytes();
  if (held < limit_.bytes / 4) return;
  for (SortedEvents& each : runs_)
    if (!each.mapped()) each = spilled(each, limit_.folder);
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
  const std::size_t pending_rows = pending_.size() / stored_words(layout_.words());
  pending_ = relaid_keys(pending_.data(), pending_rows, layout_, layout);
  for (SortedEvents& run : runs_) run = relaid(run, layout, run.mapped() ? limit_.folder : std::string());
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
  if (!std::is_sorted(starts.begin(), starts.end())) throw Error(ErrorCode::argument, "starts must not decrease");
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
  if (other.layout().columns() != layout_.columns())
    throw Error(ErrorCode::argument, "the counts to merge have a different number of columns");
  if (other.rows() == 0) return;
  std::vector<std::uint32_t> largest(layout_.columns());
  for (std::size_t i = 0; i < largest.size(); ++i) {
    const unsigned bits = other.layout().bits(i);
    largest[i] = bits == 0 ? 0 : static_cast<std::uint32_t>((std::uint64_t{1} << bits) - 1);
  }
  widen(largest);
  add_run(relaid(other, layout_, other.mapped() ? limit_.folder : std::string()));
  total_ += other.total();
}

template <std::size_t W>
void EventCounter::sort_run(LargeVector<std::uint64_t>& keys, const std::uint64_t* weights) {
  auto* packed = reinterpret_cast<PlainRecord<W>*>(keys.data());
  const std::size_t count = keys.size() / W;
  if (weights == nullptr) {
    const std::span<PlainRecord<W>> records(packed, count);
    radix_sort(records, layout_.total(), pool_);
    add_run(fold<W>(records, layout_));
    return;
  }
  LargeVector<WeightedRecord<W>> records(count);
  for (std::size_t i = 0; i < count; ++i) records[i] = {packed[i].key, weights[i]};
  radix_sort(std::span(records), layout_.total(), pool_);
  SortedEventsWriter<W> writer(layout_, 0, {});
  for (const auto& record : records)
    if (record.weight != 0) writer.add(record.key, record.weight);
  SortedEvents run = writer.finish();
  total_ += run.total();
  if (run.rows() != 0) add_run(std::move(run));
}

void EventCounter::close_run() {
  if (pending_.empty()) return;
  with_key_words(layout_.words(), [&]<std::size_t W>() { sort_run<W>(pending_, nullptr); });
  pending_.clear();
}

SortedEvents EventCounter::finish(const ProgressCallback& progress) {
  close_run();
  LargeVector<std::uint64_t>().swap(pending_);
  total_ = 0;
  if (runs_.empty()) return {layout_, 0, ByteArena().finish(), ByteArena().finish()};
  std::size_t held = 0;
  bool on_disk = false;
  for (const SortedEvents& each : runs_) {
    held += each.bytes();
    on_disk = on_disk || each.mapped();
  }
  on_disk = on_disk || (limit_.bytes != 0 && 2 * held > limit_.bytes);
  return merge_sorted(std::exchange(runs_, {}), on_disk ? limit_.folder : std::string(), progress);
}

void check_sorted(const SortedEvents& events, const std::vector<std::uint32_t>& largest) {
  const KeyLayout& layout = events.layout();
  const auto refuse = [](std::size_t row, const char* what) {
    throw Error(ErrorCode::table, "row " + std::to_string(row) + " of the counts " + what);
  };
  std::uint64_t total = 0;
  with_key_words(layout.words(), [&]<std::size_t W>() {
    const auto* keys = events.keys_as<W>();
    for (std::size_t i = 0; i < events.rows(); ++i) {
      if (i > 0 && !(keys[i - 1] < keys[i])) refuse(i, "does not follow the one before it");
      if (events.counts()[i] == 0) refuse(i, "was never counted");
      if (!(slice<W>(keys[i], 0, layout.total()) == keys[i])) refuse(i, "has more bits than its columns");
      for (std::size_t c = 0; c < layout.columns(); ++c)
        if (layout.column(keys[i], c) > largest[c]) refuse(i, "contains an id that is too large");
      total += events.counts()[i];
    }
  });
  if (total != events.total()) throw Error(ErrorCode::table, "the counts do not sum to what they should");
}

SortedEvents spilled(const SortedEvents& events, const std::string& folder) {
  ByteArena keys(folder), counts(folder);
  keys.append(events.keys(), events.rows() * events.stride() * sizeof(std::uint64_t));
  counts.append(events.counts(), events.rows() * sizeof(std::uint32_t));
  return {events.layout(), events.total(), keys.finish(), counts.finish()};
}

SortedEvents merge_sorted(std::vector<SortedEvents> runs, const std::string& folder, const ProgressCallback& progress) {
  if (runs.size() == 1 && (folder.empty() || runs.front().mapped())) return std::move(runs.front());
  const KeyLayout layout = runs.front().layout();
  // Room for all rows: what is not used in the end is never touched.
  std::size_t most = 0;
  for (const SortedEvents& run : runs) most += run.rows();
  return with_key_words(layout.words(), [&]<std::size_t W>() {
    struct Head {
      Key<W> key;
      std::size_t run;
      bool operator>(const Head& other) const { return key > other.key; }
    };
    std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
    std::vector<std::size_t> at(runs.size(), 0), passed(runs.size(), 0);
    for (std::size_t r = 0; r < runs.size(); ++r)
      if (runs[r].rows() != 0) heads.push({runs[r].template keys_as<W>()[0], r});
    SortedEventsWriter<W> writer(layout, most, folder);
    std::uint64_t done = 0;
    while (!heads.empty()) {
      if (++done % 1000000 == 0) progress(done, most);
      const Head head = heads.top();
      heads.pop();
      SortedEvents& run = runs[head.run];
      std::size_t& i = at[head.run];
      writer.add(head.key, run.counts()[i]);
      run.pass(i, passed[head.run]);
      if (++i < run.rows())
        heads.push({run.template keys_as<W>()[i], head.run});
      else
        run = SortedEvents();
    }
    progress(most, most);
    return writer.finish();
  });
}

}  // namespace treelm
