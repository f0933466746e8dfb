#include "hhmm/expansion.h"

#include <algorithm>

namespace treelm {

namespace {

// Rounding must not leave out what just reaches a threshold.
constexpr double careful = 1 - 1e-9;

}  // namespace

StoreExpansion::StoreExpansion(const HhmmGrammar& grammar, const HhmmOptions& options, const HhmmBeam& beam,
                               std::span<const Emission> emissions, WordPlans& plans, HhmmSearch::Workspace& work)
    : grammar_(grammar),
      options_(options),
      beam_(beam),
      emissions_(emissions),
      plans_(plans),
      word_(plans.view()),
      work_(work),
      depths_(beam.node_depths()),
      limit_(options.beam + options.beam / 2 + 256) {
  work_.candidates_.clear();
}

double StoreExpansion::run() {
  if (beam_.initial) {
    const std::int32_t row = grammar_.row(1, 0);
    for (const auto& [tag, value] : emissions_) {
      const double expected = grammar_.progeny(row, tag) * value;
      total_ += expected;
      add({expected, 0, no_symbol, no_symbol, tag});
    }
    return total_;
  }
  place_stores();
  order_nodes();
  for (const auto& [weight, node] : work_.order_) expand_node(node);
  return total_;
}

// Finds the children and the stores of each node, and what its stores do next.
void StoreExpansion::place_stores() {
  const auto nodes = static_cast<std::uint32_t>(beam_.nodes.size());
  work_.child_start_.assign(nodes + 1, nodes);
  work_.store_start_.assign(nodes + 1, static_cast<std::uint32_t>(beam_.stores.size()));
  for (std::uint32_t child = nodes; child-- > 1;) work_.child_start_[beam_.nodes[child].parent] = child;
  for (std::uint32_t store = work_.store_start_[nodes]; store-- > 0;)
    work_.store_start_[beam_.stores[store].node] = store;
  for (std::uint32_t node = nodes; node-- > 0;) {
    work_.child_start_[node] = std::min(work_.child_start_[node], work_.child_start_[node + 1]);
    work_.store_start_[node] = std::min(work_.store_start_[node], work_.store_start_[node + 1]);
  }
  work_.share_.resize(beam_.stores.size());
  work_.cross_of_.resize(beam_.stores.size());
  work_.plan_of_.resize(beam_.stores.size());
  for (std::size_t i = 0; i < beam_.stores.size(); ++i) {
    const auto [node, active] = beam_.stores[i];
    const std::uint32_t level = depths_[node] + 1u;
    const std::int32_t row = grammar_.row(level, beam_.nodes[node].awaited);
    work_.plan_of_[i] = plans_.find(row, active, level, beam_.weights[i]);
    const double expected = plans_.plan(work_.plan_of_[i]).expected;
    work_.share_[i] = expected > 0 ? beam_.weights[i] / expected : 0.0;
  }
}

// Heavy stores first: the threshold then rises at once, and little of what is light is looked at.
void StoreExpansion::order_nodes() {
  const auto nodes = static_cast<std::uint32_t>(beam_.nodes.size());
  work_.weight_of_node_.assign(nodes, 0.0);
  for (std::size_t i = 0; i < beam_.stores.size(); ++i) {
    const std::uint32_t node = beam_.stores[i].node;
    for (const std::uint32_t each : {node, beam_.nodes[node].parent})
      work_.weight_of_node_[each] = std::max(work_.weight_of_node_[each], beam_.weights[i]);
  }
  work_.order_.clear();
  for (std::uint32_t node = 0; node < nodes; ++node)
    if (work_.weight_of_node_[node] > 0) work_.order_.emplace_back(-work_.weight_of_node_[node], node);
  std::sort(work_.order_.begin(), work_.order_.end());
}

void StoreExpansion::expand_node(std::uint32_t node) {
  const std::uint32_t level = depths_[node] + 1u;
  if (level > grammar_.depth()) return;
  ++work_.node_stamp_;
  const std::uint32_t first = work_.store_start_[node], last = work_.store_start_[node + 1];
  double within = 0;  // no store that comes next gets more than this from the stores of the node
  for (std::uint32_t i = first; i < last; ++i) {
    const Plan& plan = plans_.made(work_.plan_of_[i], threshold_);
    total_ += work_.share_[i] * plan.total;
    within += work_.share_[i] * plan.largest;
  }
  if (reach_across(node, level, within) < threshold_) return;
  if (last - first > 1) sum_within(node, level);
  reduce_across(node, level, within);
  if (last - first == 1) emit_plan(node, first);
  flush_tops(node);
}

// Several stores with one tail: sums by parent and right child.
void StoreExpansion::sum_within(std::uint32_t node, std::uint32_t level) {
  const double* expected = plans_.progeny(grammar_.row(level, beam_.nodes[node].awaited));
  for (std::uint32_t i = work_.store_start_[node]; i < work_.store_start_[node + 1]; ++i) {
    const double share = work_.share_[i];
    if (share == 0) continue;
    for (const WordView::Rule& rule : plans_.view().left_rules(level, beam_.stores[i].active)) {
      if (expected[rule.parent] == 0) continue;
      double& sum = work_.pair_sum_[rule.pair];
      if (sum == 0) {
        work_.pairs_.push_back({rule.pair, rule.right});
        work_.parent_mark_[rule.parent] = work_.node_stamp_;
      }
      sum += share * rule.value;
    }
  }
}

// Adds up what comes from one element deeper. No store that comes next weighs more than the value returned; the same
// is kept for each group of children with one active symbol.
double StoreExpansion::reach_across(std::uint32_t node, std::uint32_t level, double within) {
  work_.group_reach_.clear();
  double reach = within;
  const std::uint32_t first = work_.child_start_[node], last = work_.child_start_[node + 1];
  for (std::uint32_t child = first; child < last; ++child) {
    if (child == first || beam_.nodes[child].active != beam_.nodes[child - 1].active)
      work_.group_reach_.push_back(within);
    for (std::uint32_t i = work_.store_start_[child]; i < work_.store_start_[child + 1]; ++i) {
      work_.cross_of_[i] = plans_.find_cross(level, beam_.nodes[child].awaited, beam_.stores[i].active);
      const CrossPlan& plan = plans_.cross(work_.cross_of_[i]);
      total_ += work_.share_[i] * plan.total;
      work_.group_reach_.back() += work_.share_[i] * plan.largest;
    }
    reach = std::max(reach, work_.group_reach_.back());
  }
  return reach;
}

void StoreExpansion::reduce_across(std::uint32_t node, std::uint32_t level, double within) {
  const bool single = work_.store_start_[node + 1] - work_.store_start_[node] == 1;
  const std::int32_t row = grammar_.row(level, beam_.nodes[node].awaited);
  const std::uint32_t last_child = work_.child_start_[node + 1];
  auto reach = work_.group_reach_.begin();
  for (std::uint32_t child = work_.child_start_[node]; child < last_child; ++reach) {
    const std::uint32_t first = work_.store_start_[child], active = beam_.nodes[child].active;
    while (child < last_child && beam_.nodes[child].active == active) ++child;
    const std::uint32_t last = work_.store_start_[child];
    if (first == last || *reach < careful * threshold_) continue;
    Above above{node, active, single, grammar_.progeny(row, active), {}, 0.0};
    if (single && above.parents > 0)
      above.rules = rules_of(level, beam_.stores[work_.store_start_[node]].active, active);
    const bool joined =
        single ? !above.rules.empty() : above.parents > 0 && work_.parent_mark_[active] == work_.node_stamp_;
    if (joined) above.within = within;
    if (last - first == 1)
      cross_one(above, first);
    else
      cross_several(above, level, first, last);
  }
  if (!work_.pairs_.empty()) emit_pairs(node, row);
}

// Only one store reduces to an element: what it reaches comes in falling order.
void StoreExpansion::cross_one(const Above& above, std::uint32_t store) {
  const double share = work_.share_[store];
  if (share == 0) return;
  for (const WordPlans::Right& right : plans_.rights(plans_.cross(work_.cross_of_[store]))) {
    if (above.within + share * right.reach < careful * threshold_) return;
    settle(above, right.symbol, right.row, share * right.value);
  }
}

void StoreExpansion::cross_several(const Above& above, std::uint32_t level, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t store = first; store < last; ++store) {
    const double share = work_.share_[store];
    if (share == 0) continue;
    for (const WordPlans::Right& right : plans_.rights(plans_.cross(work_.cross_of_[store]))) {
      double& sum = work_.right_sum_[right.symbol];
      if (sum == 0) work_.rights_.push_back(right.symbol);
      sum += share * right.value;
    }
  }
  for (const std::uint32_t right : work_.rights_) {
    const double value = work_.right_sum_[right];
    work_.right_sum_[right] = 0;
    const std::int32_t row = grammar_.is_tag(right) ? -1 : grammar_.row(level + 1, right);
    if (row >= 0 && above.within + value * word_.largest_emission(row) < careful * threshold_) continue;
    settle(above, right, row, value);
  }
  work_.rights_.clear();
}

// The rules by which a left child makes a parent at a level.
std::span<const WordView::Rule> StoreExpansion::rules_of(std::uint32_t level, std::uint32_t left,
                                                         std::uint32_t parent) {
  const auto rules = plans_.view().left_rules(level, left);
  return std::ranges::equal_range(rules, parent, {}, &WordView::Rule::parent);
}

// What comes from one element deeper, with what the stores of the node bring to the same element.
void StoreExpansion::settle(const Above& above, std::uint32_t right, std::int32_t row, double value) {
  if (above.single && row >= 0) {  // what the one store brings to tags comes with its plan
    const auto right_of = [this](const WordView::Rule& rule) { return grammar_.pair_right(rule.pair); };
    const auto rule = std::ranges::lower_bound(above.rules, right, {}, right_of);
    if (rule != above.rules.end() && right_of(*rule) == right) {
      value += above.parents * (work_.share_[work_.store_start_[above.node]] * rule->value);
      work_.pair_mark_[rule->pair] = work_.node_stamp_;
    }
  } else if (!above.single && above.within > 0) {
    const std::uint32_t pair = grammar_.find_pair(above.active, right);
    if (pair != no_symbol) {
      value += above.parents * work_.pair_sum_[pair];
      work_.pair_sum_[pair] = 0;
    }
  }
  if (row < 0)
    emit_tag(above.active, right, value);
  else
    emit(above.node, above.active, right, row, value);
}

// What only the stores of the node bring.
void StoreExpansion::emit_pairs(std::uint32_t node, std::int32_t row) {
  const double* expected = plans_.progeny(row);
  for (const auto& [pair, right] : work_.pairs_) {
    const double sum = work_.pair_sum_[pair];
    work_.pair_sum_[pair] = 0;
    if (sum == 0) continue;
    const std::uint32_t parent = grammar_.pair_parent(pair);
    if (right < 0)
      emit_tag(parent, grammar_.pair_right(pair), sum * expected[parent]);
    else
      emit(node, parent, grammar_.pair_right(pair), right, sum * expected[parent]);
  }
  work_.pairs_.clear();
}

void StoreExpansion::emit_tag(std::uint32_t active, std::uint32_t tag, double value) {
  double& sum = work_.top_sum_[active];
  if (sum == 0) work_.tops_.push_back(active);
  sum += value * word_.tag_value(tag);
}

void StoreExpansion::emit(std::uint32_t node, std::uint32_t active, std::uint32_t awaited, std::int32_t row,
                          double value) {
  if (value * word_.largest_emission(row) < threshold_) return;
  for (const auto& [tag, share] : word_.row_emissions(row)) add({value * share, node, active, awaited, tag});
}

// The only store of a node: its outcomes are final, and come in falling order.
void StoreExpansion::emit_plan(std::uint32_t node, std::uint32_t store) {
  const double share = work_.share_[store];
  const Plan& plan = plans_.plan(work_.plan_of_[store]);
  for (const auto& [value, pair, tag] : plans_.outcomes(plan)) {
    if (share * value < threshold_) break;
    if (work_.pair_mark_[pair] != work_.node_stamp_)
      add({share * value, node, grammar_.pair_parent(pair), grammar_.pair_right(pair), tag});
  }
  const bool alone = work_.tops_.empty();
  for (const auto& [active, value] : plans_.tops(plan)) {
    if (alone) {
      if (share * value < threshold_) break;
      add({share * value, node, no_symbol, no_symbol, active});
      continue;
    }
    double& sum = work_.top_sum_[active];
    if (sum == 0) work_.tops_.push_back(active);
    sum += share * value;
  }
}

void StoreExpansion::flush_tops(std::uint32_t node) {
  for (const std::uint32_t active : work_.tops_) {
    add({work_.top_sum_[active], node, no_symbol, no_symbol, active});
    work_.top_sum_[active] = 0;
  }
  work_.tops_.clear();
}

void StoreExpansion::add(const Candidate& candidate) {
  if (!(candidate.value > 0) || candidate.value < threshold_) return;
  if (candidate.value > largest_) {
    largest_ = candidate.value;
    threshold_ = std::max(threshold_, largest_ * options_.ratio);
  }
  work_.candidates_.push_back(candidate);
  if (work_.candidates_.size() >= limit_) prune();
}

}  // namespace treelm
