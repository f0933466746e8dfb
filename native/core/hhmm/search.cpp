#include "hhmm/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/error.h"

namespace treelm {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

double log_or_none(double value) { return value > 0 ? std::log(value) : minus_infinity; }

}  // namespace

HhmmSearch::HhmmSearch(std::shared_ptr<const HhmmGrammar> grammar, HhmmOptions options)
    : grammar_(std::move(grammar)), options_(options) {
  if (!(options.ratio >= 0 && options.ratio < 1) || !(options.epsilon >= 0 && options.epsilon < 1))
    throw Error(ErrorCode::argument, "the ratio of a beam and the share of unigrams must lie in [0, 1)");
  if (options.beam == 0) options_.beam = std::numeric_limits<std::size_t>::max() / 8;
}

SharedBeam HhmmSearch::initial() const {
  auto beam = std::make_shared<HhmmBeam>();
  beam->initial = true;
  beam->single = options_.single;
  beam->before.assign(grammar_->context_length(), grammar_->pad());
  beam->set_hash();
  return beam;
}

HhmmStep HhmmSearch::advance(const HhmmBeam& beam, std::uint32_t word, Workspace& work) const {
  if (word >= grammar_->words()) throw Error(ErrorCode::argument, "a word id is out of range");
  work.context().show(beam.before);
  const std::span<const Emission> emissions = work.context().emissions(word);
  WordPlans& plans = grammar_->contexts() ? work.memo().turn_to(emissions) : work.memo().turn_to(word);
  return advance(beam, emissions, grammar_->unigram(word), plans, words_before(beam.before, word), work);
}

HhmmStep HhmmSearch::advance(const HhmmBeam& beam, std::span<const Emission> emissions, double unigram,
                             Workspace& work) const {
  if (grammar_->contexts()) throw Error(ErrorCode::argument, "a word without an id cannot be remembered");
  return advance(beam, emissions, unigram, work.memo().turn_to(emissions), {}, work);
}

HhmmStep HhmmSearch::advance(const HhmmBeam& beam, std::span<const Emission> emissions, double unigram,
                             WordPlans& plans, std::vector<std::uint32_t> before, Workspace& work) const {
  StackExpansion expansion(*grammar_, options_, beam, emissions, plans, work);
  const double total = expansion.run();
  double mass = 0;
  for (const double weight : beam.weights) mass += weight;
  if (beam.initial) mass = 1;
  const double unseen = options_.epsilon * (1 - grammar_->end_share()) * unigram;
  if (!(total > 0) || !(mass > 0)) return restart(emissions, log_or_none(unseen), std::move(before));
  HhmmStep step;
  step.log_prob = std::min(0.0, log_or_none((1 - options_.epsilon) * (total / mass) + unseen));
  const auto [made, kept] = expansion.new_beam(std::move(before));
  step.log_mass = std::log(kept) - std::log(mass);
  step.kept = std::min(1.0, kept / total);
  step.beam = made;
  return step;
}

HhmmStep HhmmSearch::restart(std::span<const Emission> emissions, double log_prob,
                             std::vector<std::uint32_t> before) const {
  auto made = std::make_shared<HhmmBeam>();
  made->before = std::move(before);
  made->single = options_.single;
  HhmmStep step;
  step.log_prob = step.log_mass = log_prob;
  if (options_.epsilon > 0) {
    step.restarted = true;
    const std::int32_t row = grammar_->row(1, 0);
    double sum = 0;
    const auto add = [&](std::uint32_t tag, double value) {
      if (!(value > 0) || tag == grammar_->end()) return;
      made->stacks.push_back({0, tag});
      made->weights.push_back(value);
      sum += value;
    };
    for (const auto& [tag, value] : emissions) add(tag, grammar_->progeny(row, tag) * value);
    if (sum == 0 && row >= 0) {
      const auto [symbols, values] = grammar_->row_view(row);
      for (std::size_t i = 0; i < symbols.size(); ++i)
        if (grammar_->is_tag(symbols[i])) add(symbols[i], values[i]);
    }
    for (double& weight : made->weights) {
      weight /= sum;
      if (options_.single) weight = static_cast<float>(weight);
    }
    step.kept = 1;
  }
  made->set_hash();
  step.beam = made;
  return step;
}

double HhmmSearch::finish(const HhmmBeam& beam, Workspace& work) const {
  ContextView& context = work.context();
  context.show(beam.before);
  double sum = 0, before = 0;
  const std::int32_t row = grammar_->row(1, 0);
  const double* values = grammar_->cross_values(0);
  for (std::size_t i = 0; i < beam.stacks.size(); ++i) {
    before += beam.weights[i];
    if (beam.stacks[i].node != 0) continue;
    const std::uint32_t active = beam.stacks[i].active;
    const double expected = grammar_->progeny(row, active) * context.sum(1, 0, active);
    if (!(expected > 0)) continue;
    const auto [first, last] = grammar_->by_parent(0, active);
    for (std::size_t place = first; place < last; ++place)
      sum += context.factor(grammar_->end()) * beam.weights[i] * values[place] / expected;
  }
  const double share = before > 0 ? sum / before : 0.0;
  return std::min(0.0, log_or_none((1 - options_.epsilon) * share + options_.epsilon * grammar_->end_share()));
}

std::vector<double> HhmmSearch::next_words(const HhmmBeam& beam, Workspace& work) const {
  const std::vector<double> tags = next_tags(beam, work);
  std::vector<double> found(grammar_->words(), 0.0);
  for (std::uint32_t word = 0; word < found.size(); ++word)
    for (const Emission& each : grammar_->emissions(word))
      if (tags[each.tag] > 0) found[word] += tags[each.tag] * work.context().word_probability(word, each);
  return found;
}

std::vector<double> HhmmSearch::emissions(const HhmmBeam& beam, std::uint32_t word, Workspace& work) const {
  if (word >= grammar_->words()) throw Error(ErrorCode::argument, "a word does not exist");
  work.context().show(beam.before);
  std::vector<double> found;
  for (const Emission& each : grammar_->emissions(word)) found.push_back(work.context().word_probability(word, each));
  return found;
}

// The tags of each stack have factors, and are divided by their sum.
std::vector<double> HhmmSearch::weighed_tags(const HhmmBeam& beam, ContextView& context) const {
  const std::uint32_t phrasal = grammar_->phrasal();
  std::vector<double> tags(grammar_->symbols(), 0.0);
  const auto add = [&](double mass, double sum, std::span<const double> shares) {
    if (!(sum > 0)) return;
    for (std::size_t tag = 0; tag < shares.size(); ++tag) tags[phrasal + tag] += mass / sum * shares[tag];
  };
  if (beam.initial) add(1.0, context.first_sum(), context.next_tags().first_shares());
  const std::vector<std::uint8_t> depths = beam.node_depths();
  double mass = 0;
  for (const double weight : beam.weights) mass += weight;
  for (std::size_t i = 0; i < beam.stacks.size(); ++i) {
    const auto [node, active] = beam.stacks[i];
    const std::uint32_t level = depths[node] + 1u, awaited = beam.nodes[node].awaited;
    const double sum = context.sum(level, awaited, active);
    add(beam.weights[i] / mass, sum, context.next_tags().shares(level, awaited, active));
  }
  for (std::uint32_t tag = phrasal; tag < tags.size(); ++tag) tags[tag] *= context.factor(tag);
  return tags;
}

std::vector<double> HhmmSearch::next_tags(const HhmmBeam& beam, Workspace& work) const {
  work.context().show(beam.before);
  if (work.context().weighs_tags()) return weighed_tags(beam, work.context());
  const HhmmGrammar& grammar = *grammar_;
  std::vector<double> tags(grammar.symbols(), 0.0);
  const auto add_row = [&](std::int32_t row, double mass) {
    if (row < 0) return;
    const auto [symbols, values] = grammar.row_view(row);
    for (std::size_t i = 0; i < symbols.size(); ++i)
      if (grammar.is_tag(symbols[i])) tags[symbols[i]] += mass * values[i];
  };
  if (beam.initial) {
    add_row(grammar.row(1, 0), 1.0);
    return tags;
  }
  // Mass that awaits a symbol at a level; stacks that look the same from below are taken together.
  std::vector<double> awaited(std::size_t{grammar.symbols()} * (grammar.depth() + 1), 0.0);
  const std::vector<std::uint8_t> depths = beam.node_depths();
  std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, double>> keys;
  double before = 0;
  for (std::size_t i = 0; i < beam.stacks.size(); ++i) {
    const auto [node, active] = beam.stacks[i];
    keys.emplace_back(depths[node] + 1u, beam.nodes[node].awaited, active, beam.weights[i]);
    before += beam.weights[i];
  }
  std::sort(keys.begin(), keys.end());
  for (std::size_t i = 0; i < keys.size();) {
    const auto [level, above, active, unused] = keys[i];
    double mass = 0;
    for (; i < keys.size() && std::get<0>(keys[i]) == level && std::get<1>(keys[i]) == above &&
           std::get<2>(keys[i]) == active;
         ++i)
      mass += std::get<3>(keys[i]);
    const std::int32_t row = grammar.row(level, above);
    const double expected = grammar.progeny(row, active);
    if (!(expected > 0)) continue;
    const double share = mass / before / expected;
    const auto cross = grammar.by_parent(above, active);
    double* up = awaited.data() + std::size_t{level - 1} * grammar.symbols();
    for (std::size_t place = cross.first; place < cross.last; ++place)
      up[grammar.cross_right(place)] += share * grammar.cross_values(level - 1)[place];
    if (level > grammar.depth()) continue;
    double* here = awaited.data() + std::size_t{level} * grammar.symbols();
    const double* values = grammar.left_values(level);
    const auto parents = grammar.left_parents(active);
    for (std::size_t i = 0; i + 1 < parents.size(); ++i) {
      const double number = grammar.progeny(row, parents[i].symbol);
      for (std::size_t rule = parents[i].first; rule < parents[i + 1].first; ++rule)
        here[grammar.left_right(rule)] += share * number * values[rule];
    }
  }
  for (std::uint32_t level = 0; level <= grammar.depth(); ++level)
    for (std::uint32_t symbol = 0; symbol < grammar.symbols(); ++symbol) {
      const double mass = awaited[std::size_t{level} * grammar.symbols() + symbol];
      if (mass == 0) continue;
      if (grammar.is_tag(symbol))
        tags[symbol] += mass;
      else
        add_row(grammar.row(level + 1, symbol), mass);
    }
  return tags;
}

double HhmmSearch::reach(const HhmmBeam& beam, std::span<const Emission> emissions, Workspace& work) const {
  // A word of the unigram model needs no tag: all but the end is a place for it.
  const double anywhere = options_.epsilon * (1 - grammar_->end_share());
  double sum = 0;
  if (beam.initial || !beam.stacks.empty()) {
    const std::vector<double> tags = next_tags(beam, work);
    for (const auto& [tag, value] : emissions)
      if (value > 0 && tag != grammar_->end()) sum += tags[tag];
  }
  return std::min(1.0, (1 - options_.epsilon) * sum + anywhere);
}

}  // namespace treelm
