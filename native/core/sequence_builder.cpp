// A sequence table from given probabilities and weights.

#include <algorithm>
#include <cmath>

#include "arpa.h"
#include "packed_keys.h"
#include "radix_sort.h"
#include "table_builder.h"

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
    builder_.add_context(0, 0.0, empty_context);
    LargeVector<std::uint32_t> context(levels_[0].log_probability.size(), empty_context);  // per row of n words
    for (std::size_t n = 1; n <= order_; ++n) {
      const LargeVector<Sorted<W>> rows = sorted_rows(n);
      LargeVector<std::uint32_t> next_context(n < order_ ? levels_[n].log_probability.size() : 0, none);
      LargeVector<std::uint32_t> own(rows.size(), none);  // number as a context, per sorted row
      if (n < order_) own = number_contexts(n, rows, next_context);
      add_rows(n, rows, context, own);
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

  // Numbers the rows of n words that are contexts: those that rows of n + 1 words go on from, and
  // those with a weight. Fills in the context of every row of n + 1 words.
  LargeVector<std::uint32_t> number_contexts(std::size_t n, const LargeVector<Sorted<W>>& rows,
                                             LargeVector<std::uint32_t>& context_of) {
    const LargeVector<Sorted<W>> longer = sort(n + 1, 1);
    LargeVector<std::uint32_t> own(rows.size(), none);
    std::size_t at = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool extended = at < longer.size() && longer[at].key == rows[i].key;
      if (at < longer.size() && longer[at].key < rows[i].key) problem_(n + 1, longer[at].index, RowProblem::no_context);
      if (!extended && levels_[n - 1].log_backoff[rows[i].index] == 0) continue;
      own[i] = static_cast<std::uint32_t>(builder_.contexts());
      builder_.add_context(static_cast<std::uint32_t>(n), from_log10(levels_[n - 1].log_backoff[rows[i].index]),
                           shorter_context(rows[i].key, n));
      for (; at < longer.size() && longer[at].key == rows[i].key; ++at) context_of[longer[at].index] = own[i];
    }
    if (at < longer.size()) problem_(n + 1, longer[at].index, RowProblem::no_context);
    LargeVector<Key<W>> keys;
    LargeVector<std::uint32_t> numbers;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (own[i] != none) {
        keys.push_back(rows[i].key);
        numbers.push_back(own[i]);
      }
    numbered_.push_back({std::move(keys), std::move(numbers)});
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

  void add_rows(std::size_t n, const LargeVector<Sorted<W>>& rows, const LargeVector<std::uint32_t>& context,
                const LargeVector<std::uint32_t>& own) {
    const SequenceRows& level = levels_[n - 1];
    LargeVector<TableBuilder::Row> added;
    added.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::uint32_t index = rows[i].index, word = layout_.column(rows[i].key, 0);
      // <s> is never predicted, whatever the file says.
      const double p = n == 1 && word == pad_ ? -0.0 : from_log10(level.log_probability[index]);
      // A row that is no context leads to the longest context that it ends in.
      const std::uint32_t next = own[i] != none ? own[i] : n == 1 ? empty_context : shorter_context(rows[i].key, n);
      added.push_back(TableBuilder::row(context[index], word, p, next));
    }
    builder_.add_entries(order_ - n, std::move(added));
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
