#include "hhmm/expansion.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "hhmm/search.h"
#include "tests/harness.h"

using namespace treelm;

namespace {

using Stack = std::vector<std::uint32_t>;  // as stack_symbols gives them

struct Dice {
  std::mt19937 random{5};
  std::uint32_t operator()(std::uint32_t sides) { return static_cast<std::uint32_t>(random() % sides); }
};

// Tables of probabilities drawn at random: no grammar, but a search takes them for one.
struct RandomTables {
  std::uint32_t symbols, phrasal, depth;
  std::vector<std::int32_t> rules, row_of, row_symbol, word_tag;
  std::vector<double> left, right, row_value, word_value, unigram;
  std::vector<std::int64_t> row_start{0}, word_start{0};

  RandomTables(Dice& dice, std::uint32_t phrases, std::uint32_t tags, std::uint32_t words, double share)
      : symbols(1 + phrases + tags + 1), phrasal(1 + phrases), depth(1 + dice(3)) {
    // Sometimes a few values only, so that stacks tie.
    const bool few = dice(3) == 0;
    const auto value = [&] { return few ? 1.0 / (2u << dice(6)) : std::exp(-5e-3 * dice(1000)); };
    const auto chosen = [&](double probability) { return dice(1000) < 1000 * probability; };
    for (std::uint32_t parent = 0; parent < phrasal; ++parent)
      for (std::uint32_t one = 1; one + 1 < symbols; ++one)
        for (std::uint32_t two = 1; two < symbols; ++two)
          if ((two + 1 == symbols) == (parent == 0) && chosen(share))
            for (const std::uint32_t symbol : {parent, one, two}) rules.push_back(static_cast<std::int32_t>(symbol));
    for (std::size_t i = 0; i < rules.size() / 3 * (depth + 1); ++i) {
      left.push_back(chosen(0.9) ? value() : 0.0);
      right.push_back(chosen(0.9) ? value() : 0.0);
    }
    const std::uint32_t rows = 2 + dice(6);
    for (std::uint32_t row = 0; row < rows; ++row) {
      for (std::uint32_t symbol = 1; symbol + 1 < symbols; ++symbol)
        if (chosen(0.8)) {
          row_symbol.push_back(static_cast<std::int32_t>(symbol));
          row_value.push_back(2 * value());
        }
      row_start.push_back(static_cast<std::int64_t>(row_symbol.size()));
    }
    for (std::uint32_t i = 0; i < symbols * (depth + 2); ++i)
      row_of.push_back(i % symbols < phrasal && chosen(0.95) ? static_cast<std::int32_t>(dice(rows)) : -1);
    for (std::uint32_t word = 0; word < words; ++word) {
      for (std::uint32_t tag = phrasal; tag + 1 < symbols; ++tag)
        if (chosen(0.5)) {
          word_tag.push_back(static_cast<std::int32_t>(tag));
          word_value.push_back(value());
        }
      word_start.push_back(static_cast<std::int64_t>(word_tag.size()));
      unigram.push_back(0.1);
    }
  }
  HhmmArrays arrays() const {
    return {symbols,    phrasal,   symbols - 1, depth,    rules,      left,    right, row_of, row_start,
            row_symbol, row_value, word_start,  word_tag, word_value, unigram, 0.2,   nullptr};
  }
};

// Every stack that comes next, with its weight: the definition, one stack, one rule and one tag after the other.
std::map<Stack, double> all_next(const RandomTables& tables, const HhmmGrammar& grammar, const HhmmBeam& beam,
                                 std::uint32_t word) {
  std::map<Stack, double> found;
  const std::size_t count = tables.rules.size() / 3;
  const auto emit = [&](Stack stack, std::uint32_t active, std::uint32_t awaited, std::uint32_t level, double value) {
    for (const auto& [tag, emitted] : grammar.emissions(word)) {
      Stack next = stack;
      next.push_back(active);
      double weight = value * emitted;
      if (grammar.is_tag(awaited)) {
        if (awaited != tag) continue;
      } else {
        next.insert(next.end(), {awaited, tag});
        weight *= grammar.progeny(grammar.row(level + 1, awaited), tag);
      }
      if (weight > 0) found[next] += weight;
    }
  };
  if (beam.initial) {
    for (const auto& [tag, emitted] : grammar.emissions(word)) {
      const double weight = grammar.progeny(grammar.row(1, 0), tag) * emitted;
      if (weight > 0) found[{tag}] += weight;
    }
    return found;
  }
  for (std::size_t i = 0; i < beam.stacks.size(); ++i) {
    Stack stack = stack_symbols(beam, beam.stacks[i]);
    const auto level = static_cast<std::uint32_t>(stack.size() / 2) + 1;
    const std::uint32_t active = stack.back(), awaited = level == 1 ? 0 : stack[stack.size() - 2];
    const std::int32_t row = grammar.row(level, awaited);
    const double expected = grammar.progeny(row, active);
    if (!(expected > 0)) continue;
    stack.pop_back();
    for (std::size_t rule = 0; rule < count; ++rule) {
      const auto part = [&](std::size_t which) { return static_cast<std::uint32_t>(tables.rules[3 * rule + which]); };
      if (part(1) != active) continue;
      if (level <= tables.depth && part(0) != 0)
        emit(stack, part(0), part(2), level,
             beam.weights[i] / expected * grammar.progeny(row, part(0)) * tables.left[level * count + rule]);
      if (level > 1 && part(0) == awaited)
        emit(Stack(stack.begin(), stack.end() - 2), stack[stack.size() - 2], part(2), level - 1,
             beam.weights[i] / expected * tables.right[(level - 1) * count + rule]);
    }
  }
  return found;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-11 * std::max(std::abs(a), std::abs(b)); }

}  // namespace

// Thresholds that were guessed, lists that are not read to their end, sums that are looked up: none of it may show.
TEST("hhmm: a step keeps the heaviest of all stacks that come next") {
  Dice dice;
  std::size_t pruned = 0, steps = 0;
  for (int round = 0; round < 450; ++round) {
    const bool large = round % 3 == 0;
    const RandomTables tables(dice, large ? 12 : 2 + dice(3), large ? 5 : 2, 5, large ? 0.12 : 0.4);
    const auto grammar = std::make_shared<const HhmmGrammar>(tables.arrays());
    const std::size_t width = std::size_t{1} << dice(large ? 9 : 5);
    const double ratio = dice(4) == 0 ? 0.01 : 0.0;
    const HhmmSearch search(grammar, {width, ratio, 0, false});
    HhmmSearch::Workspace work(*grammar);
    SharedBeam beam = search.initial();
    for (int t = 0; t < (round % 90 == 1 ? 300 : 8); ++t) {
      const std::uint32_t word = dice(5);
      const std::map<Stack, double> expected = all_next(tables, *grammar, *beam, word);
      const HhmmStep step = search.advance(*beam, word, work);
      double total = 0, before = 0, largest = 0;
      for (const auto& [stack, weight] : expected) {
        total += weight;
        largest = std::max(largest, weight);
      }
      for (const double weight : beam->weights) before += weight;
      if (beam->initial) before = 1;
      ++steps;
      if (total == 0) {
        CHECK(std::isinf(step.log_prob));
        break;
      }
      CHECK(std::abs(step.log_prob - std::min(0.0, std::log(total / before))) < 1e-11);
      std::vector<std::pair<double, Stack>> order;
      for (const auto& [stack, weight] : expected) order.emplace_back(-weight, stack);
      std::sort(order.begin(), order.end());
      const double kept = std::exp(step.log_mass) * before;
      double lightest = largest, sum = 0;
      for (std::size_t i = 0; i < step.beam->stacks.size(); ++i) {
        const auto known = expected.find(stack_symbols(*step.beam, step.beam->stacks[i]));
        CHECK(known != expected.end());
        CHECK(close(step.beam->weights[i] * kept, known->second));
        lightest = std::min(lightest, known->second);
        sum += known->second;
      }
      CHECK(close(sum, kept));
      CHECK(lightest >= ratio * largest * (1 - 1e-11));
      // No stack that was left out is heavier than one that was kept.
      CHECK(step.beam->stacks.size() <= width);
      if (step.beam->stacks.size() < order.size()) {
        ++pruned;
        const double next = -order[step.beam->stacks.size()].first;
        CHECK(next <= lightest * (1 + 1e-11));
        if (step.beam->stacks.size() < width) CHECK(next <= ratio * largest * (1 + 1e-11));
      }
      beam = step.beam;
    }
  }
  CHECK(steps > 1500);
  CHECK(pruned > steps / 4);
}
