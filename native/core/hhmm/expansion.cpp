#include "hhmm/expansion.h"

#include <algorithm>
#include <tuple>

#include "base/interrupt.h"

namespace treelm {

namespace {

// Rounding must not leave out what just reaches a threshold.
constexpr double careful = 1 - 1e-9;

}  // namespace

HhmmWorkspace::HhmmWorkspace(const HhmmGrammar& grammar, std::size_t memo_bytes)
    : memo_(grammar, memo_bytes),
      pair_sum_(grammar.pairs(), 0.0),
      right_sum_(grammar.symbols(), 0.0),
      top_sum_(grammar.symbols(), 0.0),
      pair_mark_(grammar.pairs(), 0),
      parent_mark_(grammar.symbols(), 0) {}

StackExpansion::StackExpansion(const HhmmGrammar& grammar, const HhmmOptions& options, const HhmmBeam& beam,
                               std::span<const Emission> emissions, WordPlans& plans, HhmmWorkspace& work)
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

double StackExpansion::run() {
  if (beam_.initial) {
    const std::int32_t row = grammar_.row(1, 0);
    for (const auto& [tag, value] : emissions_) {
      const double expected = grammar_.progeny(row, tag) * value;
      total_ += expected;
      add({expected, 0, no_symbol, no_symbol, tag});
    }
    return total_;
  }
  place_stacks();
  order_nodes();
  std::uint32_t expanded = 0;
  for (const auto& [weight, node] : work_.order_) {
    if (expanded++ % 64 == 0) poll_interrupt();  // a node may take less than a poll
    expand_node(node);
  }
  return total_;
}

// Finds the children and the stacks of each node, and what its stacks do next.
void StackExpansion::place_stacks() {
  const auto nodes = static_cast<std::uint32_t>(beam_.nodes.size());
  work_.child_start_.assign(nodes + 1, nodes);
  work_.stack_start_.assign(nodes + 1, static_cast<std::uint32_t>(beam_.stacks.size()));
  for (std::uint32_t child = nodes; child-- > 1;) work_.child_start_[beam_.nodes[child].parent] = child;
  for (std::uint32_t stack = work_.stack_start_[nodes]; stack-- > 0;)
    work_.stack_start_[beam_.stacks[stack].node] = stack;
  for (std::uint32_t node = nodes; node-- > 0;) {
    work_.child_start_[node] = std::min(work_.child_start_[node], work_.child_start_[node + 1]);
    work_.stack_start_[node] = std::min(work_.stack_start_[node], work_.stack_start_[node + 1]);
  }
  work_.share_.resize(beam_.stacks.size());
  work_.cross_of_.resize(beam_.stacks.size());
  work_.plan_of_.resize(beam_.stacks.size());
  for (std::size_t i = 0; i < beam_.stacks.size(); ++i) {
    const auto [node, active] = beam_.stacks[i];
    const std::uint32_t level = depths_[node] + 1u;
    const std::int32_t row = grammar_.row(level, beam_.nodes[node].awaited);
    work_.plan_of_[i] = plans_.find(row, active, level, beam_.weights[i]);
    const double expected = plans_.plan(work_.plan_of_[i]).expected;
    work_.share_[i] = expected > 0 ? beam_.weights[i] / expected : 0.0;
  }
}

// Heavy stacks first: the threshold then rises at once, and little of what is light is looked at.
void StackExpansion::order_nodes() {
  const auto nodes = static_cast<std::uint32_t>(beam_.nodes.size());
  work_.weight_of_node_.assign(nodes, 0.0);
  for (std::size_t i = 0; i < beam_.stacks.size(); ++i) {
    const std::uint32_t node = beam_.stacks[i].node;
    for (const std::uint32_t each : {node, beam_.nodes[node].parent})
      work_.weight_of_node_[each] = std::max(work_.weight_of_node_[each], beam_.weights[i]);
  }
  work_.order_.clear();
  for (std::uint32_t node = 0; node < nodes; ++node)
    if (work_.weight_of_node_[node] > 0) work_.order_.emplace_back(-work_.weight_of_node_[node], node);
  std::sort(work_.order_.begin(), work_.order_.end());
}

void StackExpansion::expand_node(std::uint32_t node) {
  const std::uint32_t level = depths_[node] + 1u;
  if (level > grammar_.depth()) return;
  ++work_.node_stamp_;
  const std::uint32_t first = work_.stack_start_[node], last = work_.stack_start_[node + 1];
  double within = 0;  // no stack that comes next gets more than this from the stacks of the node
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

// Several stacks with one tail: sums by parent and right child.
void StackExpansion::sum_within(std::uint32_t node, std::uint32_t level) {
  const double* expected = plans_.progeny(grammar_.row(level, beam_.nodes[node].awaited));
  for (std::uint32_t i = work_.stack_start_[node]; i < work_.stack_start_[node + 1]; ++i) {
    const double share = work_.share_[i];
    if (share == 0) continue;
    for (const WordView::Rule& rule : plans_.view().left_rules(level, beam_.stacks[i].active)) {
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

// Adds up what comes from one element deeper. No stack that comes next weighs more than the value returned; the same
// is kept for each group of children with one active symbol.
double StackExpansion::reach_across(std::uint32_t node, std::uint32_t level, double within) {
  work_.group_reach_.clear();
  double reach = within;
  const std::uint32_t first = work_.child_start_[node], last = work_.child_start_[node + 1];
  for (std::uint32_t child = first; child < last; ++child) {
    if (child == first || beam_.nodes[child].active != beam_.nodes[child - 1].active)
      work_.group_reach_.push_back(within);
    for (std::uint32_t i = work_.stack_start_[child]; i < work_.stack_start_[child + 1]; ++i) {
      work_.cross_of_[i] = plans_.find_cross(level, beam_.nodes[child].awaited, beam_.stacks[i].active);
      const CrossPlan& plan = plans_.cross(work_.cross_of_[i]);
      total_ += work_.share_[i] * plan.total;
      work_.group_reach_.back() += work_.share_[i] * plan.largest;
    }
    reach = std::max(reach, work_.group_reach_.back());
  }
  return reach;
}

void StackExpansion::reduce_across(std::uint32_t node, std::uint32_t level, double within) {
  const bool single = work_.stack_start_[node + 1] - work_.stack_start_[node] == 1;
  const std::int32_t row = grammar_.row(level, beam_.nodes[node].awaited);
  const std::uint32_t last_child = work_.child_start_[node + 1];
  auto reach = work_.group_reach_.begin();
  for (std::uint32_t child = work_.child_start_[node]; child < last_child; ++reach) {
    const std::uint32_t first = work_.stack_start_[child], active = beam_.nodes[child].active;
    while (child < last_child && beam_.nodes[child].active == active) ++child;
    const std::uint32_t last = work_.stack_start_[child];
    if (first == last || *reach < careful * threshold_) continue;
    Above above{node, active, single, grammar_.progeny(row, active), {}, 0.0};
    if (single && above.parents > 0)
      above.rules = rules_of(level, beam_.stacks[work_.stack_start_[node]].active, active);
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

// Only one stack reduces to an element: what it reaches comes in falling order.
void StackExpansion::cross_one(const Above& above, std::uint32_t stack) {
  const double share = work_.share_[stack];
  if (share == 0) return;
  for (const WordPlans::Right& right : plans_.rights(plans_.cross(work_.cross_of_[stack]))) {
    if (above.within + share * right.reach < careful * threshold_) return;
    settle(above, right.symbol, right.row, share * right.value);
  }
}

void StackExpansion::cross_several(const Above& above, std::uint32_t level, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t stack = first; stack < last; ++stack) {
    const double share = work_.share_[stack];
    if (share == 0) continue;
    for (const WordPlans::Right& right : plans_.rights(plans_.cross(work_.cross_of_[stack]))) {
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
std::span<const WordView::Rule> StackExpansion::rules_of(std::uint32_t level, std::uint32_t left,
                                                         std::uint32_t parent) {
  const auto rules = plans_.view().left_rules(level, left);
  return std::ranges::equal_range(rules, parent, {}, &WordView::Rule::parent);
}

// What comes from one element deeper, with what the stacks of the node bring to the same element.
void StackExpansion::settle(const Above& above, std::uint32_t right, std::int32_t row, double value) {
  if (above.single && row >= 0) {  // what the one stack brings to tags comes with its plan
    const auto right_of = [this](const WordView::Rule& rule) { return grammar_.pair_right(rule.pair); };
    const auto rule = std::ranges::lower_bound(above.rules, right, {}, right_of);
    if (rule != above.rules.end() && right_of(*rule) == right) {
      value += above.parents * (work_.share_[work_.stack_start_[above.node]] * rule->value);
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

// What only the stacks of the node bring.
void StackExpansion::emit_pairs(std::uint32_t node, std::int32_t row) {
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

void StackExpansion::emit_tag(std::uint32_t active, std::uint32_t tag, double value) {
  double& sum = work_.top_sum_[active];
  if (sum == 0) work_.tops_.push_back(active);
  sum += value * word_.tag_value(tag);
}

void StackExpansion::emit(std::uint32_t node, std::uint32_t active, std::uint32_t awaited, std::int32_t row,
                          double value) {
  if (value * word_.largest_emission(row) < threshold_) return;
  for (const auto& [tag, share] : word_.row_emissions(row)) add({value * share, node, active, awaited, tag});
}

// The only stack of a node: its outcomes are final, and come in falling order.
void StackExpansion::emit_plan(std::uint32_t node, std::uint32_t stack) {
  const double share = work_.share_[stack];
  const Plan& plan = plans_.plan(work_.plan_of_[stack]);
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

void StackExpansion::flush_tops(std::uint32_t node) {
  for (const std::uint32_t active : work_.tops_) {
    add({work_.top_sum_[active], node, no_symbol, no_symbol, active});
    work_.top_sum_[active] = 0;
  }
  work_.tops_.clear();
}

void StackExpansion::add(const Candidate& candidate) {
  if (!(candidate.value > 0) || candidate.value < threshold_) return;
  if (candidate.value > largest_) {
    largest_ = candidate.value;
    threshold_ = std::max(threshold_, largest_ * options_.ratio);
  }
  work_.candidates_.push_back(candidate);
  if (work_.candidates_.size() >= limit_) prune();
}

void StackExpansion::prune() {
  auto& found = work_.candidates_;
  if (options_.ratio > 0) std::erase_if(found, [this](const Candidate& each) { return each.value < threshold_; });
  if (found.size() <= options_.beam) return;
  const auto last = found.begin() + static_cast<std::ptrdiff_t>(options_.beam) - 1;
  std::nth_element(found.begin(), last, found.end(), [this](const Candidate& a, const Candidate& b) {
    return a.value != b.value ? a.value > b.value : symbols_of(a) < symbols_of(b);
  });
  threshold_ = std::max(threshold_, last->value);
  found.resize(options_.beam);
}

std::vector<std::uint32_t> StackExpansion::symbols_of(const Candidate& candidate) const {
  std::vector<std::uint32_t> symbols = stack_symbols(beam_, {candidate.node, candidate.top});
  if (candidate.active != no_symbol) {
    symbols.back() = candidate.active;
    symbols.push_back(candidate.awaited);
    symbols.push_back(candidate.top);
  }
  return symbols;
}

std::pair<std::shared_ptr<HhmmBeam>, double> StackExpansion::new_beam() {
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

  std::vector<std::pair<std::uint64_t, double>> stacks;  // node and top
  stacks.reserve(found.size());
  for (std::uint32_t i = 0; i < found.size(); ++i) {
    const std::uint32_t node = found[i].active == no_symbol ? place[found[i].node] : place[old_nodes + i];
    stacks.emplace_back(std::uint64_t{node} << 32 | found[i].top, found[i].value);
  }
  std::sort(stacks.begin(), stacks.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  double kept = 0;
  for (const auto& [stack, value] : stacks) kept += value;
  made->stacks.reserve(stacks.size());
  made->weights.reserve(stacks.size());
  for (const auto& [stack, value] : stacks) {
    made->stacks.push_back({static_cast<std::uint32_t>(stack >> 32), static_cast<std::uint32_t>(stack)});
    const double weight = value / kept;
    made->weights.push_back(options_.single ? static_cast<double>(static_cast<float>(weight)) : weight);
  }
  made->set_hash();
  return {made, kept};
}

}  // namespace treelm
