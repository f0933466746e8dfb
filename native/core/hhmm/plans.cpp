#include "hhmm/plans.h"

#include <algorithm>

#include "base/random.h"

namespace treelm {

namespace {

// Kept plans list symbols down to this share of what was asked for, so that they serve the next time too.
constexpr double margin = 1.0 / 16;
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
  made_.clear();
  tops_.clear();
  rights_.clear();
}

std::size_t WordPlans::bytes() const {
  return sizeof(*this) + view_.bytes() + places_.bytes() + cross_places_.bytes() + bytes_of(plans_) +
         bytes_of(cross_plans_) + bytes_of(made_) + bytes_of(tops_) + bytes_of(rights_);
}

std::uint32_t WordPlans::find(std::int32_t row, std::uint32_t active, std::uint32_t level) {
  const std::uint32_t known = places_.find(plan_hash(row, active), [&](std::uint32_t each) {
    return plans_[each].row == row && plans_[each].active == active && plans_[each].level == level;
  });
  if (known != HashedPlaces::none) return known;
  const auto place = static_cast<std::uint32_t>(plans_.size());
  Plan& made = plans_.emplace_back();
  made.row = row;
  made.active = active;
  made.level = level;
  make(made);
  places_.add(place, [&](std::uint32_t each) { return plan_hash(plans_[each].row, plans_[each].active); });
  return place;
}

void WordPlans::make(Plan& plan) {
  plan.expected = grammar_.progeny(plan.row, plan.active);
  if (!(plan.expected > 0) || plan.level > grammar_.depth()) return;
  const double* expected = progeny(plan.row);
  plan.parents = view_.find_parents(plan.level, plan.active);
  for (const WordView::Parent& parent : view_.parents(plan.parents)) {
    const double parents = expected[parent.symbol];
    plan.total += parents * parent.sum;
    plan.largest = std::max(plan.largest, parents * parent.largest);
    plan.largest_top = std::max(plan.largest_top, parents * parent.tag_sum);
  }
}

void WordPlans::list(std::uint32_t place, double cut) {
  Plan& plan = plans_[place];
  if (plan.listed && plan.cut <= cut) return;
  if (plan.listed) cut *= margin;
  plan.listed = true;
  plan.cut = cut;
  plan.first = static_cast<std::uint32_t>(made_.size());
  plan.first_top = static_cast<std::uint32_t>(tops_.size());
  plan.size = plan.tops = 0;
  if (!(plan.total > 0)) return;
  const double* expected = progeny(plan.row);
  const double* values = grammar_.left_values(plan.level);
  const auto parents = view_.parents(plan.parents);
  for (std::uint32_t i = 0; i < parents.size(); ++i) {
    const double number = expected[parents[i].symbol];
    if (number * parents[i].tag_sum > 0) {
      double sum = 0;
      for (std::uint32_t rule = parents[i].tags; rule < parents[i].last; ++rule)
        sum += number * (values[rule] * view_.tag_value(grammar_.left_right(rule)));
      tops_.push_back({parents[i].symbol, sum});
    }
    const double reach = number * parents[i].largest;
    if (reach > 0 && reach >= cut) made_.push_back({reach, number, i});
  }
  plan.size = static_cast<std::uint32_t>(made_.size()) - plan.first;
  plan.tops = static_cast<std::uint32_t>(tops_.size()) - plan.first_top;
  std::sort(made_.begin() + plan.first, made_.end(), [](const Made& a, const Made& b) { return a.reach > b.reach; });
  std::sort(tops_.begin() + plan.first_top, tops_.end(),
            [](const Emission& a, const Emission& b) { return a.value > b.value; });
}

std::uint32_t WordPlans::find_cross(std::uint32_t level, std::uint32_t awaited, std::uint32_t active) {
  const std::uint32_t known = cross_places_.find(cross_hash(level, awaited, active), [&](std::uint32_t each) {
    const CrossPlan& plan = cross_plans_[each];
    return plan.awaited == awaited && plan.active == active && plan.level == level;
  });
  if (known != HashedPlaces::none) return known;
  const auto place = static_cast<std::uint32_t>(cross_plans_.size());
  CrossPlan& made = cross_plans_.emplace_back();
  made.awaited = awaited;
  made.active = active;
  made.level = level;
  made.plan = find(grammar_.row(level + 1, awaited), active, level + 1);
  make(made);
  cross_places_.add(place, [&](std::uint32_t each) {
    return cross_hash(cross_plans_[each].level, cross_plans_[each].awaited, cross_plans_[each].active);
  });
  return place;
}

void WordPlans::make(CrossPlan& plan) {
  plan.rules = grammar_.by_parent(plan.awaited, plan.active);
  const double* values = grammar_.cross_values(plan.level);
  for (std::size_t rule = plan.rules.first; rule < plan.rules.last; ++rule) {
    const std::uint32_t right = grammar_.cross_right(rule);
    if (grammar_.is_tag(right)) {
      plan.tags += values[rule] * view_.tag_value(right);
      continue;
    }
    const std::int32_t row = grammar_.row(plan.level + 1, right);
    plan.total += values[rule] * view_.summed_emission(row);
    plan.largest = std::max(plan.largest, values[rule] * view_.largest_emission(row));
  }
  plan.total += plan.tags;
}

std::span<const WordPlans::Right> WordPlans::rights(std::uint32_t place) {
  CrossPlan& plan = cross_plans_[place];
  if (!plan.listed) {
    plan.listed = true;
    plan.first = static_cast<std::uint32_t>(rights_.size());
    const double* values = grammar_.cross_values(plan.level);
    for (std::size_t rule = plan.rules.first; rule < plan.rules.last; ++rule) {
      const std::uint32_t right = grammar_.cross_right(rule);
      if (grammar_.is_tag(right)) break;  // all others are tags too
      const std::int32_t row = grammar_.row(plan.level + 1, right);
      const double reach = values[rule] * view_.largest_emission(row);
      if (reach > 0) rights_.push_back({reach, values[rule], right, row});
    }
    plan.size = static_cast<std::uint32_t>(rights_.size()) - plan.first;
  }
  return {rights_.data() + plan.first, plan.size};
}

std::span<const WordPlans::Right> WordPlans::sorted_rights(std::uint32_t place) {
  const std::span<const Right> found = rights(place);
  CrossPlan& plan = cross_plans_[place];
  if (!plan.sorted) {
    plan.sorted = true;
    Right* first = rights_.data() + plan.first;
    std::sort(first, first + plan.size, [](const Right& a, const Right& b) { return a.reach > b.reach; });
  }
  return found;
}

double WordPlans::cross_value(const CrossPlan& plan, std::uint32_t right) const {
  const std::size_t rule = grammar_.find_right(plan.rules, right);
  return rule == HhmmGrammar::no_rule ? 0.0 : grammar_.cross_values(plan.level)[rule];
}

// -- WordMemo -----------------------------------------------------------------------------------------------------

WordPlans& WordMemo::turn_to(std::span<const Emission> emissions) {
  ++asked_;
  unkept_.show(emissions);
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
    return entries_.front().plans;
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
