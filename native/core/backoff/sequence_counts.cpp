#include "backoff/sequence_counts.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "backoff/streamed_counts.h"
#include "backoff/table_layout.h"
#include "base/interrupt.h"

namespace treelm {

namespace {

constexpr std::size_t rows_a_poll = 4096;
// The most words of an entry.
constexpr std::size_t max_depth = max_columns + 1;

std::uint32_t checked_sum(std::uint64_t sum) {
  if (sum > std::numeric_limits<std::uint32_t>::max())
    throw Error(ErrorCode::overflow, "the counts of one entry sum to " + std::to_string(sum));
  return static_cast<std::uint32_t>(sum);
}

}  // namespace

// Reads the events in pieces, each of which has all events of its outcomes: once for the sizes, and once more to fill
// what then is known to fit.
template <std::size_t W>
class SequenceCounts::Builder {
 public:
  Builder(SequenceCounts& counts, const SortedEvents& events, std::uint64_t outcomes, bool token_counts,
          bool keep_tokens)
      : counts_(counts),
        layout_(events.layout()),
        keys_(events.keys_as<W>()),
        numbers_(events.counts()),
        rows_(events.rows()),
        outcomes_(outcomes),
        deepest_(layout_.columns()),
        token_counts_(token_counts),
        keep_tokens_(keep_tokens && !token_counts),
        pads_(counts.shape_.pads) {
    if (deepest_ > max_depth)
      throw Error(ErrorCode::too_large, "sequences of more than " + std::to_string(max_depth) + " words");
    for (std::size_t d = 0; d <= deepest_; ++d) prefix_.push_back(layout_.prefix(d));
  }

  void run(ThreadPool& pool) {
    cut(8 * pool.size());
    const std::size_t pieces = cuts_.size() - 1;
    std::vector<Sizes> begin(pieces + 1, Sizes{});
    pool.map(pieces, [&](std::size_t i, std::size_t) { begin[i + 1] = sizes(cuts_[i], cuts_[i + 1]); });
    for (std::size_t i = 0; i < pieces; ++i)
      for (std::size_t d = 0; d <= deepest_; ++d) begin[i + 1][d] += begin[i][d];
    make_room(begin.back());
    std::vector<Filler> fillers(pieces);
    pool.map(pieces, [&](std::size_t i, std::size_t) { fillers[i] = fill(cuts_[i], cuts_[i + 1], begin[i]); });
    for (std::size_t d = 2; d <= deepest_; ++d) {
      for (const Filler& filler : fillers) {
        counts_.depths_[d]->counts.keep(filler.large_counts[d]);
        counts_.depths_[d]->children.keep(filler.large_children[d]);
      }
      // Words that were not counted have no entries.
      std::vector<std::uint32_t>& begins = counts_.depths_[d]->begins;
      for (std::size_t w = begins.size() - 1; w-- > 0;)
        if (begins[w] == none) begins[w] = begins[w + 1];
    }
  }

 private:
  // Numbers of every depth. They change with every row, and so must lie on the stack of their thread: small blocks
  // of the heap may share a line of the caches with those of another thread.
  using Sizes = std::array<std::size_t, max_depth + 1>;
  using Pads = std::array<std::uint32_t, max_depth + 1>;
  struct Filler {
    std::vector<SmallNumbers::LargeOnes> large_counts, large_children;
  };

  void cut(std::size_t pieces) {
    cuts_.push_back(0);
    for (std::size_t i = 1; i < pieces; ++i) {
      const std::size_t row = rows_ * i / pieces;
      if (row <= cuts_.back()) continue;
      const std::uint32_t outcome = layout_.column(keys_[row - 1], 0);
      const auto* at = std::partition_point(keys_ + row, keys_ + rows_,
                                            [&](const Key<W>& key) { return layout_.column(key, 0) == outcome; });
      if (at != keys_ + rows_) cuts_.push_back(static_cast<std::size_t>(at - keys_));
    }
    cuts_.push_back(rows_);
  }

  // Calls visit(row, opened, kept, pads): entries of the depths from `opened` on begin here, those up to `kept` count,
  // and `pads` has the number of pads in the context of each depth.
  template <class Visit>
  void each_row(std::size_t from, std::size_t to, const Visit& visit) const {
    Pads found{};
    for (std::size_t i = from; i < to; ++i) {
      if (i % rows_a_poll == 0) poll_interrupt();
      std::size_t opened = 1;
      if (i != from) {
        const unsigned common = common_bits(keys_[i - 1], keys_[i]);
        for (opened = deepest_; opened > 1 && common < prefix_[opened - 1];) --opened;
      }
      std::size_t kept = deepest_;
      for (std::size_t d = std::max<std::size_t>(opened, 2); d <= deepest_; ++d) {
        const std::uint32_t pad = pads_[d - 2];
        found[d] = found[d - 1] + (pad != none && layout_.column(keys_[i], d - 1) == pad);
      }
      while (kept > 1 && found[kept] > 1) --kept;
      visit(i, opened, kept, found);
    }
  }

  Sizes sizes(std::size_t from, std::size_t to) const {
    Sizes size{};
    each_row(from, to, [&](std::size_t i, std::size_t opened, std::size_t kept, const Pads&) {
      for (std::size_t d = opened; d <= kept; ++d) ++size[d];
      if (opened <= 2) {
        bool fits = layout_.column(keys_[i], 0) < outcomes_;
        if (deepest_ > 1) fits = fits && layout_.column(keys_[i], 1) < outcomes_;
        if (!fits) throw Error(ErrorCode::argument, "an id is outside the table");
      }
    });
    return size;
  }

  void make_room(const Sizes& size) {
    counts_.words_.assign(outcomes_, 0);
    if (keep_tokens_ && deepest_ > 1) counts_.word_tokens_.assign(outcomes_, 0);
    counts_.depths_.resize(deepest_ + 1);
    for (std::size_t d = 2; d <= deepest_; ++d) {
      auto depth = std::make_shared<SequenceDepth>();
      depth->words.resize(size[d]);
      depth->counts = SmallNumbers(size[d]);
      if (d < deepest_) depth->children = SmallNumbers(size[d]);
      if (d < deepest_ && keep_tokens_) depth->tokens.resize(size[d]);
      depth->begins.assign(outcomes_ + 1, none);
      depth->begins.back() = static_cast<std::uint32_t>(size[d]);
      counts_.depths_[d] = std::move(depth);
    }
    for (std::size_t d = 1; d <= deepest_; ++d) counts_.sizes_[deepest_ - d] = size[d];
  }

  Filler fill(std::size_t from, std::size_t to, Sizes next) {
    struct Open {
      std::uint64_t tokens = 0;
      std::uint32_t children = 0;
      bool is_open = false, counts_tokens = false;
    };
    Filler filler;
    filler.large_counts.resize(deepest_ + 1);
    filler.large_children.resize(deepest_ + 1);
    std::array<Open, max_depth + 1> open{};
    std::uint32_t outcome = 0;
    // `next`: of the depth, the place behind the open entry.
    const auto close = [&](std::size_t d) {
      Open& entry = open[d];
      if (!entry.is_open) return;
      entry.is_open = false;
      const std::uint32_t count = entry.counts_tokens ? checked_sum(entry.tokens) : entry.children;
      if (d == 1) {
        counts_.words_[outcome] = count;
        if (!counts_.word_tokens_.empty()) counts_.word_tokens_[outcome] = checked_sum(entry.tokens);
        return;
      }
      SequenceDepth& depth = *counts_.depths_[d];
      depth.counts.set(next[d] - 1, count, filler.large_counts[d]);
      if (d < deepest_) depth.children.set(next[d] - 1, entry.children, filler.large_children[d]);
      if (!depth.tokens.empty()) depth.tokens[next[d] - 1] = checked_sum(entry.tokens);
    };
    each_row(from, to, [&](std::size_t i, std::size_t opened, std::size_t kept, const Pads& pads) {
      for (std::size_t d = opened; d <= deepest_; ++d) close(d);
      if (opened == 1) {
        outcome = layout_.column(keys_[i], 0);
        for (std::size_t d = 2; d <= deepest_; ++d)
          counts_.depths_[d]->begins[outcome] = static_cast<std::uint32_t>(next[d]);
      }
      for (std::size_t d = opened; d <= kept; ++d) {
        open[d] = {0, 0, true, d == deepest_ || token_counts_ || pads[d] == 1};
        if (d == 1) continue;
        counts_.depths_[d]->words[next[d]++] = layout_.column(keys_[i], d - 1);
        ++open[d - 1].children;
      }
      for (std::size_t d = 1; d <= kept; ++d) open[d].tokens += numbers_[i];
    });
    for (std::size_t d = 1; d <= deepest_; ++d) close(d);
    return filler;
  }

  SequenceCounts& counts_;
  const KeyLayout& layout_;
  const Key<W>* keys_;
  const std::uint32_t* numbers_;
  std::size_t rows_;
  std::uint64_t outcomes_;
  std::size_t deepest_;
  bool token_counts_, keep_tokens_;
  const std::vector<std::uint32_t>& pads_;
  std::vector<unsigned> prefix_;
  std::vector<std::size_t> cuts_;  // rows where pieces begin, and the end
};

SequenceCounts::SequenceCounts(const SortedEvents& events, const ChainShape& shape, std::uint64_t outcomes,
                               bool token_counts, bool keep_tokens, std::size_t threads)
    : shape_(shape), threads_(threads), has_tokens_(token_counts || keep_tokens) {
  check_events(events, shape);
  for (std::size_t j = 0; j < levels(); ++j)
    if (shape.widths[j] != levels() - 1 - j)
      throw Error(ErrorCode::chain, "a sequence chain drops one word per level, down to none");
  if (outcomes >= none) throw Error(ErrorCode::too_large, "more ids than can be indexed");
  sizes_.assign(levels(), 0);
  counts_of_counts_.assign(levels(), {});
  ThreadPool pool(threads);
  with_key_words(events.layout().words(),
                 [&]<std::size_t W>() { Builder<W>(*this, events, outcomes, token_counts, keep_tokens).run(pool); });
  count_counts(pool);
}

void SequenceCounts::count_counts(ThreadPool& pool) {
  using Numbers = std::array<std::uint64_t, 4>;
  const std::size_t deepest = levels();
  for (const std::uint32_t count : words_)
    if (count >= 1 && count <= 4) ++counts_of_counts_.back()[count - 1];
  for (std::size_t d = 2; d <= deepest; ++d) {
    const SequenceDepth& depth = *depths_[d];
    const std::vector<std::uint32_t> cuts = word_pieces(depth.begins, threads_);
    std::vector<Numbers> parts(cuts.size() - 1, Numbers{});
    pool.map(parts.size(), [&](std::size_t piece, std::size_t) {
      const std::size_t from = depth.begins[cuts[piece]], to = depth.begins[cuts[piece + 1]];
      auto counts = depth.counts.from(from);
      for (std::size_t i = from; i < to; ++i) {
        const std::uint32_t count = counts.next();
        if (count >= 1 && count <= 4) ++parts[piece][count - 1];
      }
    });
    for (const Numbers& part : parts)
      for (std::size_t r = 0; r < 4; ++r) counts_of_counts_[deepest - d][r] += part[r];
  }
}

std::size_t memory_of_sequences(const SortedEvents& events, const ChainShape& shape, bool keep_tokens, bool use_up) {
  std::vector<std::size_t> size = level_sizes(events, shape);
  std::reverse(size.begin(), size.end());
  size.insert(size.begin(), 0);  // by number of words
  const std::size_t deepest = shape.levels(), token_bytes = keep_tokens ? 4 : 0;
  // What the counts take of an entry: word, count, number of children, tokens.
  const std::size_t entry_bytes = 6 + token_bytes;
  std::size_t counted = 0;
  for (std::size_t d = 2; d <= deepest; ++d) counted += size[d] * entry_bytes;
  const std::size_t held = use_up ? 0 : events.bytes() + counted;
  std::size_t most = events.bytes() + counted, table = 0;
  for (std::size_t d = 1; d <= deepest; ++d) {
    table += size[d] * (d == deepest ? 11 : 15);
    // While rows are put: probability, context and what follows, of this depth and of the one below; the contexts of
    // the next; and what later depths were counted.
    std::size_t bytes = size[d - 1] * (8 + 4 + 8 + 2 + token_bytes * 5) + size[d] * (4 + 2 + token_bytes);
    if (d < deepest) bytes += size[d] * (8 + 4 + 8 + token_bytes * 4);
    if (d + 1 < deepest) bytes += size[d + 1] * 4;  // the contexts of the last depth stand where its words stood
    for (std::size_t later = d + 1; later <= deepest; ++later) bytes += size[later] * entry_bytes;
    most = std::max(most, held + table + bytes);
  }
  return most;
}

std::vector<std::uint32_t> word_pieces(const std::vector<std::uint32_t>& begins, std::size_t threads) {
  const std::size_t wanted = 16 * std::max<std::size_t>(threads, 1), all = begins.back();
  std::vector<std::uint32_t> pieces{0};
  const auto words = static_cast<std::uint32_t>(begins.size() - 1);
  for (std::uint32_t w = 1; w < words; ++w)
    if (begins[w] - begins[pieces.back()] > all / wanted) pieces.push_back(w);
  pieces.push_back(words);
  return pieces;
}

}  // namespace treelm
