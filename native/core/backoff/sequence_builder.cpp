#include "backoff/sequence_builder.h"

#include <algorithm>
#include <cmath>

#include "backoff/table_builder.h"
#include "base/packed_keys.h"
#include "base/radix_sort.h"

namespace treelm {

namespace {

template <std::size_t W>
struct Sorted {
  static constexpr bool has_ties = true;  // problems are told in the order of the file
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
  Builder(TableShape shape, std::vector<SequenceRows> levels, std::size_t threads, const RowProblemCallback& problem)
      : levels_(std::move(levels)),
        layout_(std::vector<unsigned>(levels_.size(), static_cast<unsigned>(std::bit_width(shape.outcomes)))),
        problem_(problem),
        pool_(threads),
        pad_(shape.pad),
        order_(levels_.size()),
        builder_(std::move(shape), total_rows(), threads) {}

  std::shared_ptr<const BackoffTable> run() {
    // Words that are in no row have no probability: nothing lies below the 1-grams.
    builder_.set_empty_weight(0.0);
    LargeVector<std::uint32_t> context(levels_[0].log_probability.size(), 0);  // position, per row of n words
    for (std::size_t n = 1; n <= order_; ++n) {
      const LargeVector<Sorted<W>> rows = sorted_rows(n);
      LargeVector<std::uint32_t> next_context(n < order_ ? levels_[n].log_probability.size() : 0, none);
      std::vector<bool> own(rows.size(), false);  // per sorted row, whether it is a context
      if (n < order_) own = find_contexts(n, rows, next_context);
      add_rows(n, rows, context, own, next_context);
      context = std::move(next_context);
    }
    return builder_.finish();
  }

 private:
  std::uint64_t total_rows() const {
    std::uint64_t rows = 0;
    for (const SequenceRows& level : levels_) rows += level.log_probability.size();
    return rows;
  }

  // The rows of n words from column `from` on, sorted.
  LargeVector<Sorted<W>> sort(std::size_t n, std::size_t from) {
    const SequenceRows& level = levels_[n - 1];
    const std::size_t count = level.log_probability.size();
    LargeVector<Sorted<W>> records(count);
    std::vector<std::uint32_t> row(layout_.columns(), 0);
    for (std::size_t i = 0; i < count; ++i) {
      std::copy_n(level.rows.begin() + static_cast<std::ptrdiff_t>(i * n + from), n - from, row.begin());
      records[i] = {layout_.pack<W>(row.data()), static_cast<std::uint32_t>(i)};
    }
    radix_sort(std::span(records), layout_.prefix(n - from), pool_);
    return records;
  }

  LargeVector<Sorted<W>> sorted_rows(std::size_t n) {
    LargeVector<Sorted<W>> rows = sort(n, 0);
    for (std::size_t i = 1; i < rows.size(); ++i)
      if (rows[i].key == rows[i - 1].key) problem_(n, rows[i].index, RowProblem::duplicate);
    return rows;
  }

  // Which rows of n words are contexts: those that rows of n + 1 words go on from, and those with a
  // weight. Fills in which sorted row is the context of every row of n + 1 words.
  std::vector<bool> find_contexts(std::size_t n, const LargeVector<Sorted<W>>& rows,
                                  LargeVector<std::uint32_t>& context_of) {
    const LargeVector<Sorted<W>> longer = sort(n + 1, 1);
    std::vector<bool> own(rows.size(), false);
    std::size_t at = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool extended = at < longer.size() && longer[at].key == rows[i].key;
      if (at < longer.size() && longer[at].key < rows[i].key) problem_(n + 1, longer[at].index, RowProblem::no_context);
      own[i] = extended || levels_[n - 1].log_backoff[rows[i].index] != 0;
      for (; at < longer.size() && longer[at].key == rows[i].key; ++at)
        context_of[longer[at].index] = static_cast<std::uint32_t>(i);
    }
    if (at < longer.size()) problem_(n + 1, longer[at].index, RowProblem::no_context);
    return own;
  }

  // The longest context that the first columns of a context of n words are.
  std::uint32_t shorter_context(const Key<W>& key, std::size_t n) const {
    for (std::size_t columns = n; columns-- > 1;) {
      const auto& [keys, numbers] = numbered_[columns - 1];
      const Key<W> prefix = slice<W>(key, 0, layout_.prefix(columns));
      const auto found = std::lower_bound(keys.begin(), keys.end(), prefix);
      if (found != keys.end() && *found == prefix) return numbers[static_cast<std::size_t>(found - keys.begin())];
    }
    return empty_context;
  }

  // Adds the rows of n words. `longer`: which of them each row of n + 1 words goes on from; it becomes
  // their position.
  void add_rows(std::size_t n, const LargeVector<Sorted<W>>& rows, const LargeVector<std::uint32_t>& context,
                const std::vector<bool>& own, LargeVector<std::uint32_t>& longer) {
    const SequenceRows& level = levels_[n - 1];
    RowBatch added = builder_.batch();
    added.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::uint32_t index = rows[i].index, word = layout_.column(rows[i].key, 0);
      // <s> is never predicted, whatever the file says.
      const double p = n == 1 && word == pad_ ? -0.0 : from_log10(level.log_probability[index]);
      added.add(context[index], word, p, own[i] ? from_log10(level.log_backoff[index]) : not_a_context,
                shorter_context(rows[i].key, n), static_cast<std::uint32_t>(i));
    }
    if (n == order_) {
      builder_.add_entries(order_ - n, std::move(added), nullptr);
      return;
    }
    LargeVector<std::uint32_t> positions(rows.size());
    builder_.add_entries(order_ - n, std::move(added), &positions);
    for (std::uint32_t& place : longer)
      if (place != none) place = positions[place];
    LargeVector<Key<W>> keys;
    LargeVector<std::uint32_t> numbers;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (own[i]) {
        keys.push_back(rows[i].key);
        numbers.push_back(static_cast<std::uint32_t>(builder_.start(static_cast<std::uint32_t>(n)) + positions[i]));
      }
    numbered_.push_back({std::move(keys), std::move(numbers)});
  }

  std::vector<SequenceRows> levels_;
  KeyLayout layout_;
  const RowProblemCallback& problem_;
  ThreadPool pool_;
  std::uint32_t pad_;
  std::size_t order_;
  TableBuilder builder_;
  std::vector<std::pair<LargeVector<Key<W>>, LargeVector<std::uint32_t>>> numbered_;  // contexts of 1, 2, ... words
};

}  // namespace

std::shared_ptr<const BackoffTable> build_sequences(TableShape shape, std::vector<SequenceRows> levels,
                                                    std::size_t threads, const RowProblemCallback& problem) {
  const auto bits = static_cast<unsigned>(std::bit_width(shape.outcomes));
  const std::size_t words = KeyLayout(std::vector<unsigned>(levels.size(), bits)).words();
  return with_key_words(
      words, [&]<std::size_t W>() { return Builder<W>(std::move(shape), std::move(levels), threads, problem).run(); });
}

}  // namespace treelm
