#include "hhmm/expansion.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <tuple>

#include "base/interrupt.h"

namespace treelm {

namespace {

// Sources of a group that are looked through one by one; what more of them bring is added up.
constexpr std::uint32_t most_listed = 3;

// Candidates are counted in buckets by weight, so that the threshold can rise with each: eight for each power of two.
constexpr unsigned bucket_shift = 52 - 3;
constexpr std::size_t buckets = std::size_t{1} << (63 - bucket_shift);

std::uint32_t bucket_of(double value) {
  return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(value) >> bucket_shift);
}

double least_of(std::uint32_t bucket) { return std::bit_cast<double>(std::uint64_t{bucket} << bucket_shift); }

}  // namespace

HhmmWorkspace::HhmmWorkspace(const HhmmGrammar& grammar, std::size_t memo_bytes)
    : memo_(grammar, memo_bytes),
      context_(grammar),
      top_sum_(grammar.symbols(), 0.0),
      right_sum_(grammar.symbols(), 0.0),
      within_sum_(grammar.symbols(), 0.0),
      right_mark_(grammar.symbols(), 0),
      group_mark_(grammar.symbols(), 0),
      bucket_size_(buckets, 0) {}

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
      limit_(4 * std::min(options.beam, std::size_t{1} << 20) + 1024) {
  begin(0);
}

double StackExpansion::run() {
  if (beam_.initial) {
    const std::int32_t row = grammar_.row(1, 0);
    const double sum = work_.context_.first_sum();
    for (const auto& [tag, value] : emissions_) {
      const double expected = sum > 0 ? grammar_.progeny(row, tag) * value / sum : 0.0;
      total_ += expected;
      add({expected, 0, no_symbol, no_symbol, tag});
    }
    return total_;
  }
  place_stacks();
  weigh_nodes();
  // What is guessed costs time where it is wrong, and changes nothing.
  const double guess = guessed_threshold();
  bool complete = guess > 0 && expand(guess);
  if (guess > 0) work_.guess_factor_ *= complete ? 1.02 : 0.6;
  if (!complete && guess > 0) complete = expand(guess * 1e-3);
  if (!complete) expand(0);
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
  work_.sources_.resize(beam_.stacks.size());
  for (std::size_t i = 0; i < beam_.stacks.size(); ++i) {
    const auto [node, active] = beam_.stacks[i];
    const std::uint32_t level = depths_[node] + 1u, awaited = beam_.nodes[node].awaited;
    Source& source = work_.sources_[i];
    source = {};
    if (node == 0) {
      source.plan = plans_.find(grammar_.row(level, awaited), active, level);
    } else {
      source.cross = plans_.find_cross(level - 1, awaited, active);
      source.plan = plans_.cross(source.cross).plan;
    }
    const WordPlans::Plan& plan = plans_.plan(source.plan);
    const double expected = plan.expected * work_.context_.sum(level, awaited, active);
    if (!(expected > 0)) continue;
    source.share = beam_.weights[i] / expected;
    total_ += source.share * plan.total;
    source.within = source.share * plan.largest;
    source.within_top = source.share * plan.largest_top;
    if (node == 0) continue;
    const WordPlans::CrossPlan& cross = plans_.cross(source.cross);
    total_ += source.share * cross.total;
    source.across = source.share * cross.largest;
    source.across_tags = source.share * cross.tags;
  }
}

// No stack that comes next below a node weighs more than its reach.
void StackExpansion::weigh_nodes() {
  const auto nodes = static_cast<std::uint32_t>(beam_.nodes.size());
  work_.node_reach_.assign(nodes, 0.0);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    double within = 0, within_top = 0, across = 0, across_tags = 0, best = 0, best_tags = 0;
    for (std::uint32_t i = work_.stack_start_[node]; i < work_.stack_start_[node + 1]; ++i) {
      within += work_.sources_[i].within;
      within_top += work_.sources_[i].within_top;
    }
    const std::uint32_t first = work_.child_start_[node], last = work_.child_start_[node + 1];
    for (std::uint32_t child = first; child < last; ++child) {
      if (child > first && beam_.nodes[child].active != beam_.nodes[child - 1].active) across = across_tags = 0;
      for (std::uint32_t i = work_.stack_start_[child]; i < work_.stack_start_[child + 1]; ++i) {
        across += work_.sources_[i].across;
        across_tags += work_.sources_[i].across_tags;
      }
      best = std::max(best, across);
      best_tags = std::max(best_tags, across_tags);
    }
    work_.node_reach_[node] = std::max(within + best, within_top + best_tags);
  }
}

// A threshold that the beam is likely to come to: nodes differ in how many stacks come next below them, but many nodes
// together do not.
double StackExpansion::guessed_threshold() const {
  struct Rank {
    std::size_t share;  // of the beam
    double factor;
  };
  constexpr Rank ranks[] = {{3, 0.06}, {8, 6e-3}, {16, 1.4e-3}, {32, 2.6e-4}};
  auto& reaches = work_.values_;
  reaches.assign(work_.node_reach_.begin(), work_.node_reach_.end());
  double guess = 0;
  auto last = reaches.end();
  for (const auto& [share, factor] : ranks) {
    const auto place = static_cast<std::ptrdiff_t>(options_.beam / share);
    if (place >= last - reaches.begin()) continue;
    std::nth_element(reaches.begin(), reaches.begin() + place, last, std::greater<>());
    last = reaches.begin() + place + 1;
    guess = std::max(guess, factor * reaches[static_cast<std::size_t>(place)]);
  }
  return beam_.stacks.size() < options_.beam ? 0.0 : work_.guess_factor_ * guess;
}

// Finds what reaches a threshold, or all that matters. Whether nothing is missing.
bool StackExpansion::expand(double threshold) {
  begin(threshold);
  for (std::uint32_t node = 0; node < beam_.nodes.size(); ++node) {
    if (node % 64 == 0) poll_interrupt();  // a node may take less than a poll
    if (work_.node_reach_[node] >= careful * threshold_) expand_node(node);
  }
  return threshold == 0 || work_.candidates_.size() >= options_.beam || largest_ * options_.ratio >= threshold;
}

void StackExpansion::expand_node(std::uint32_t node) {
  const std::uint32_t level = depths_[node] + 1u;
  if (level > grammar_.depth()) return;
  ++work_.node_stamp_;
  node_ = {node, level, work_.stack_start_[node], work_.stack_start_[node + 1], 1.0, 0.0};
  if (node_.last - node_.first == 1) node_.share = work_.sources_[node_.first].share;
  for (std::uint32_t i = node_.first; i < node_.last; ++i) node_.within += work_.sources_[i].within;
  const std::int32_t row = grammar_.row(level, beam_.nodes[node].awaited);
  expand_groups(row);
  if (node_.last - node_.first == 1)
    expand_alone();
  else if (node_.within >= careful * threshold_)
    expand_together();
  expand_tops(row);
}

// Elements with the active symbol of an element of the beam: stacks one element deeper bring something to them, and
// perhaps those of the node.
void StackExpansion::expand_groups(std::int32_t row) {
  work_.tag_groups_.clear();
  const std::uint32_t last_child = work_.child_start_[node_.node + 1];
  for (std::uint32_t child = work_.child_start_[node_.node]; child < last_child;) {
    Group group{};
    group.first = work_.stack_start_[child];
    group.active = beam_.nodes[child].active;
    while (child < last_child && beam_.nodes[child].active == group.active) ++child;
    group.last = work_.stack_start_[child];
    if (group.first == group.last) continue;
    work_.group_mark_[group.active] = work_.node_stamp_;
    double tags = 0;
    for (std::uint32_t i = group.first; i < group.last; ++i) {
      group.across += work_.sources_[i].across;
      tags += work_.sources_[i].across_tags;
    }
    if (tags > 0) work_.tag_groups_.push_back({group.active, group.first, group.last, tags, 0, 0});
    if (node_.within + group.across < careful * threshold_) continue;
    if (node_.within > 0) group.expected = grammar_.progeny(row, group.active);
    if (group.expected > 0) group.within = find_parents(group.active, group.expected);
    if (group.within + group.across < careful * threshold_) continue;
    if (group.last - group.first > most_listed)
      add_up(group);
    else
      look_through(group);
  }
}

// Finds how the stacks of the node make a symbol; returns what they bring at most to an element with it.
double StackExpansion::find_parents(std::uint32_t symbol, double expected) {
  double most = 0;
  work_.parents_.clear();
  for (std::uint32_t i = node_.first; i < node_.last; ++i) {
    const WordView::Parent* found = nullptr;
    if (work_.sources_[i].share > 0) {
      const auto parents = word_.parents(plans_.plan(work_.sources_[i].plan).parents);
      const auto place = std::ranges::lower_bound(parents, symbol, {}, &WordView::Parent::symbol);
      if (place != parents.end() && place->symbol == symbol) found = &*place;
    }
    work_.parents_.push_back(found);
    if (found != nullptr) most += work_.sources_[i].share * (expected * found->largest);
  }
  return most;
}

// A group of many sources: all that they bring is added up, and all that the stacks of the node bring.
void StackExpansion::add_up(const Group& group) {
  for (std::uint32_t i = group.first; i < group.last; ++i) {
    const Source& source = work_.sources_[i];
    if (source.across == 0) continue;
    for (const WordPlans::Right& right : plans_.rights(source.cross)) {
      double& sum = work_.right_sum_[right.symbol];
      if (sum == 0) work_.rights_.emplace_back(right.symbol, right.row);
      sum += source.share * right.value;
    }
  }
  if (group.within > 0) add_within();
  for (const auto& [right, row] : work_.rights_) {
    emit(group.active, right, row, work_.right_sum_[right], group.expected, work_.within_sum_[right]);
    work_.right_sum_[right] = work_.within_sum_[right] = 0;
  }
  work_.rights_.clear();
}

// Adds up what the stacks of the node bring to elements with the symbol that was found, by right child.
void StackExpansion::add_within() {
  for (std::uint32_t i = node_.first; i < node_.last; ++i) {
    const WordView::Parent* parent = work_.parents_[i - node_.first];
    if (parent == nullptr) continue;
    plans_.view().list(*parent, node_.level);
    const double share = own_share(i);
    for (const auto& [right, row, value] : word_.listed(*parent)) {
      double& sum = work_.within_sum_[right];
      if (sum == 0 && work_.right_sum_[right] == 0) work_.rights_.emplace_back(right, row);
      sum += share * value;
    }
  }
}

// A group of few sources: they are looked through as far as an element that reaches the threshold must get something
// from one of them, and so are the stacks of the node; what the others bring is looked up.
void StackExpansion::look_through(const Group& group) {
  double within = threshold_ / 2, across = threshold_ / 2;
  if (group.within < within) {
    across = threshold_ - group.within;
    within = group.within;
  } else if (group.across < across) {
    within = threshold_ - group.across;
    across = group.across;
  }
  if (group.within > 0)
    for (const WordView::Parent* parent : work_.parents_)
      if (parent != nullptr) plans_.view().list(*parent, node_.level);
  const std::uint64_t mark = ++work_.group_stamp_;
  const bool single = group.last - group.first == 1;
  for (std::uint32_t i = group.first; i < group.last; ++i) {
    const Source& source = work_.sources_[i];
    if (source.across == 0) continue;
    const double least = careful * across / group.across * source.across;
    for (const WordPlans::Right& right : plans_.sorted_rights(source.cross)) {
      if (source.share * right.reach < least) break;
      if (work_.right_mark_[right.symbol] == mark) continue;
      work_.right_mark_[right.symbol] = mark;
      const double value = single ? source.share * right.value : sum_across(group, right.symbol);
      const double own = group.within > 0 ? sum_within(right.symbol) : 0.0;
      emit(group.active, right.symbol, right.row, value, group.expected, own);
    }
  }
  if (group.within == 0) return;
  for (std::uint32_t i = node_.first; i < node_.last; ++i) {
    const WordView::Parent* parent = work_.parents_[i - node_.first];
    if (parent == nullptr) continue;
    const double scale = work_.sources_[i].share * group.expected;
    const double least = careful * within / group.within * (scale * parent->largest);
    for (const auto& [right, row, value] : word_.listed(*parent)) {
      if (scale * (value * word_.largest_emission(row)) < least || work_.right_mark_[right] == mark) continue;
      work_.right_mark_[right] = mark;
      emit(group.active, right, row, sum_across(group, right), group.expected, sum_within(right));
    }
  }
}

// What the sources of a group bring to the element with a right child.
double StackExpansion::sum_across(const Group& group, std::uint32_t right) const {
  double sum = 0;
  for (std::uint32_t i = group.first; i < group.last; ++i) {
    const Source& source = work_.sources_[i];
    if (source.across > 0) sum += source.share * plans_.cross_value(plans_.cross(source.cross), right);
  }
  return sum;
}

// What the stacks of the node bring to the element with the symbol that was found and a right child, before it is
// multiplied by how often the symbol is expected.
double StackExpansion::sum_within(std::uint32_t right) const {
  double sum = 0;
  for (std::uint32_t i = node_.first; i < node_.last; ++i) {
    const WordView::Parent* parent = work_.parents_[i - node_.first];
    if (parent == nullptr) continue;
    const auto rules = word_.listed(*parent);
    const auto rule = std::ranges::lower_bound(rules, right, {}, &WordView::Rule::right);
    if (rule != rules.end() && rule->right == right) sum += own_share(i) * rule->value;
  }
  return sum;
}

// The only stack of a node makes symbols that no element of the beam has: what it brings is all.
void StackExpansion::expand_alone() {
  const Source& source = work_.sources_[node_.first];
  if (source.within == 0 || source.within < careful * threshold_) return;
  plans_.list(source.plan, careful * careful * threshold_ / source.share);
  const WordPlans::Plan& plan = plans_.plan(source.plan);
  const auto parents = word_.parents(plan.parents);
  for (const auto& [reach, expected, place] : plans_.made(plan)) {
    if (source.share * reach < careful * threshold_) break;
    const WordView::Parent& parent = parents[place];
    if (work_.group_mark_[parent.symbol] == work_.node_stamp_) continue;
    plans_.view().list(parent, node_.level);
    for (const auto& [right, row, value] : word_.listed(parent)) emit(parent.symbol, right, row, 0.0, expected, value);
  }
}

// Several stacks of a node make symbols that no element of the beam has.
void StackExpansion::expand_together() {
  for (std::uint32_t i = node_.first; i < node_.last; ++i) {
    const Source& source = work_.sources_[i];
    if (source.within == 0) continue;
    const double least = careful * threshold_ / node_.within * source.within;
    plans_.list(source.plan, careful * least / source.share);
    const WordPlans::Plan& plan = plans_.plan(source.plan);
    const auto parents = word_.parents(plan.parents);
    for (const auto& [reach, expected, place] : plans_.made(plan)) {
      if (source.share * reach < least) break;
      const std::uint32_t symbol = parents[place].symbol;
      if (work_.group_mark_[symbol] == work_.node_stamp_) continue;
      work_.group_mark_[symbol] = work_.node_stamp_;
      if (find_parents(symbol, expected) < careful * threshold_) continue;
      add_within();
      for (const auto& [right, row] : work_.rights_) {
        emit(symbol, right, row, 0.0, expected, work_.within_sum_[right]);
        work_.within_sum_[right] = 0;
      }
      work_.rights_.clear();
    }
  }
}

// Stacks without a new element: an active symbol whose right child is a tag of the word.
void StackExpansion::expand_tops(std::int32_t row) {
  double within = 0, across = 0;
  for (std::uint32_t i = node_.first; i < node_.last; ++i) within += work_.sources_[i].within_top;
  for (const Group& group : work_.tag_groups_) across = std::max(across, group.across);
  if (within + across < careful * threshold_) return;
  if (node_.last - node_.first == 1)
    expand_top_alone();
  else
    expand_tops_together(row, within);
}

// Those of an only stack, with what comes from one element deeper.
void StackExpansion::expand_top_alone() {
  const Source& source = work_.sources_[node_.first];
  for (const Group& group : work_.tag_groups_) {
    add_tags(group);
    work_.top_sum_[group.active] = take_tags(0);
    work_.tops_.push_back(group.active);
  }
  if (source.within_top > 0) {
    plans_.list(source.plan, careful * threshold_ / source.share);
    for (const auto& [active, value] : plans_.tops(plans_.plan(source.plan))) {
      double& sum = work_.top_sum_[active];
      if (sum > 0) {
        sum += source.share * value;
      } else if (work_.tag_groups_.empty() && source.share * value < careful * threshold_) {
        break;
      } else {
        add({source.share * value, node_.node, no_symbol, no_symbol, active});
      }
    }
  }
  for (const std::uint32_t active : work_.tops_) {
    add({work_.top_sum_[active], node_.node, no_symbol, no_symbol, active});
    work_.top_sum_[active] = 0;
  }
  work_.tops_.clear();
}

// Those of several stacks.
void StackExpansion::expand_tops_together(std::int32_t row, double within) {
  const std::uint64_t mark = ++work_.group_stamp_;
  for (const Group& group : work_.tag_groups_) {
    work_.right_mark_[group.active] = mark;
    if (within + group.across < careful * threshold_) continue;
    const double expected = within > 0 ? grammar_.progeny(row, group.active) : 0.0;
    add_tags(group);
    if (expected > 0) {
      find_parents(group.active, expected);
      add_within_tags();
    }
    add({take_tags(expected), node_.node, no_symbol, no_symbol, group.active});
  }
  if (within < careful * threshold_) return;
  for (std::uint32_t i = node_.first; i < node_.last; ++i) {
    const Source& source = work_.sources_[i];
    if (source.within_top == 0) continue;
    const double least = careful * threshold_ / within * source.within_top;
    plans_.list(source.plan, careful * threshold_ / source.share);
    for (const auto& [active, value] : plans_.tops(plans_.plan(source.plan))) {
      if (source.share * value < least) break;
      if (work_.right_mark_[active] == mark) continue;
      work_.right_mark_[active] = mark;
      const double expected = grammar_.progeny(row, active);
      find_parents(active, expected);
      add_within_tags();
      add({take_tags(expected), node_.node, no_symbol, no_symbol, active});
    }
  }
}

// Adds up what the sources of a group bring, by the tag that is awaited.
void StackExpansion::add_tags(const Group& group) {
  for (std::uint32_t i = group.first; i < group.last; ++i) {
    if (work_.sources_[i].across_tags == 0) continue;
    const WordPlans::CrossPlan& cross = plans_.cross(work_.sources_[i].cross);
    const double* values = grammar_.cross_values(cross.level);
    for (std::size_t rule = cross.rules.last; rule-- > cross.rules.first;) {
      const std::uint32_t right = grammar_.cross_right(rule);
      if (!grammar_.is_tag(right)) break;
      if (values[rule] * word_.tag_value(right) == 0) continue;
      double& sum = work_.right_sum_[right];
      if (sum == 0) work_.rights_.emplace_back(right, -1);
      sum += work_.sources_[i].share * values[rule];
    }
  }
}

// Adds up what the stacks of the node bring to elements with the symbol that was found, by the tag that is awaited.
void StackExpansion::add_within_tags() {
  const double* values = grammar_.left_values(node_.level);
  for (std::uint32_t i = node_.first; i < node_.last; ++i) {
    const WordView::Parent* parent = work_.parents_[i - node_.first];
    if (parent == nullptr) continue;
    for (std::uint32_t rule = parent->tags; rule < parent->last; ++rule) {
      const std::uint32_t right = grammar_.left_right(rule);
      if (values[rule] * word_.tag_value(right) == 0) continue;
      double& sum = work_.within_sum_[right];
      if (sum == 0 && work_.right_sum_[right] == 0) work_.rights_.emplace_back(right, -1);
      sum += work_.sources_[i].share * values[rule];
    }
  }
}

// The probability that one of the tags that were added up emits the word.
double StackExpansion::take_tags(double expected) {
  double sum = 0;
  for (const auto& [right, row] : work_.rights_) {
    sum += (work_.right_sum_[right] + expected * work_.within_sum_[right]) * word_.tag_value(right);
    work_.right_sum_[right] = work_.within_sum_[right] = 0;
  }
  work_.rights_.clear();
  return sum;
}

// The tags below an element that may reach the threshold.
void StackExpansion::emit_tags(const Candidate& element, std::int32_t row, double across, double within) {
  for (const auto& [tag, emitted] : word_.row_emissions(row)) {
    const double weight = across == 0 ? within * emitted * node_.share : element.value * emitted;
    add({weight, element.node, element.active, element.awaited, tag});
  }
}

// Forgets all candidates.
void StackExpansion::begin(double threshold) {
  work_.candidates_.clear();
  for (std::uint32_t bucket = work_.lowest_bucket_; bucket <= work_.highest_bucket_; ++bucket)
    work_.bucket_size_[bucket] = 0;
  work_.lowest_bucket_ = static_cast<std::uint32_t>(buckets);
  work_.highest_bucket_ = 0;
  threshold_ = threshold;
  largest_ = 0;
  bucket_ = bucket_of(threshold);
  above_ = 0;
}

void StackExpansion::add(const Candidate& candidate) {
  if (!(candidate.value > 0) || candidate.value < threshold_) return;
  const std::uint32_t bucket = bucket_of(candidate.value);
  if (candidate.value > largest_) {
    largest_ = candidate.value;
    threshold_ = std::max(threshold_, largest_ * options_.ratio);
    work_.highest_bucket_ = bucket;
  }
  work_.lowest_bucket_ = std::min(work_.lowest_bucket_, bucket);
  work_.candidates_.push_back(candidate);
  ++work_.bucket_size_[bucket];
  above_ += bucket > bucket_;
  if (above_ >= options_.beam) {
    bucket_ = std::max(bucket_, work_.lowest_bucket_ - 1);  // nothing is in those below
    while (above_ >= options_.beam) above_ -= work_.bucket_size_[++bucket_];
    threshold_ = std::max(threshold_, least_of(bucket_));
  }
  if (work_.candidates_.size() >= limit_) {
    std::erase_if(work_.candidates_, [this](const Candidate& each) { return each.value < threshold_; });
    limit_ = std::max(limit_, 2 * work_.candidates_.size());
  }
}

// Keeps the heaviest, in the order in which they came.
void StackExpansion::prune() {
  auto& found = work_.candidates_;
  std::erase_if(found, [this](const Candidate& each) { return each.value < threshold_; });
  if (found.size() <= options_.beam) return;
  // Those of one bucket are in doubt.
  auto& values = work_.values_;
  values.clear();
  std::size_t room = options_.beam;
  for (const Candidate& each : found) {
    if (bucket_of(each.value) == bucket_)
      values.push_back(each.value);
    else
      --room;
  }
  const auto last = values.begin() + static_cast<std::ptrdiff_t>(room) - 1;
  std::nth_element(values.begin(), last, values.end(), std::greater<>());
  threshold_ = *last;
  room -= static_cast<std::size_t>(
      std::count_if(values.begin(), values.end(), [this](double each) { return each > threshold_; }));
  // Of those that weigh the same, the first in the order of their symbols stay.
  std::vector<std::pair<std::vector<std::uint32_t>, std::size_t>> ties;
  if (static_cast<std::size_t>(std::count(values.begin(), values.end(), threshold_)) > room) {
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i].value == threshold_) ties.emplace_back(symbols_of(found[i]), i);
    std::sort(ties.begin(), ties.end());
    for (std::size_t i = room; i < ties.size(); ++i) found[ties[i].second].value = 0;
  }
  std::erase_if(found, [this](const Candidate& each) { return each.value < threshold_; });
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

std::pair<std::shared_ptr<HhmmBeam>, double> StackExpansion::new_beam(std::vector<std::uint32_t> before) {
  prune();
  auto made = std::make_shared<HhmmBeam>();
  made->single = options_.single;
  made->before = std::move(before);
  place_nodes(*made);
  const auto& found = work_.candidates_;
  // Stacks by node; those whose deepest element is an old one come first, because their symbol is no tag.
  auto& start = work_.new_start_;
  start.assign(made->nodes.size() + 1, 0);
  for (const std::uint32_t node : work_.node_of_) ++start[node + 1];
  for (std::size_t node = 1; node < start.size(); ++node) start[node] += start[node - 1];
  made->stacks.resize(found.size());
  made->weights.resize(found.size());
  for (const bool pushed : {false, true})
    for (std::size_t i = 0; i < found.size(); ++i) {
      if ((found[i].active != no_symbol) != pushed) continue;
      const std::uint32_t place = start[work_.node_of_[i]]++;
      made->stacks[place] = {work_.node_of_[i], found[i].top};
      made->weights[place] = found[i].value;
    }
  double kept = 0;
  for (const double weight : made->weights) kept += weight;
  for (double& weight : made->weights) {
    weight /= kept;
    if (options_.single) weight = static_cast<double>(static_cast<float>(weight));
  }
  made->set_hash();
  return {made, kept};
}

// Puts the nodes of the old beam that are still needed and those of new elements into their order; finds the node of
// each candidate.
void StackExpansion::place_nodes(HhmmBeam& made) {
  auto& found = work_.candidates_;
  const auto old_nodes = static_cast<std::uint32_t>(beam_.nodes.size());
  auto& used = work_.used_;
  used.assign(old_nodes, 0);
  used[0] = 1;
  for (const Candidate& each : found)
    for (std::uint32_t node = each.node; !used[node]; node = beam_.nodes[node].parent) used[node] = 1;
  work_.place_.assign(old_nodes, 0);
  work_.node_of_.resize(found.size());
  made.nodes.reserve(found.size() + old_nodes);
  std::size_t next = 0;
  for (std::uint32_t node = 0; node < old_nodes; ++node) {
    if (!used[node]) continue;
    const std::uint32_t place = work_.place_[node];
    const std::size_t first = next;
    while (next < found.size() && found[next].node == node) ++next;
    std::sort(found.begin() + static_cast<std::ptrdiff_t>(first), found.begin() + static_cast<std::ptrdiff_t>(next),
              [](const Candidate& a, const Candidate& b) {
                return std::tie(a.active, a.awaited, a.top) < std::tie(b.active, b.awaited, b.top);
              });
    std::uint32_t child = beam_.initial ? 1 : work_.child_start_[node];
    const std::uint32_t last_child = beam_.initial ? 1 : work_.child_start_[node + 1];
    // Children up to an element; whether the last of them is just that.
    const auto take_children = [&](std::uint32_t active, std::uint32_t awaited) {
      for (; child < last_child; ++child) {
        const HhmmBeam::Node& old = beam_.nodes[child];
        if (std::tie(old.active, old.awaited) > std::tie(active, awaited)) return;
        if (!used[child]) continue;
        work_.place_[child] = static_cast<std::uint32_t>(made.nodes.size());
        made.nodes.push_back({place, old.active, old.awaited});
      }
    };
    for (std::size_t i = first; i < next; ++i) {
      const Candidate& each = found[i];
      if (each.active == no_symbol) {
        work_.node_of_[i] = place;
        continue;
      }
      take_children(each.active, each.awaited);
      const HhmmBeam::Node wanted{place, each.active, each.awaited};
      if (!(made.nodes.back() == wanted)) made.nodes.push_back(wanted);
      work_.node_of_[i] = static_cast<std::uint32_t>(made.nodes.size()) - 1;
    }
    take_children(no_symbol, no_symbol);
  }
}

}  // namespace treelm
