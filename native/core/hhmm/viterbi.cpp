#include "hhmm/viterbi.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/interrupt.h"

namespace treelm {

namespace {

constexpr double tie = 1e-12;

template <class C>
auto target(const C& each) {
  return std::tie(each.tail, each.active, each.awaited, each.top);
}

}  // namespace

StackViterbi::StackViterbi(const HhmmGrammar& grammar, std::size_t beam)
    : grammar_(grammar), beam_(beam == 0 ? std::numeric_limits<std::size_t>::max() / 16 : beam), word_(grammar) {}

// Probabilities tie if their logarithms do, up to rounding.
double StackViterbi::tolerance() const { return 1 - tie * std::max(1.0, std::abs(log_scale_)); }

void StackViterbi::begin() {
  tails_.assign(1, {0, 0, 0, 0});
  children_.assign(1, {});
  backs_.clear();
  log_scale_ = 0;
}

void StackViterbi::read_first(std::span<const Emission> word) {
  for (const auto& [tag, value] : word)
    add({grammar_.progeny(grammar_.row(1, 0), tag) * value,
         0,
         no_symbol,
         no_symbol,
         tag,
         {0, {StackMove::Kind::start, no_symbol, no_symbol, tag}}});
}

// Adds the stacks after one more word.
void StackViterbi::read(std::span<const Emission> word, std::vector<std::vector<Item>>& items) {
  word_.show(word);
  candidates_.clear();
  threshold_ = 0;
  if (items.empty()) {
    read_first(word);
  } else {
    const std::vector<Item>& before = items.back();
    for (std::uint32_t i = 0; i < before.size(); ++i) {
      poll_interrupt();
      expand(before[i], i);
    }
  }
  items.emplace_back();
  settle(items.back());
}

StackParse StackViterbi::parse(std::span<const std::vector<Emission>> words) {
  begin();
  ways_ = 0;
  StackParse found;
  found.log_prob = -std::numeric_limits<double>::infinity();
  std::vector<std::vector<Item>> items;
  for (const std::vector<Emission>& word : words) {
    read(word, items);
    if (items.back().empty()) return found;
  }
  if (items.empty()) return found;
  std::vector<std::pair<double, std::uint32_t>> ends;
  double best = 0;
  find_ends(items.back(), [&](std::uint32_t place, double value) {
    ends.emplace_back(items.back()[place].value * value, place);
    best = std::max(best, ends.back().first);
  });
  if (!(best > 0)) return found;
  found.log_prob = std::log(best) + log_scale_;
  std::vector<std::uint32_t> finals;
  for (const auto& [value, place] : ends)
    if (value >= best * tolerance()) finals.push_back(place);
  collect(items, finals, found);
  return found;
}

void StackViterbi::expand(const Item& item, std::uint32_t place) {
  const Tail tail = tails_[item.tail];
  const std::uint32_t level = tail.depth + 1;
  const std::int32_t row = grammar_.row(level, tail.awaited);
  const double expected = grammar_.progeny(row, item.top);
  if (!(expected > 0)) return;
  const double share = item.value / expected;
  if (level <= grammar_.depth()) {
    for (const WordView::Parent& parent : word_.parents(word_.find_parents(level, item.top))) {
      const double parents = grammar_.progeny(row, parent.symbol);
      if (parents == 0) continue;
      const double* values = grammar_.left_values(level);
      for (std::uint32_t rule = parent.first; rule < parent.last; ++rule) {
        const std::uint32_t right = grammar_.left_right(rule);
        const double emitted =
            rule < parent.tags ? word_.largest_emission(grammar_.left_rows(level)[rule]) : word_.tag_value(right);
        if (emitted > 0 && share * parents * (values[rule] * emitted) >= threshold_)
          emit(item.tail, parent.symbol, share * parents * values[rule],
               {place, {StackMove::Kind::within, parent.symbol, right, no_symbol}});
      }
    }
  }
  if (level < 2) return;
  const auto [first, last] = grammar_.by_parent(tail.awaited, item.top);
  for (std::size_t rule = first; rule < last; ++rule) {
    const double value = grammar_.cross_values(level - 1)[rule];
    if (value > 0)
      emit(tail.parent, tail.active, share * value,
           {place, {StackMove::Kind::across, tail.awaited, grammar_.cross_right(rule), no_symbol}});
  }
}

void StackViterbi::emit(std::uint32_t tail, std::uint32_t active, double value, Back back) {
  const std::uint32_t awaited = back.move.awaited;
  if (grammar_.is_tag(awaited)) {
    back.move.tag = awaited;
    add({value * word_.tag_value(awaited), tail, no_symbol, no_symbol, active, back});
    return;
  }
  for (const auto& [tag, share] : word_.row_emissions(grammar_.row(tails_[tail].depth + 2, awaited))) {
    back.move.tag = tag;
    add({value * share, tail, active, awaited, tag, back});
  }
}

void StackViterbi::add(const Candidate& candidate) {
  if (!(candidate.value > 0) || candidate.value < threshold_) return;
  candidates_.push_back(candidate);
  if (candidates_.size() >= std::max<std::size_t>(4096, 8 * beam_)) compact();
}

// Keeps for each stack the best ways to come to it, and the best stacks.
void StackViterbi::compact() {
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    if (target(a) != target(b)) return target(a) < target(b);
    if (a.value != b.value) return a.value > b.value;
    return std::tie(a.back.from, a.back.move.kind, a.back.move.parent, a.back.move.awaited) <
           std::tie(b.back.from, b.back.move.kind, b.back.move.parent, b.back.move.awaited);
  });
  std::vector<double> best;
  std::size_t kept = 0, same = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const bool first = i == 0 || target(candidates_[i]) != target(candidates_[kept - 1]);
    if (first) {
      best.push_back(candidates_[i].value);
      same = 0;
    }
    if (same++ < ways_ || candidates_[i].value >= best.back() * tolerance()) candidates_[kept++] = candidates_[i];
  }
  candidates_.resize(kept);
  if (best.size() <= beam_) return;
  std::nth_element(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(beam_) - 1, best.end(), std::greater<>());
  threshold_ = std::max(threshold_, best[beam_ - 1] * tolerance());
  std::erase_if(candidates_, [this](const Candidate& each) { return each.value < threshold_; });
}

void StackViterbi::settle(std::vector<Item>& items) {
  compact();
  double largest = 0;
  for (const Candidate& each : candidates_) largest = std::max(largest, each.value);
  if (largest > 0) log_scale_ += std::log(largest);
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& each = candidates_[i];
    if (i == 0 || target(each) != target(candidates_[i - 1]))
      items.push_back({each.value / largest, tail_of(each), each.top, backs_.size(), 0});
    backs_.push_back(each.back);
    backs_.back().value = each.value / largest;
    ++items.back().backs;
  }
}

std::uint32_t StackViterbi::tail_of(const Candidate& candidate) {
  if (candidate.active == no_symbol) return candidate.tail;
  for (const std::uint32_t child : children_[candidate.tail])
    if (tails_[child].active == candidate.active && tails_[child].awaited == candidate.awaited) return child;
  const auto made = static_cast<std::uint32_t>(tails_.size());
  tails_.push_back({candidate.tail, candidate.active, candidate.awaited, tails_[candidate.tail].depth + 1});
  children_.emplace_back();
  children_[candidate.tail].push_back(made);
  return made;
}

void StackViterbi::collect(const std::vector<std::vector<Item>>& items, const std::vector<std::uint32_t>& finals,
                           StackParse& found) const {
  // Depth first, from the last word to the first; `choice` is the next way back to try at each word.
  std::vector<StackMove> moves(items.size());
  for (const std::uint32_t final : finals) {
    std::vector<std::uint32_t> place(items.size());
    std::vector<std::size_t> choice(items.size(), 0);
    std::size_t t = items.size() - 1;
    place[t] = final;
    while (found.derivations.size() < most_tied_derivations) {
      const Item& item = items[t][place[t]];
      if (choice[t] == item.backs) {
        choice[t] = 0;
        if (t + 1 == items.size()) break;
        ++t;
        continue;
      }
      const Back& back = backs_[item.first_back + choice[t]++];
      moves[t] = back.move;
      if (t == 0)
        found.derivations.push_back(moves);
      else
        place[--t] = back.from;
    }
  }
}

}  // namespace treelm
