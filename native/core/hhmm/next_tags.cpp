#include "hhmm/next_tags.h"

#include <algorithm>

#include "base/random.h"

namespace treelm {

namespace {

std::uint64_t look_hash(std::uint32_t level, std::uint32_t awaited, std::uint32_t active) {
  return mix64((std::uint64_t{active} << 32 | awaited) ^ std::uint64_t{level} << 58);
}

}  // namespace

NextTags::NextTags(const HhmmGrammar& grammar, std::size_t bytes)
    : grammar_(grammar),
      tags_(grammar.symbols() - grammar.phrasal()),
      most_(std::max<std::size_t>(1024, bytes / (sizeof(double) * tags_ + sizeof(Look)))) {}

void NextTags::weigh(std::span<const double> factors) {
  factors_ = factors;
  ++stamp_;
}

std::span<const double> NextTags::shares(std::uint32_t level, std::uint32_t awaited, std::uint32_t active) {
  return {shares_.data() + find(level, awaited, active) * tags_, tags_};
}

std::span<const double> NextTags::first_shares() {
  if (first_.empty()) {
    first_.assign(tags_, 0.0);
    add_row(grammar_.row(1, 0), 1.0, first_.data());
  }
  return first_;
}

double NextTags::first_sum() { return weighed(first_shares()); }

double NextTags::sum(std::uint32_t level, std::uint32_t awaited, std::uint32_t active) {
  const std::size_t place = find(level, awaited, active);
  Look& look = looks_[place];
  if (look.stamp != stamp_) {
    look.stamp = stamp_;
    look.sum = weighed({shares_.data() + place * tags_, tags_});
  }
  return look.sum;
}

double NextTags::weighed(std::span<const double> shares) const {
  // Four sums at once: none waits for the one before.
  double sums[4] = {0, 0, 0, 0};
  std::size_t tag = 0;
  for (; tag + 4 <= tags_; tag += 4)
    for (std::size_t i = 0; i < 4; ++i) sums[i] += shares[tag + i] * factors_[tag + i];
  for (; tag < tags_; ++tag) sums[0] += shares[tag] * factors_[tag];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

std::uint32_t NextTags::find(std::uint32_t level, std::uint32_t awaited, std::uint32_t active) {
  const auto is_it = [&](std::uint32_t each) {
    return looks_[each].active == active && looks_[each].awaited == awaited && looks_[each].level == level;
  };
  const std::uint32_t known = places_.find(look_hash(level, awaited, active), is_it);
  if (known != HashedPlaces::none) return known;
  if (looks_.size() >= most_) {
    looks_.clear();
    shares_.clear();
    places_.clear();
    places_.find(look_hash(level, awaited, active), is_it);
  }
  const auto place = static_cast<std::uint32_t>(looks_.size());
  looks_.push_back({level, awaited, active, 0, 0.0});
  shares_.resize(looks_.size() * tags_, 0.0);
  places_.add(place, [&](std::uint32_t each) {
    return look_hash(looks_[each].level, looks_[each].awaited, looks_[each].active);
  });
  add(level, awaited, active, shares_.data() + place * tags_);
  return place;
}

void NextTags::add(std::uint32_t level, std::uint32_t awaited, std::uint32_t active, double* out) {
  const std::int32_t row = grammar_.row(level, awaited);
  const double expected = grammar_.progeny(row, active);
  if (!(expected > 0)) return;
  if (awaited_.empty()) awaited_.assign(grammar_.symbols(), 0.0);
  const auto cross = grammar_.by_parent(awaited, active);
  for (std::size_t place = cross.first; place < cross.last; ++place)
    await(grammar_.cross_right(place), grammar_.cross_values(level - 1)[place] / expected);
  add_awaited(level, out);
  if (level > grammar_.depth()) return;
  const double* values = grammar_.left_values(level);
  const auto parents = grammar_.left_parents(active);
  for (std::size_t i = 0; i + 1 < parents.size(); ++i) {
    const double number = grammar_.progeny(row, parents[i].symbol) / expected;
    if (number == 0) continue;
    for (std::size_t rule = parents[i].first; rule < parents[i + 1].first; ++rule)
      await(grammar_.left_right(rule), number * values[rule]);
  }
  add_awaited(level + 1, out);
}

void NextTags::await(std::uint32_t symbol, double mass) {
  if (!(mass > 0)) return;
  if (awaited_[symbol] == 0) touched_.push_back(symbol);
  awaited_[symbol] += mass;
}

// What is awaited is a tag, or has tags below it at a level.
void NextTags::add_awaited(std::uint32_t level, double* out) {
  for (const std::uint32_t symbol : touched_) {
    if (grammar_.is_tag(symbol))
      out[symbol - grammar_.phrasal()] += awaited_[symbol];
    else
      add_row(grammar_.row(level, symbol), awaited_[symbol], out);
    awaited_[symbol] = 0;
  }
  touched_.clear();
}

void NextTags::add_row(std::int32_t row, double mass, double* out) const {
  if (row < 0) return;
  const auto [symbols, values] = grammar_.row_view(row);
  const auto first = std::lower_bound(symbols.begin(), symbols.end(), grammar_.phrasal()) - symbols.begin();
  for (auto i = static_cast<std::size_t>(first); i < symbols.size(); ++i)
    out[symbols[i] - grammar_.phrasal()] += mass * values[i];
}

}  // namespace treelm
