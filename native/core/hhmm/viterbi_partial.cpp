// The best partial derivations after each word: k best paths through the stacks that the beam kept.
#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "hhmm/viterbi.h"

namespace treelm {

// A derivation of a stack: its last move, and which of the ways to the stack before it goes on from.
struct StackViterbi::Way {
  double value;
  std::size_t back;
  std::uint32_t rank_before;
};

// Begins again with a word after which no stack was left: its tags weigh together 1.
void StackViterbi::read_again(std::span<const Emission> word, std::vector<Item>& items) {
  threshold_ = 0;
  candidates_.clear();
  read_first(word);
  const std::int32_t row = grammar_.row(1, 0);
  if (candidates_.empty() && row >= 0) {
    std::vector<Emission> any;
    for (const std::uint32_t symbol : grammar_.row_view(row).symbols)
      if (grammar_.is_tag(symbol) && symbol != grammar_.end()) any.push_back({symbol, 1.0});
    read_first(any);
  }
  double sum = 0;
  for (const Candidate& each : candidates_) sum += each.value;
  for (Candidate& each : candidates_) each.value /= sum;
  log_scale_ = 0;
  settle(items);
}

StackViterbi::Ways StackViterbi::ways_of(const std::vector<Item>& items, const std::vector<Item>* before,
                                         const Ways* ways_before, std::size_t count) const {
  const auto worse = [](const Way& a, const Way& b) {
    return a.value != b.value ? a.value < b.value : a.back > b.back;
  };
  Ways found(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::vector<Way> first;
    for (std::size_t back = items[i].first_back; back < items[i].first_back + items[i].backs; ++back)
      first.push_back({backs_[back].value, back, 0});
    std::priority_queue<Way, std::vector<Way>, decltype(worse)> queue(worse, std::move(first));
    while (!queue.empty() && found[i].size() < count) {
      const Way way = queue.top();
      queue.pop();
      found[i].push_back(way);
      if (!before) continue;  // the first word: nothing comes before it
      const Back& back = backs_[way.back];
      const std::vector<Way>& earlier = (*ways_before)[back.from];
      const std::uint32_t next = way.rank_before + 1;
      if (next < earlier.size())
        queue.push({back.value * (earlier[next].value / (*before)[back.from].value), way.back, next});
    }
  }
  return found;
}

PartialParses StackViterbi::partial_parses(std::span<const std::vector<Emission>> words, std::size_t count) {
  begin();
  ways_ = count;
  std::vector<std::vector<Item>> items;
  std::vector<Ways> ways;
  std::vector<double> scales;
  std::vector<std::size_t> firsts;           // by word: the one with which derivations begin
  std::vector<std::vector<double>> ordered;  // by word: the values of all derivations
  struct End {
    double value;
    std::uint64_t id;
  };
  const auto history = [&](std::size_t t, const End& end, double log_prob) {
    StackHistory found;
    found.log_prob = log_prob;
    found.first = firsts[t];
    found.steps.resize(t + 1 - found.first);
    std::uint64_t id = end.id;
    for (std::size_t at = t;; --at) {
      const std::size_t place = id / count;
      const Way& way = ways[at][place][id % count];
      const auto equal = std::lower_bound(ordered[at].begin(), ordered[at].end(), way.value, std::greater<>());
      found.steps[at - found.first] = {id, static_cast<std::uint64_t>(equal - ordered[at].begin()),
                                       std::log(way.value) + scales[at], backs_[way.back].move};
      if (at == found.first) return found;
      id = backs_[way.back].from * count + way.rank_before;
    }
  };
  const auto best_of = [&](std::vector<End>& ends) {
    const std::size_t size = std::min(count, ends.size());
    std::partial_sort(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(size), ends.end(),
                      [](const End& a, const End& b) { return a.value != b.value ? a.value > b.value : a.id < b.id; });
    ends.resize(size);
  };
  PartialParses found;
  for (std::size_t t = 0; t < words.size(); ++t) {
    read(words[t], items);
    const bool begins = t == 0 || items.back().empty();
    if (items.back().empty()) read_again(words[t], items.back());
    firsts.push_back(begins ? t : firsts.back());
    scales.push_back(log_scale_);
    ways.push_back(ways_of(items[t], begins ? nullptr : &items[t - 1], begins ? nullptr : &ways[t - 1], count));
    ordered.emplace_back();
    std::vector<End> ends;
    for (std::size_t place = 0; place < ways[t].size(); ++place)
      for (std::size_t rank = 0; rank < ways[t][place].size(); ++rank) {
        ends.push_back({ways[t][place][rank].value, place * count + rank});
        ordered[t].push_back(ends.back().value);
      }
    std::sort(ordered[t].begin(), ordered[t].end(), std::greater<>());
    best_of(ends);
    found.words.emplace_back();
    for (const End& end : ends) found.words[t].push_back(history(t, end, std::log(end.value) + log_scale_));
  }
  if (items.empty()) return found;
  std::vector<End> ends;
  const std::size_t last = items.size() - 1;
  find_ends(items[last], [&](std::uint32_t place, double value) {
    for (std::size_t rank = 0; rank < ways[last][place].size(); ++rank)
      ends.push_back({ways[last][place][rank].value * value, place * count + rank});
  });
  best_of(ends);
  for (const End& end : ends) found.whole.push_back(history(last, end, std::log(end.value) + log_scale_));
  return found;
}

}  // namespace treelm
