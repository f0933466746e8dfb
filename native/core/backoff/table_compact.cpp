// Compact tables: words after chains of contexts, and many sentences at once.

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <vector>

#include "backoff/table.h"

namespace treelm {

BackoffTable::Suffixes BackoffTable::suffixes_of(std::uint32_t context) const {
  // The words of the context, most recent first: the last column of its row, then that of the context it goes on from.
  std::array<std::uint32_t, max_columns + 1> words;
  const std::uint32_t depth = depth_of(context);
  std::uint64_t position = context - layout_.starts[depth];
  for (std::uint32_t d = depth; d > 1; --d) {
    const Region& region = contexts_of(d);
    words[depth - d] = last_of(region, position);
    position = region.ranges.context_of(arrays_.index + region.index, position);
  }
  if (depth > 0) words[depth - 1] = static_cast<std::uint32_t>(position);
  return suffixes_after(words.data(), depth);
}

BackoffTable::Suffixes BackoffTable::suffixes_after(const std::uint32_t* words, std::uint32_t length) const {
  Suffixes suffixes;
  for (std::uint32_t c = std::min(length, shape_.widths.front()); c-- > 0;) read_after(suffixes, words[c]);
  return suffixes;
}

double BackoffTable::read_after(Suffixes& before, std::uint32_t word) const {
  Suffixes next;
  double weight = 1, p = 0;
  bool known = false;
  for (std::uint32_t depth = before.longest + 1; depth-- > 0;) {
    const std::uint32_t context = before.contexts[depth];
    next.contexts[depth + 1] = none;
    if (context == none) continue;
    const Region& region = layout_.entries[shape_.widths.front() - depth];
    const std::uint64_t at = find<own_bits>(region, context - layout_.starts[depth], word);
    const double stored = at == no_position ? absent : probability_at<own_bits>(region, at);
    if (at == no_position || (depth == 0 && stored == absent)) {
      if (!known) weight *= usable_weight(weight_of<own_bits>(context, depth));
      continue;
    }
    if (!known) p = weight * usable_probability(stored);
    known = true;
    if (!region.has_weight || std::signbit(weight_at<own_bits>(region, at))) continue;
    next.contexts[depth + 1] = static_cast<std::uint32_t>(region.first_own + at);
    next.longest = std::max(next.longest, depth + 1);
  }
  before = next;
  return known ? p : weight * uniform_base(word);
}

void BackoffTable::read_compact(std::uint32_t context, std::span<const std::uint32_t> words, double* out) const {
  Suffixes suffixes = suffixes_of(context);
  for (std::size_t i = 0; i < words.size(); ++i) out[i] = std::log(read_after(suffixes, words[i]));
}

// Scores sentences in lanes. A word is looked up after all contexts of its lane at once, in steps: where it stands
// where their rows lie, where these lie, which half of them it must be among, and so on, and the few rows that are
// left. What a step reads has been asked for a step before, so that the other lanes fill the time that it takes to
// come.
class BackoffTable::CompactScorer {
 public:
  CompactScorer(const BackoffTable& table, std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                std::uint32_t start, std::uint32_t end, double* out)
      : table_(table), deepest_(table.shape_.widths.front()), ids_(ids), starts_(starts), end_(end), out_(out) {
    for (std::uint32_t depth = 0; depth <= deepest_; ++depth) regions_[depth] = table.layout_.entries[deepest_ - depth];
    if (deepest_ == 0 || start >= table.shape_.outcomes) return;
    const double weight = table.weight_at<own_bits>(regions_[0], start);
    if (table.probability_at<own_bits>(regions_[0], start) == absent || std::signbit(weight)) return;
    first_.longest = 1;
    first_.after[1] = {start, usable_weight(weight), 0, 0};
  }

  void run() {
    std::array<Lane, lanes> all;
    std::size_t active = 0;
    while (active < lanes && next_sentence(all[active])) ++active;
    while (active > 0) {
      for (std::size_t i = 0; i < active; ++i) fetch_ranges(all[i].chain);
      searches_.clear();
      for (std::size_t i = 0; i < active; ++i) fetch_rows(all[i]);
      while (!searches_.empty()) halve_ranges();
      for (std::size_t i = 0; i < active; ++i) {
        look_up(all[i]);
        if (!next_word(all[i])) all[i--] = all[--active];
      }
    }
    const std::size_t sentences = starts_.size() - 1;
    const std::uint64_t events = starts_.back() - starts_.front() + (end_ == none ? 0 : sentences);
    for (std::uint64_t i = 0; i < events; ++i) out_[i] = std::log(out_[i]);
  }

 private:
  static constexpr std::size_t lanes = 24;
  static constexpr std::uint64_t few_rows = 8;  // they lie in a line of the caches, or two

  // One context of a chain.
  struct After {
    std::uint64_t context = no_position;  // its position
    double weight = 1;
    std::uint64_t from = 0, to = 0;  // the rows that go on from it
  };
  struct Chain {
    std::uint32_t longest = 0;
    std::array<After, max_columns + 1> after;  // by the number of words, from one to the longest

    Chain() = default;
    Chain(const Chain& other) { *this = other; }
    Chain& operator=(const Chain& other) {
      longest = other.longest;
      std::copy_n(other.after.begin(), longest + 1, after.begin());
      return *this;
    }
  };
  // A sentence that is read, and the word that is looked up.
  struct Lane {
    const std::uint32_t* word = nullptr;  // the next one
    const std::uint32_t* stop = nullptr;  // behind the last one of the sentence
    double* out = nullptr;
    bool ends = false;  // the end of the sentence is still to be scored
    std::uint32_t current = 0;
    Chain chain;
  };

  // A word that is looked for among many rows.
  struct Search {
    const Region* region;
    After* after;
    std::uint32_t word;
  };

  const std::uint32_t* index_of(const Region& region) const { return table_.arrays_.index + region.index; }
  void prefetch_row(const Region& region, std::uint64_t position) const {
    prefetch(table_.arrays_.slots + (region.row(position) >> 3));
  }

  void fetch_ranges(const Chain& chain) const {
    for (std::uint32_t depth = 1; depth <= chain.longest; ++depth) {
      const After& after = chain.after[depth];
      if (after.context == no_position) continue;
      const Region& region = regions_[depth];
      prefetch(region.ranges.bits_place(index_of(region), after.context));
    }
  }

  void fetch_rows(Lane& lane) {
    for (std::uint32_t depth = 1; depth <= lane.chain.longest; ++depth) {
      After& after = lane.chain.after[depth];
      if (after.context == no_position) continue;
      const Region& region = regions_[depth];
      std::tie(after.from, after.to) = region.ranges.range(index_of(region), after.context);
      if (fetch_middle(region, after)) searches_.push_back({&region, &after, lane.current});
    }
  }

  // Asks for what a search reads next; true if that is the middle of many rows.
  bool fetch_middle(const Region& region, const After& after) const {
    if (after.to - after.from > few_rows) {
      prefetch_row(region, after.from + (after.to - after.from) / 2);
      return true;
    }
    prefetch_row(region, after.from);
    prefetch_row(region, after.to);
    return false;
  }

  // Of each range of many rows, leaves the half that the word must be in.
  void halve_ranges() {
    std::size_t kept = 0;
    for (const Search& search : searches_) {
      After& after = *search.after;
      const std::uint64_t middle = after.from + (after.to - after.from) / 2;
      (table_.last_of(*search.region, middle) <= search.word ? after.from : after.to) = middle;
      if (fetch_middle(*search.region, after)) searches_[kept++] = search;
    }
    searches_.resize(kept);
  }

  // Scores the current word, and finds the contexts that come next.
  void look_up(Lane& lane) const {
    Chain& chain = lane.chain;
    const std::uint32_t word = lane.current, longest = chain.longest;
    double weight = 1, p = 0;
    bool known = false;
    std::uint32_t next = 0;
    for (std::uint32_t depth = longest; depth > 0; --depth) {
      const After after = chain.after[depth];
      After& longer = chain.after[depth + 1];
      longer.context = no_position;
      if (after.context == no_position) continue;
      const Region& region = regions_[depth];
      const std::uint64_t at = table_.find_sorted(region, after.from, after.to, word);
      if (at == no_position) {
        if (!known) weight *= after.weight;
        continue;
      }
      if (!known) p = weight * usable_probability(table_.probability_at<own_bits>(region, at));
      known = true;
      if (go_on(depth, at, longer)) next = std::max(next, depth + 1);
    }
    const Region& unigrams = regions_[0];
    const double stored = word < unigrams.rows ? table_.probability_at<own_bits>(unigrams, word) : absent;
    chain.after[1].context = no_position;
    if (stored != absent) {
      if (!known) p = weight * usable_probability(stored);
      if (go_on(0, word, chain.after[1])) next = std::max(next, 1u);
    } else if (!known) {
      p = weight * usable_weight(table_.shape_.empty_weight) * table_.uniform_base(word);
    }
    chain.longest = next;
    *lane.out++ = p;
  }

  // Makes a row with so many words before it the context that comes next, if it is one.
  bool go_on(std::uint32_t depth, std::uint64_t row, After& after) const {
    const Region& region = regions_[depth];
    if (!region.has_weight) return false;
    const double weight = table_.weight_at<own_bits>(region, row);
    if (std::signbit(weight)) return false;
    after.context = row;
    after.weight = usable_weight(weight);
    const Region& longer = regions_[depth + 1];
    prefetch(longer.ranges.sample_place(index_of(longer), row));
    return true;
  }

  bool next_word(Lane& lane) {
    if (lane.word < lane.stop) {
      lane.current = *lane.word++;
    } else if (lane.ends) {
      lane.current = end_;
      lane.ends = false;
    } else {
      return next_sentence(lane);
    }
    return true;
  }

  bool next_sentence(Lane& lane) {
    while (sentence_ + 1 < starts_.size()) {
      const std::uint64_t from = starts_[sentence_], to = starts_[sentence_ + 1];
      lane.word = ids_.data() + from;
      lane.stop = ids_.data() + to;
      lane.out = out_ + (from - starts_[0]) + (end_ == none ? 0 : sentence_);
      lane.ends = end_ != none;
      lane.chain = first_;
      ++sentence_;
      if (lane.word == lane.stop && !lane.ends) continue;
      return next_word(lane);
    }
    return false;
  }

  const BackoffTable& table_;
  const std::uint32_t deepest_;
  const std::span<const std::uint32_t> ids_;
  const std::span<const std::uint64_t> starts_;
  const std::uint32_t end_;
  double* const out_;
  Chain first_;  // the contexts at the start of a sentence
  std::vector<Search> searches_;
  std::size_t sentence_ = 0;                 // the next one
  std::array<Region, max_columns> regions_;  // by the number of words before
};

void BackoffTable::score_compact(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                                 std::uint32_t start, std::uint32_t end, double* out) const {
  CompactScorer(*this, ids, starts, start, end, out).run();
}

}  // namespace treelm
