#include "hhmm/plans.h"

#include <algorithm>
#include <limits>

#include "base/random.h"

namespace treelm {

namespace {

// Kept plans list outcomes down to this share of what was asked for, so that they serve the next time too.
constexpr double margin = 1.0 / 16;
// Rounding must not leave out what just reaches a threshold.
constexpr double careful = 1 - 1e-9;

constexpr double without_end = std::numeric_limits<double>::infinity();

template <class T>
std::size_t bytes_of(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

std::uint64_t plan_hash(std::int32_t row, std::uint32_t active) {
  return mix64(std::uint64_t{active} << 32 | static_cast<std::uint32_t>(row));
}

std::uint64_t cross_hash(std::uint32_t level, std::uint32_t awaited, std::uint32_t active) {
  return mix64((std::uint64_t{active} << 32 | awaited) + level);
}

}  // namespace

const double* ScatteredRow::of(std::int32_t row) {
  if (row_ == row) return values_.data();
  if (row_ >= 0)
    for (const std::uint32_t symbol : grammar_.row_view(row_).symbols) values_[symbol] = 0;
  row_ = row;
  if (row < 0) return values_.data();
  const auto [symbols, values] = grammar_.row_view(row);
  for (std::size_t i = 0; i < symbols.size(); ++i) values_[symbols[i]] = values[i];
  return values_.data();
}

WordPlans::WordPlans(const HhmmGrammar& grammar, ScatteredRow& progeny)
    : grammar_(grammar), progeny_(progeny), view_(grammar) {}

void WordPlans::show(std::span<const Emission> emissions) {
  view_.show(emissions);
  places_.clear();
  cross_places_.clear();
  plans_.clear();
  cross_plans_.clear();
  outcomes_.clear();
  tops_.clear();
  rights_.clear();
}

std::size_t WordPlans::bytes() const {
  return sizeof(*this) + view_.bytes() + places_.bytes() + cross_places_.bytes() + bytes_of(plans_) +
         bytes_of(cross_plans_) + bytes_of(outcomes_) + bytes_of(tops_) + bytes_of(rights_);
}

std::uint32_t WordPlans::find(std::int32_t row, std::uint32_t active, std::uint32_t level, double weight) {
  std::uint32_t found = places_.find(plan_hash(row, active), [&](std::uint32_t each) {
    return plans_[each].row == row && plans_[each].active == active && plans_[each].level == level;
  });
  if (found == HashedPlaces::none) {
    found = static_cast<std::uint32_t>(plans_.size());
    Plan& made = plans_.emplace_back();
    made.row = row;
    made.active = active;
    made.level = level;
    made.expected = grammar_.progeny(row, active);
    places_.add(found, [&](std::uint32_t each) { return plan_hash(plans_[each].row, plans_[each].active); });
  }
  Plan& plan = plans_[found];
  const double share = plan.expected > 0 ? weight / plan.expected : 0.0;
  plan.largest_share = plan.step == step_ ? std::max(plan.largest_share, share) : share;
  plan.step = step_;
  return found;
}

const WordPlans::Plan& WordPlans::made(std::uint32_t place, double threshold) {
  Plan& plan = plans_[place];
  const double cut = plan.largest_share > 0 ? careful * threshold / plan.largest_share : 0.0;
  if (!plan.made || cut < plan.cut) make(plan, plan.made ? cut * margin : cut);
  return plan;
}

void WordPlans::make(Plan& plan, double cut) {
  plan.made = true;
  plan.cut = cut;
  plan.total = plan.largest = 0;
  plan.first = static_cast<std::uint32_t>(outcomes_.size());
  plan.first_top = static_cast<std::uint32_t>(tops_.size());
  plan.size = plan.tops = 0;
  if (plan.row < 0) return;
  const double* expected = progeny(plan.row);
  for (const WordView::Rule& rule : view_.left_rules(plan.level, plan.active)) {
    const double parents = expected[rule.parent];
    if (parents == 0) continue;
    plan.total += parents * rule.sum;
    if (rule.right < 0) {
      if (tops_.size() > plan.first_top && tops_.back().tag == rule.parent)
        tops_.back().value += parents * rule.sum;
      else
        tops_.push_back({rule.parent, parents * rule.sum});
      continue;
    }
    const double likeliest = parents * rule.largest;
    plan.largest = std::max(plan.largest, likeliest);
    if (likeliest < cut) continue;
    const double share = parents * rule.value;
    for (const auto& [tag, emitted] : view_.row_emissions(rule.right))
      if (share * emitted >= cut) outcomes_.push_back({share * emitted, rule.pair, tag});
  }
  plan.size = static_cast<std::uint32_t>(outcomes_.size()) - plan.first;
  plan.tops = static_cast<std::uint32_t>(tops_.size()) - plan.first_top;
  std::sort(outcomes_.begin() + plan.first, outcomes_.end(),
            [](const Outcome& a, const Outcome& b) { return a.value > b.value; });
  std::sort(tops_.begin() + plan.first_top, tops_.end(),
            [](const Emission& a, const Emission& b) { return a.value > b.value; });
  if (plan.tops > 0) plan.largest = std::max(plan.largest, tops_[plan.first_top].value);
}

std::uint32_t WordPlans::find_cross(std::uint32_t level, std::uint32_t awaited, std::uint32_t active) {
  const std::uint32_t known = cross_places_.find(cross_hash(level, awaited, active), [&](std::uint32_t each) {
    const CrossPlan& plan = cross_plans_[each];
    return plan.awaited == awaited && plan.active == active && plan.level == level;
  });
  if (known != HashedPlaces::none) return known;
  CrossPlan made;
  made.awaited = awaited;
  made.active = active;
  made.level = level;
  make(made);
  cross_plans_.push_back(made);
  const auto place = static_cast<std::uint32_t>(cross_plans_.size()) - 1;
  cross_places_.add(place, [&](std::uint32_t each) {
    return cross_hash(cross_plans_[each].level, cross_plans_[each].awaited, cross_plans_[each].active);
  });
  return place;
}

void WordPlans::make(CrossPlan& plan) {
  plan.first = static_cast<std::uint32_t>(rights_.size());
  const auto [first, last] = grammar_.by_parent(plan.awaited, plan.active);
  const double* values = grammar_.cross_values(plan.level);
  double tags = 0;
  for (std::size_t rule = first; rule < last; ++rule) {
    const std::uint32_t right = grammar_.cross_right(rule);
    if (values[rule] == 0 || !view_.emits(plan.level, right)) continue;
    if (grammar_.is_tag(right)) {
      tags += values[rule] * view_.tag_value(right);
      rights_.push_back({without_end, values[rule], right, -1});
      continue;
    }
    const std::int32_t row = grammar_.row(plan.level + 1, right);
    const double reach = values[rule] * view_.largest_emission(row);
    rights_.push_back({reach, values[rule], right, row});
    plan.largest = std::max(plan.largest, reach);
    for (const auto& [tag, emitted] : view_.row_emissions(row)) plan.total += values[rule] * emitted;
  }
  plan.total += tags;
  plan.largest = std::max(plan.largest, tags);
  plan.size = static_cast<std::uint32_t>(rights_.size()) - plan.first;
  std::sort(rights_.begin() + plan.first, rights_.end(),
            [](const Right& a, const Right& b) { return a.reach > b.reach; });
}

// -- WordMemo -----------------------------------------------------------------------------------------------------

WordPlans& WordMemo::turn_to(std::span<const Emission> emissions) {
  ++asked_;
  unkept_.show(emissions);
  unkept_.begin_step();
  return unkept_;
}

WordPlans& WordMemo::turn_to(std::uint32_t word) {
  if (seen_.empty()) seen_.assign(grammar_.words(), 0);
  weigh();
  const auto known = places_.find(word);
  if (known != places_.end()) {
    ++asked_;
    ++found_;
    entries_.splice(entries_.begin(), entries_, known->second);
    WordPlans& plans = entries_.front().plans;
    plans.begin_step();
    return plans;
  }
  if (!seen_[word] || capacity_ == 0) {
    seen_[word] = 1;
    return turn_to(grammar_.emissions(word));
  }
  ++asked_;
  entries_.push_front({word, 0, WordPlans(grammar_, progeny_)});
  places_.emplace(word, entries_.begin());
  WordPlans& plans = entries_.front().plans;
  plans.show(grammar_.emissions(word));
  plans.begin_step();
  return plans;
}

// The word of the last step has grown; forgets what no longer fits.
void WordMemo::weigh() {
  if (entries_.empty()) return;
  Entry& latest = entries_.front();
  bytes_ -= latest.bytes;
  latest.bytes = latest.plans.bytes();
  bytes_ += latest.bytes;
  while (bytes_ > capacity_ && !entries_.empty()) {
    bytes_ -= entries_.back().bytes;
    places_.erase(entries_.back().word);
    entries_.pop_back();
  }
}

}  // namespace treelm
