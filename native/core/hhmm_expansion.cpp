#include "hhmm_expansion.h"

#include <algorithm>
#include <tuple>

#include "random.h"

namespace treelm {

StoreExpansion::StoreExpansion(const HhmmGrammar& grammar, const HhmmOptions& options, const HhmmBeam& beam,
                               std::span<const Emission> emissions, HhmmSearch::Workspace& work)
    : grammar_(grammar),
      options_(options),
      beam_(beam),
      emissions_(emissions),
      work_(work),
      depths_(beam.node_depths()),
      limit_(options.beam + options.beam / 2 + 256) {
  work_.word_.show(emissions);
  ++work_.stamp_;
  work_.outcomes_.clear();
  work_.top_outcomes_.clear();
  work_.cross_outcomes_.clear();
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
  for (const std::uint32_t node : work_.order_) expand_node(node);
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
  // Twice as many places as stores, so that looking for one is short.
  std::size_t places = work_.plans_.size();
  while (places < 2 * beam_.stores.size()) places *= 2;
  if (places > work_.plans_.size()) {
    work_.plans_.assign(places, {});
    work_.cross_plans_.assign(places, {});
  }
  work_.share_.resize(beam_.stores.size());
  work_.plan_of_.resize(beam_.stores.size());
  for (std::size_t i = 0; i < beam_.stores.size(); ++i) {
    const auto [node, active] = beam_.stores[i];
    const std::uint32_t level = depths_[node] + 1u;
    const std::int32_t row = grammar_.row(level, beam_.nodes[node].awaited);
    const double expected = grammar_.progeny(row, active);
    work_.share_[i] = expected > 0 ? beam_.weights[i] / expected : 0.0;
    work_.plan_of_[i] = find_plan(row, active, level);
    double& largest = work_.plans_[work_.plan_of_[i]].largest_share;
    largest = std::max(largest, work_.share_[i]);
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
    if (work_.weight_of_node_[node] > 0) work_.order_.push_back(node);
  std::sort(work_.order_.begin(), work_.order_.end(), [this](std::uint32_t a, std::uint32_t b) {
    const double one = work_.weight_of_node_[a], two = work_.weight_of_node_[b];
    return one != two ? one > two : a < b;
  });
}

std::uint32_t StoreExpansion::find_plan(std::int32_t row, std::uint32_t active, std::uint32_t level) {
  const std::size_t mask = work_.plans_.size() - 1;
  std::size_t place = mix64(std::uint64_t{active} << 32 | static_cast<std::uint32_t>(row)) & mask;
  for (;; place = (place + 1) & mask) {
    Plan& plan = work_.plans_[place];
    if (plan.stamp != work_.stamp_) {
      plan = {};
      plan.stamp = work_.stamp_;
      plan.row = row;
      plan.active = active;
      plan.level = level;
      return static_cast<std::uint32_t>(place);
    }
    if (plan.row == row && plan.active == active && plan.level == level) return static_cast<std::uint32_t>(place);
  }
}

// A completed constituent becomes the left child of a new one in the same element.
const StoreExpansion::Plan& StoreExpansion::made_plan(std::uint32_t place) {
  Plan& plan = work_.plans_[place];
  if (plan.made) return plan;
  plan.made = true;
  plan.first = static_cast<std::uint32_t>(work_.outcomes_.size());
  plan.first_top = static_cast<std::uint32_t>(work_.top_outcomes_.size());
  if (plan.row < 0) return plan;
  const double cut = plan.largest_share > 0 ? threshold_ / plan.largest_share : 0.0;
  const auto row = grammar_.row_view(plan.row);
  for (std::size_t i = 0; i < row.symbols.size(); ++i) work_.progeny_[row.symbols[i]] = row.values[i];
  for (const WordView::Rule& rule : work_.word_.left_rules(plan.level, plan.active)) {
    const double parents = work_.progeny_[rule.parent];
    if (parents == 0) continue;
    plan.total += parents * rule.sum;
    if (rule.right < 0) {
      if (work_.top_outcomes_.size() > plan.first_top && work_.top_outcomes_.back().tag == rule.parent)
        work_.top_outcomes_.back().value += parents * rule.sum;
      else
        work_.top_outcomes_.push_back({rule.parent, parents * rule.sum});
      continue;
    }
    const double likeliest = parents * rule.largest;
    plan.largest = std::max(plan.largest, likeliest);
    if (likeliest < cut) continue;
    const double share = parents * rule.value;
    for (const auto& [tag, emitted] : work_.word_.row_emissions(rule.right))
      if (share * emitted >= cut) work_.outcomes_.push_back({share * emitted, rule.pair, tag});
  }
  for (const std::uint32_t symbol : row.symbols) work_.progeny_[symbol] = 0;
  plan.size = static_cast<std::uint32_t>(work_.outcomes_.size()) - plan.first;
  plan.tops = static_cast<std::uint32_t>(work_.top_outcomes_.size()) - plan.first_top;
  std::sort(work_.outcomes_.begin() + plan.first, work_.outcomes_.end(),
            [](const auto& a, const auto& b) { return a.value > b.value; });
  std::sort(work_.top_outcomes_.begin() + plan.first_top, work_.top_outcomes_.end(),
            [](const Emission& a, const Emission& b) { return a.value > b.value; });
  if (plan.tops > 0) plan.largest = std::max(plan.largest, work_.top_outcomes_[plan.first_top].value);
  return plan;
}

// A completed constituent becomes the left child of what the element above awaits.
const StoreExpansion::CrossPlan& StoreExpansion::cross_plan(std::uint32_t level, std::uint32_t awaited,
                                                            std::uint32_t active) {
  const std::size_t mask = work_.cross_plans_.size() - 1;
  std::size_t place = mix64((std::uint64_t{active} << 32 | awaited) + level) & mask;
  for (;; place = (place + 1) & mask) {
    CrossPlan& plan = work_.cross_plans_[place];
    if (plan.stamp == work_.stamp_) {
      if (plan.awaited == awaited && plan.active == active && plan.level == level) return plan;
      continue;
    }
    plan = {
        work_.stamp_, awaited, active, level, 0.0, 0.0, static_cast<std::uint32_t>(work_.cross_outcomes_.size()), 0};
    const auto [first, last] = grammar_.by_parent(awaited, active);
    const double* values = grammar_.cross_values(level);
    double tags = 0;
    for (std::size_t rule = first; rule < last; ++rule) {
      const std::uint32_t right = grammar_.cross_right(rule);
      if (values[rule] == 0 || !work_.word_.emits(level, right)) continue;
      work_.cross_outcomes_.push_back({right, values[rule]});
      if (grammar_.is_tag(right)) {
        tags += values[rule] * work_.word_.tag_value(right);
        continue;
      }
      const std::int32_t row = grammar_.row(level + 1, right);
      plan.largest = std::max(plan.largest, values[rule] * work_.word_.largest_emission(row));
      for (const auto& [tag, emitted] : work_.word_.row_emissions(row)) plan.total += values[rule] * emitted;
    }
    plan.total += tags;
    plan.largest = std::max(plan.largest, tags);
    plan.size = static_cast<std::uint32_t>(work_.cross_outcomes_.size()) - plan.first;
    return plan;
  }
}

void StoreExpansion::expand_node(std::uint32_t node) {
  const std::uint32_t level = depths_[node] + 1u;
  if (level > grammar_.depth()) return;
  ++work_.node_stamp_;
  const std::uint32_t first = work_.store_start_[node], last = work_.store_start_[node + 1];
  double within = 0;  // no store that comes next gets more than this from the stores of the node
  for (std::uint32_t i = first; i < last; ++i) {
    const Plan& plan = made_plan(work_.plan_of_[i]);
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
  for (std::uint32_t i = work_.store_start_[node]; i < work_.store_start_[node + 1]; ++i) {
    const double share = work_.share_[i];
    if (share == 0) continue;
    for (const WordView::Rule& rule : work_.word_.left_rules(level, beam_.stores[i].active)) {
      double& sum = work_.pair_sum_[rule.pair];
      if (sum == 0) work_.pairs_.push_back(rule.pair);
      sum += share * rule.value;
    }
  }
}

// What a store brings to a pair within its element; without the progeny of the parent.
double StoreExpansion::within_value(std::uint32_t store, std::uint32_t pair) const {
  const std::uint32_t level = depths_[beam_.stores[store].node] + 1u;
  const std::size_t rule = grammar_.find_left(beam_.stores[store].active, pair);
  return rule == HhmmGrammar::no_rule ? 0.0 : work_.share_[store] * grammar_.left_values(level)[rule];
}

// Adds up what comes from one element deeper. No store that comes next weighs more than the value returned.
double StoreExpansion::reach_across(std::uint32_t node, std::uint32_t level, double within) {
  double reach = within, group = within;
  const std::uint32_t first = work_.child_start_[node], last = work_.child_start_[node + 1];
  for (std::uint32_t child = first; child < last; ++child) {
    if (child > first && beam_.nodes[child].active != beam_.nodes[child - 1].active) group = within;
    for (std::uint32_t i = work_.store_start_[child]; i < work_.store_start_[child + 1]; ++i) {
      const CrossPlan& plan = cross_plan(level, beam_.nodes[child].awaited, beam_.stores[i].active);
      total_ += work_.share_[i] * plan.total;
      group += work_.share_[i] * plan.largest;
    }
    reach = std::max(reach, group);
  }
  return reach;
}

void StoreExpansion::sum_across(std::uint32_t level, std::uint32_t child) {
  for (std::uint32_t i = work_.store_start_[child]; i < work_.store_start_[child + 1]; ++i) {
    const double share = work_.share_[i];
    if (share == 0) continue;
    const CrossPlan& plan = cross_plan(level, beam_.nodes[child].awaited, beam_.stores[i].active);
    for (std::uint32_t place = plan.first; place < plan.first + plan.size; ++place) {
      const auto [right, value] = work_.cross_outcomes_[place];
      double& sum = work_.right_sum_[right];
      if (sum == 0) work_.rights_.push_back(right);
      sum += share * value;
    }
  }
}

void StoreExpansion::reduce_across(std::uint32_t node, std::uint32_t level, double within) {
  const bool single = work_.store_start_[node + 1] - work_.store_start_[node] == 1;
  const std::int32_t row = grammar_.row(level, beam_.nodes[node].awaited);
  const std::uint32_t last_child = work_.child_start_[node + 1];
  for (std::uint32_t child = work_.child_start_[node]; child < last_child;) {
    const std::uint32_t active = beam_.nodes[child].active;
    for (; child < last_child && beam_.nodes[child].active == active; ++child) sum_across(level, child);
    if (work_.rights_.empty()) continue;
    const double parents = grammar_.progeny(row, active);
    for (const std::uint32_t right : work_.rights_) {
      double value = work_.right_sum_[right];
      work_.right_sum_[right] = 0;
      if (grammar_.is_tag(right)) {
        if (single) {  // what the one store brings to tags comes with its plan
          emit(node, level, active, right, value);
          continue;
        }
      } else if (within + value * work_.word_.largest_emission(grammar_.row(level + 1, right)) < threshold_) {
        continue;  // nor will what the stores of the node bring be enough
      }
      const std::uint32_t pair = parents > 0 ? grammar_.find_pair(active, right) : no_symbol;
      if (pair != no_symbol && single) {
        value += parents * within_value(work_.store_start_[node], pair);
        work_.pair_mark_[pair] = work_.node_stamp_;
      } else if (pair != no_symbol && work_.pair_sum_[pair] > 0) {
        value += parents * work_.pair_sum_[pair];
        work_.pair_sum_[pair] = 0;
      }
      emit(node, level, active, right, value);
    }
    work_.rights_.clear();
  }
  std::uint32_t parent = no_symbol;
  double parents = 0;
  for (const std::uint32_t pair : work_.pairs_) {
    const double sum = work_.pair_sum_[pair];
    work_.pair_sum_[pair] = 0;
    if (grammar_.pair_parent(pair) != parent) {
      parent = grammar_.pair_parent(pair);
      parents = grammar_.progeny(row, parent);
    }
    if (sum * parents > 0) emit(node, level, parent, grammar_.pair_right(pair), sum * parents);
  }
  work_.pairs_.clear();
}

void StoreExpansion::emit(std::uint32_t node, std::uint32_t level, std::uint32_t active, std::uint32_t awaited,
                          double value) {
  if (grammar_.is_tag(awaited)) {
    double& sum = work_.top_sum_[active];
    if (sum == 0) work_.tops_.push_back(active);
    sum += value * work_.word_.tag_value(awaited);
    return;
  }
  const std::int32_t row = grammar_.row(level + 1, awaited);
  if (value * work_.word_.largest_emission(row) < threshold_) return;
  for (const auto& [tag, share] : work_.word_.row_emissions(row)) add({value * share, node, active, awaited, tag});
}

// The only store of a node: its outcomes are final, and come in falling order.
void StoreExpansion::emit_plan(std::uint32_t node, std::uint32_t store) {
  const double share = work_.share_[store];
  const Plan& plan = work_.plans_[work_.plan_of_[store]];
  for (std::uint32_t place = plan.first; place < plan.first + plan.size; ++place) {
    const auto [value, pair, tag] = work_.outcomes_[place];
    if (share * value < threshold_) break;
    if (work_.pair_mark_[pair] != work_.node_stamp_)
      add({share * value, node, grammar_.pair_parent(pair), grammar_.pair_right(pair), tag});
  }
  const bool alone = work_.tops_.empty();
  for (std::uint32_t place = plan.first_top; place < plan.first_top + plan.tops; ++place) {
    const auto [active, value] = work_.top_outcomes_[place];
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

void StoreExpansion::prune() {
  auto& found = work_.candidates_;
  if (options_.ratio > 0) std::erase_if(found, [this](const Candidate& each) { return each.value < threshold_; });
  if (found.size() <= options_.beam) return;
  const auto last = found.begin() + static_cast<std::ptrdiff_t>(options_.beam) - 1;
  std::nth_element(found.begin(), last, found.end(),
                   [this](const Candidate& a, const Candidate& b) { return better(a, b); });
  threshold_ = std::max(threshold_, last->value);
  found.resize(options_.beam);
}

std::vector<std::uint32_t> StoreExpansion::symbols_of(const Candidate& candidate) const {
  std::vector<std::uint32_t> symbols = store_symbols(beam_, {candidate.node, candidate.top});
  if (candidate.active != no_symbol) {
    symbols.back() = candidate.active;
    symbols.push_back(candidate.awaited);
    symbols.push_back(candidate.top);
  }
  return symbols;
}

bool StoreExpansion::better(const Candidate& a, const Candidate& b) const {
  if (a.value != b.value) return a.value > b.value;
  return symbols_of(a) < symbols_of(b);
}

std::pair<std::shared_ptr<HhmmBeam>, double> StoreExpansion::new_beam() {
  prune();
  auto made = std::make_shared<HhmmBeam>();
  made->single = options_.single;
  const auto& found = work_.candidates_;
  const auto old_nodes = static_cast<std::uint32_t>(beam_.nodes.size());
  std::vector<std::uint8_t> used(old_nodes, 0);
  used[0] = 1;
  for (const Candidate& each : found)
    for (std::uint32_t node = each.node; !used[node]; node = beam_.nodes[node].parent) used[node] = 1;

  // Nodes by depth: those of the old beam that are still needed, and those of new elements.
  struct Planned {
    HhmmBeam::Node node;
    std::uint32_t source;  // node of the old beam, or a candidate after all of these
  };
  const std::uint32_t deepest = grammar_.depth() + 1;
  std::vector<std::vector<std::uint32_t>> by_depth(deepest + 1);
  for (std::uint32_t node = 1; node < old_nodes; ++node)
    if (used[node]) by_depth[depths_[node]].push_back(node);
  for (std::uint32_t i = 0; i < found.size(); ++i)
    if (found[i].active != no_symbol) by_depth[depths_[found[i].node] + 1u].push_back(old_nodes + i);
  std::vector<std::uint32_t> place(old_nodes + found.size(), 0);
  std::vector<Planned> planned;
  for (const auto& sources : by_depth) {
    planned.clear();
    for (const std::uint32_t source : sources) {
      const bool is_old = source < old_nodes;
      const HhmmBeam::Node old = is_old ? beam_.nodes[source] : HhmmBeam::Node{};
      const Candidate* each = is_old ? nullptr : &found[source - old_nodes];
      planned.push_back({is_old ? HhmmBeam::Node{place[old.parent], old.active, old.awaited}
                                : HhmmBeam::Node{place[each->node], each->active, each->awaited},
                         source});
    }
    std::sort(planned.begin(), planned.end(), [](const Planned& a, const Planned& b) {
      return std::tie(a.node.parent, a.node.active, a.node.awaited) <
             std::tie(b.node.parent, b.node.active, b.node.awaited);
    });
    for (std::size_t i = 0; i < planned.size(); ++i) {
      if (i == 0 || !(planned[i].node == planned[i - 1].node)) made->nodes.push_back(planned[i].node);
      place[planned[i].source] = static_cast<std::uint32_t>(made->nodes.size()) - 1;
    }
  }

  std::vector<std::tuple<std::uint32_t, std::uint32_t, double>> stores;
  stores.reserve(found.size());
  for (std::uint32_t i = 0; i < found.size(); ++i) {
    const std::uint32_t node = found[i].active == no_symbol ? place[found[i].node] : place[old_nodes + i];
    stores.emplace_back(node, found[i].top, found[i].value);
  }
  std::sort(stores.begin(), stores.end());
  double kept = 0;
  for (const auto& store : stores) kept += std::get<2>(store);
  made->stores.reserve(stores.size());
  made->weights.reserve(stores.size());
  for (const auto& [node, top, value] : stores) {
    made->stores.push_back({node, top});
    const double weight = value / kept;
    made->weights.push_back(options_.single ? static_cast<double>(static_cast<float>(weight)) : weight);
  }
  made->set_hash();
  return {made, kept};
}

}  // namespace treelm
