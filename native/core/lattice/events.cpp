#include "lattice/events.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/radix_sort.h"

namespace treelm {

namespace {

// Rows sorted at a time.
constexpr std::size_t run_rows = std::size_t{1} << 24;

unsigned bits_below(std::uint32_t limit) { return limit <= 1 ? 0u : static_cast<unsigned>(std::bit_width(limit - 1)); }

}  // namespace

std::int64_t add_counts(std::int64_t a, std::int64_t b) {
  if (a > std::numeric_limits<std::int64_t>::max() - b)
    throw Error(ErrorCode::overflow, "the counts of an event add up to 2^33 or more");
  return a + b;
}

KeyLayout lattice_layout(const LatticeShape& shape, std::size_t stem, std::span<const std::uint32_t> limits) {
  std::vector<unsigned> bits;
  for (const std::uint32_t column : shape.stems()[stem]) bits.push_back(bits_below(limits[column]));
  bits.push_back(bits_below(shape.outcomes()));
  bits.push_back(shape.topics() ? bits_below(limits.back()) : 0);
  return KeyLayout(std::move(bits));
}

template <std::size_t W>
void sort_and_sum(LargeVector<CountedKey<W>>& rows, unsigned bits, ThreadPool& pool) {
  radix_sort(std::span<CountedKey<W>>(rows.data(), rows.size()), bits, pool);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (kept > 0 && rows[kept - 1].key == rows[i].key)
      rows[kept - 1].count = add_counts(rows[kept - 1].count, rows[i].count);
    else
      rows[kept++] = rows[i];
  }
  rows.resize(kept);
}

template <std::size_t W>
KeyRuns<W>::KeyRuns(const LatticeShape& shape, std::span<const std::uint32_t> limits, ThreadPool& pool)
    : shape_(shape), limits_(limits.begin(), limits.end()), pool_(pool) {
  layout = lattice_layout(shape, shape.top_stem(), limits);
}

template <std::size_t W>
void KeyRuns<W>::add(const std::uint32_t* columns, const std::uint32_t* outcomes, const std::int64_t* counts,
                     std::size_t rows) {
  const std::vector<std::uint32_t>& order = shape_.stems()[shape_.top_stem()];
  const std::size_t width = shape_.columns();
  std::vector<std::uint32_t> row(order.size() + 2, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    const std::uint32_t* from = columns + i * width;
    for (std::size_t c = 0; c < width; ++c)
      if (from[c] >= limits_[c])
        throw Error(ErrorCode::argument, "column " + std::to_string(c) + " of an event is " + std::to_string(from[c]) +
                                             ", and must be below " + std::to_string(limits_[c]));
    if (outcomes[i] >= shape_.outcomes())
      throw Error(ErrorCode::argument, "the outcome of an event is " + std::to_string(outcomes[i]) +
                                           ", and there are " + std::to_string(shape_.outcomes()));
    if (counts[i] < 0) throw Error(ErrorCode::argument, "an event has a negative count");
    for (std::size_t c = 0; c < order.size(); ++c) row[c] = from[order[c]];
    row[order.size()] = outcomes[i];
    row[order.size() + 1] = shape_.topics() ? from[width - 1] : 0;
    if (pending_.size() >= run_rows) close_run();
    pending_.push_back({layout.pack<W>(row.data()), counts[i]});
  }
}

template <std::size_t W>
void KeyRuns<W>::close_run() {
  if (pending_.empty()) return;
  sort_and_sum(pending_, layout.total(), pool_);
  // No run stays beside one that is less than twice its size, so that there are few.
  runs_.emplace_back(pending_.begin(), pending_.end());
  pending_.clear();
  while (runs_.size() > 1 && runs_[runs_.size() - 2].size() < 2 * runs_.back().size()) merge_last();
}

template <std::size_t W>
void KeyRuns<W>::merge_last() {
  LargeVector<CountedKey<W>> a = std::move(runs_.back());
  runs_.pop_back();
  LargeVector<CountedKey<W>> b = std::move(runs_.back());
  runs_.pop_back();
  std::size_t common = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const bool first = !(b[j] < a[i]), second = !(a[i] < b[j]);
    common += first && second;
    i += first;
    j += second;
  }
  LargeVector<CountedKey<W>> merged(a.size() + b.size() - common);
  std::size_t k = 0;
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size(); ++k) {
    const bool first = j == b.size() || (i < a.size() && !(b[j] < a[i]));
    const bool second = i == a.size() || (j < b.size() && !(a[i] < b[j]));
    merged[k] = first ? a[i] : b[j];
    if (first && second) merged[k].count = add_counts(a[i].count, b[j].count);
    i += first;
    j += second;
  }
  runs_.push_back(std::move(merged));
}

template <std::size_t W>
LargeVector<CountedKey<W>> KeyRuns<W>::finish() {
  close_run();
  LargeVector<CountedKey<W>>().swap(pending_);  // an empty list would leave its room behind
  while (runs_.size() > 1) merge_last();
  LargeVector<CountedKey<W>> all;
  if (!runs_.empty()) all = std::move(runs_.back());
  runs_.clear();
  return all;
}

template <std::size_t W>
EventRows KeyRuns<W>::take() {
  const LargeVector<CountedKey<W>> all = finish();
  const std::vector<std::uint32_t>& order = shape_.stems()[shape_.top_stem()];
  const std::size_t width = shape_.columns();
  EventRows rows;
  rows.columns.resize(all.size() * width);
  rows.outcomes.reserve(all.size());
  rows.counts.reserve(all.size());
  std::vector<std::uint32_t> row(order.size() + 2, 0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    layout.unpack(all[i].key, row.data());
    std::uint32_t* const to = rows.columns.data() + i * width;
    for (std::size_t c = 0; c < order.size(); ++c) to[order[c]] = row[c];
    if (shape_.topics()) to[width - 1] = row[order.size() + 1];
    rows.outcomes.push_back(row[order.size()]);
    rows.counts.push_back(all[i].count);
  }
  return rows;
}

LatticeEvents::LatticeEvents(LatticeShape shape, std::vector<std::uint32_t> limits, std::size_t threads)
    : shape_(std::move(shape)), limits_(std::move(limits)), pool_(std::make_unique<ThreadPool>(threads)) {
  if (limits_.size() != shape_.columns())
    throw Error(ErrorCode::argument, "there must be one limit for every column of a lattice");
  if (shape_.topics() && limits_.back() > 65536) throw Error(ErrorCode::too_large, "there are more than 65,536 topics");
  const std::size_t words = lattice_layout(shape_, shape_.top_stem(), limits_).words();
  with_key_words(words, [&]<std::size_t W>() { runs_ = std::make_unique<KeyRuns<W>>(shape_, limits_, *pool_); });
}

LatticeEvents::~LatticeEvents() = default;

void LatticeEvents::add(const std::uint32_t* columns, const std::uint32_t* outcomes, const std::int64_t* counts,
                        std::size_t rows) {
  runs_->add(columns, outcomes, counts, rows);
}

EventRows LatticeEvents::take() { return runs_->take(); }

template void sort_and_sum<1>(LargeVector<CountedKey<1>>&, unsigned, ThreadPool&);
template void sort_and_sum<2>(LargeVector<CountedKey<2>>&, unsigned, ThreadPool&);
template void sort_and_sum<4>(LargeVector<CountedKey<4>>&, unsigned, ThreadPool&);
template void sort_and_sum<max_key_words>(LargeVector<CountedKey<max_key_words>>&, unsigned, ThreadPool&);
template struct KeyRuns<1>;
template struct KeyRuns<2>;
template struct KeyRuns<4>;
template struct KeyRuns<max_key_words>;

}  // namespace treelm
