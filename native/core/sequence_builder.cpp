// A sequence table from given probabilities and weights.

#include <algorithm>
#include <cmath>

#include "arpa.h"
#include "packed_keys.h"
#include "radix_sort.h"
#include "table_builder.h"

namespace treelm {

namespace {

constexpr std::uint32_t carrier = none;  // index of a row that is not in the file

template <std::size_t W>
struct Sorted {
  static constexpr bool has_ties = true;  // duplicates are told in the order of the file
  Key<W> key;
  std::uint32_t index;
  friend bool operator<(const Sorted& a, const Sorted& b) {
    if (a.key != b.key) return a.key < b.key;
    return a.index < b.index;
  }
};

double from_log10(float value) { return std::pow(10.0, static_cast<double>(value)); }

template <std::size_t W>
class Builder {
 public:
  Builder(TableShape shape, std::vector<SequenceRows> levels, std::size_t threads)
      : levels_(std::move(levels)),
        threads_(threads),
        layout_(std::vector<unsigned>(levels_.size(), static_cast<unsigned>(std::bit_width(shape.outcomes)))),
        shape_(std::move(shape)) {}

  std::shared_ptr<const BackoffTable> run(const std::function<void(std::size_t, std::size_t)>& duplicate) {
    for (std::size_t n = 1; n <= levels_.size(); ++n) sort(n, duplicate);
    for (std::size_t n = levels_.size(); n > 2; --n) complete(n);
    std::uint64_t rows = 0;
    for (const auto& level : sorted_) rows += level.size();
    // Words that are in no row have no probability: nothing lies below.
    shape_.empty_backoff = 0;
    TableBuilder builder(shape_, rows, threads_);
    std::vector<std::uint32_t> slots;
    for (std::size_t n = 1; n <= levels_.size(); ++n) slots = add(builder, n, slots);
    return builder.finish();
  }

 private:
  void sort(std::size_t n, const std::function<void(std::size_t, std::size_t)>& duplicate) {
    const SequenceRows& level = levels_[n - 1];
    const std::size_t count = level.log_probability.size();
    LargeVector<Sorted<W>> records(count);
    std::vector<std::uint32_t> row(layout_.columns(), 0);
    for (std::size_t i = 0; i < count; ++i) {
      std::copy_n(level.rows.begin() + static_cast<std::ptrdiff_t>(i * n), n, row.begin());
      records[i] = {layout_.pack<W>(row.data()), static_cast<std::uint32_t>(i)};
    }
    ThreadPool pool(threads_);
    radix_sort(std::span(records), layout_.prefix(n), pool);
    for (std::size_t i = 1; i < count; ++i)
      if (records[i].key == records[i - 1].key) duplicate(n, records[i].index);
    sorted_.push_back(std::move(records));
  }

  // Adds to the rows of n - 1 words those that rows of n words begin with and that are missing.
  void complete(std::size_t n) {
    const auto& longer = sorted_[n - 1];
    auto& shorter = sorted_[n - 2];
    const unsigned bits = layout_.prefix(n - 1);
    LargeVector<Sorted<W>> missing;
    std::size_t at = 0;
    for (const auto& record : longer) {
      const Key<W> key = slice<W>(record.key, 0, bits);
      while (at < shorter.size() && shorter[at].key < key) ++at;
      if (at < shorter.size() && shorter[at].key == key) continue;
      if (missing.empty() || !(missing.back().key == key)) missing.push_back({key, carrier});
    }
    const auto middle = static_cast<std::ptrdiff_t>(shorter.size());
    shorter.insert(shorter.end(), missing.begin(), missing.end());
    std::inplace_merge(shorter.begin(), shorter.begin() + middle, shorter.end());
  }

  std::vector<std::uint32_t> add(TableBuilder& builder, std::size_t n, const std::vector<std::uint32_t>& parents) {
    const auto& records = sorted_[n - 1];
    const SequenceRows& level = levels_[n - 1];
    std::vector<std::uint32_t> slots(records.size());
    LargeVector<TableBuilder::Row> rows;
    rows.reserve(n == 1 ? 0 : records.size());
    std::size_t parent = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const auto& record = records[i];
      const std::uint32_t element = layout_.column(record.key, n - 1);
      double p = record.index == carrier ? 0 : from_log10(level.log_probability[record.index]);
      if (n == 1) {
        slots[i] = builder.first_entry(element);
        // <s> is never predicted, whatever the file says.
        if (element != shape_.pad) builder.set_probability(slots[i], p);
        continue;
      }
      const Key<W> prefix = slice<W>(record.key, 0, layout_.prefix(n - 1));
      while (sorted_[n - 2][parent].key < prefix) ++parent;
      if (record.index == carrier) {
        const std::uint32_t context = context_of(builder, record.key, n);
        const double weight = context == none ? 1.0 : usable_weight(builder.backoff(context));
        p = -weight * usable_probability(builder.probability(parents[parent]));
      }
      rows.push_back(TableBuilder::row(parents[parent], element, p, static_cast<std::uint32_t>(i)));
    }
    if (n > 1) builder.add_entries(std::move(rows), slots);
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (records[i].index == carrier) continue;
      builder.set_backoff(slots[i], -from_log10(level.log_backoff[records[i].index]));
      const std::uint32_t context = n > 1 ? context_of(builder, records[i].key, n) : none;
      if (context != none && builder.backoff(context) < 0) builder.set_backoff(context, -builder.backoff(context));
    }
    return slots;
  }

  // The row of the words before.
  std::uint32_t context_of(const TableBuilder& builder, const Key<W>& key, std::size_t n) const {
    std::uint32_t slot = entry_root;
    for (std::size_t c = 1; c < n && slot != none; ++c)
      slot = builder.entry(static_cast<std::uint32_t>(c), slot, layout_.column(key, c));
    return slot;
  }

  std::vector<SequenceRows> levels_;
  std::size_t threads_;
  KeyLayout layout_;
  TableShape shape_;
  std::vector<LargeVector<Sorted<W>>> sorted_;
};

}  // namespace

std::shared_ptr<const BackoffTable> build_sequences(TableShape shape, std::vector<SequenceRows> levels,
                                                    std::size_t threads,
                                                    const std::function<void(std::size_t, std::size_t)>& duplicate) {
  const auto bits = static_cast<unsigned>(std::bit_width(shape.outcomes));
  const std::size_t words = KeyLayout(std::vector<unsigned>(levels.size(), bits)).words();
  return with_key_words(
      words, [&]<std::size_t W>() { return Builder<W>(std::move(shape), std::move(levels), threads).run(duplicate); });
}

}  // namespace treelm
