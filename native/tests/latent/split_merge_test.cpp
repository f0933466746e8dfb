#include "latent/split_merge.h"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "latent/rule_contraction.h"
#include "latent/rules.h"
#include "tests/harness.h"

using namespace treelm;

namespace {

bool near(double a, double b, double tolerance = 1e-12) { return std::abs(a - b) <= tolerance; }

// The tree (ROOT (A a) (A b)): symbols ROOT and A, rules ROOT -> A A, A -> a, A -> b.
const std::vector<LatentRule> example_rules{{0, 1, 1}, {1, no_symbol, no_symbol}, {1, no_symbol, no_symbol}};
const std::vector<std::int32_t> example_substates{1, 2};
const std::vector<double> example_weights{.1, .4, .3, .2, .9, .2, .1, .8};

LatentTrees example_trees() { return {example_rules, {0, 1, 2}, {1, none, none}, {2, none, none}, {0, 3}}; }

struct Expected {
  std::vector<double> counts, log_probs;
};

Expected expect(const LatentTrees& trees, const std::vector<std::int32_t>& substates,
                const std::vector<double>& weights, std::size_t threads = 1) {
  ThreadPool pool(threads);
  Expected found;
  found.counts.resize(weights.size());
  found.log_probs = trees.expect(substates, weights, found.counts, pool, [] {});
  return found;
}

// Right-branching trees of X over T, with `count` trees of different lengths.
LatentTrees chains(std::size_t count) {
  std::vector<std::uint32_t> rule, left, right, start{0};
  for (std::size_t tree = 0; tree < count; ++tree) {
    const auto length = static_cast<std::uint32_t>(2 + tree % 17);
    std::uint32_t node = start.back();
    rule.push_back(0);  // ROOT -> X
    left.push_back(node + 1);
    right.push_back(none);
    ++node;
    for (std::uint32_t i = 0; i + 1 < length; ++i, node += 2) {
      rule.push_back(1);  // X -> T X
      left.push_back(node + 1);
      right.push_back(node + 2);
      rule.push_back(3 + i % 2);  // T -> a, T -> b
      left.push_back(none);
      right.push_back(none);
    }
    rule.push_back(2);  // X -> T
    left.push_back(node + 1);
    right.push_back(none);
    rule.push_back(3);
    left.push_back(none);
    right.push_back(none);
    start.push_back(static_cast<std::uint32_t>(rule.size()));
  }
  return {{{0, 1, no_symbol}, {1, 2, 1}, {1, 2, no_symbol}, {2, no_symbol, no_symbol}, {2, no_symbol, no_symbol}},
          rule,
          left,
          right,
          start};
}

std::vector<double> random_weights(const RuleBlocks& blocks, std::uint64_t seed) {
  std::vector<double> weights(blocks.total());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = random_uniform(seed, 0, i);
  const std::vector<double> same = weights;
  ThreadPool alone(1);
  normalize_rules(blocks, weights, same, 0, alone);
  return weights;
}

}  // namespace

TEST("expected counts of the worked example") {
  const Expected found = expect(example_trees(), example_substates, example_weights);
  CHECK(near(std::exp(found.log_probs[0]), 0.335));
  const std::vector<double> joint{.009, .288, .006, .032};
  for (std::size_t i = 0; i < 4; ++i) CHECK(near(found.counts[i], joint[i] / .335));
  CHECK(near(found.counts[4], .297 / .335));
  CHECK(near(found.counts[7], .320 / .335));
}

TEST("merging the halves of the worked example costs what the specification says") {
  ThreadPool pool(2);
  const std::vector<double> shares{1, .312 / .67, .358 / .67};
  const std::vector<double> gains =
      example_trees().merge_gains(example_substates, example_weights, shares, pool, [] {});
  CHECK(near(gains[1], -0.4535098, 1e-7));
  CHECK(gains[0] == 0 && gains[2] == 0);
}

TEST("results do not depend on the number of threads") {
  const LatentTrees trees = chains(400);
  const std::vector<std::int32_t> substates{1, 5, 11};
  const RuleBlocks blocks(trees.rules(), substates);
  const std::vector<double> weights = random_weights(blocks, 3);
  const Expected one = expect(trees, substates, weights);
  for (const std::size_t threads : {2, 3, 8}) {
    const Expected several = expect(trees, substates, weights, threads);
    CHECK(one.counts == several.counts);
    CHECK(one.log_probs == several.log_probs);
  }
}

TEST("every node is counted once, and a call leaves nothing behind for the next") {
  const LatentTrees trees = chains(50);
  const std::vector<std::int32_t> small{1, 1, 2}, large{1, 9, 7};
  for (const auto& substates : {large, small, large}) {
    const RuleBlocks blocks(trees.rules(), substates);
    const Expected found = expect(trees, substates, random_weights(blocks, 5));
    const double sum = std::accumulate(found.counts.begin(), found.counts.end(), 0.0);
    CHECK(near(sum, static_cast<double>(trees.nodes()), 1e-8));
  }
}

TEST("impossible trees count nowhere") {
  const LatentTrees trees = chains(20);
  const std::vector<std::int32_t> substates{1, 2, 2};
  std::vector<double> weights = random_weights(RuleBlocks(trees.rules(), substates), 1);
  weights[weights.size() - 1] = weights[weights.size() - 2] = 0;  // no b
  const Expected found = expect(trees, substates, weights);
  std::size_t possible = 0;
  for (const double value : found.log_probs) possible += std::isfinite(value);
  CHECK_EQ(possible, 2);  // those of two words
  CHECK(near(found.counts[0] + found.counts[1], 2));
}

TEST("splits keep what a subcategory weighs") {
  const RuleBlocks before(example_rules, example_substates);
  const std::vector<std::int32_t> doubled{1, 4};
  const RuleBlocks after(example_rules, doubled);
  const std::vector<double> weights = split_rules(before, after, example_weights, 0.01, 1, 1);
  const std::vector<double> totals = substate_totals(after, weights);
  for (const double total : totals) CHECK(near(total, 1));
  CHECK(weights != split_rules(before, after, example_weights, 0.01, 2, 1));
  CHECK(weights == split_rules(before, after, example_weights, 0.01, 1, 1));
}

TEST("trees and rules that do not fit together are refused") {
  using Ids = std::vector<std::uint32_t>;
  const auto make = [](const Ids& rule, const Ids& left, const Ids& right, const Ids& start) {
    LatentTrees(example_rules, rule, left, right, start);
  };
  const Ids rule{0, 1, 2}, left{1, none, none}, right{2, none, none}, start{0, 3};
  const Ids unknown_rule{0, 1, 9}, twice{1, none, none}, missing{none, none, none}, short_start{0, 2}, no_start;
  const Ids looped_rule{0, 1, 0}, looped_left{1, none, 1}, looped_right{2, none, 0};
  make(rule, left, right, start);
  CHECK_THROWS_CODE(make(unknown_rule, left, right, start), ErrorCode::argument);
  CHECK_THROWS_CODE(make(rule, left, twice, start), ErrorCode::argument);
  CHECK_THROWS_CODE(make(rule, left, missing, start), ErrorCode::argument);
  CHECK_THROWS_CODE(make(rule, left, right, short_start), ErrorCode::argument);
  CHECK_THROWS_CODE(make(rule, left, right, no_start), ErrorCode::argument);
  CHECK_THROWS_CODE(make(looped_rule, looped_left, looped_right, start), ErrorCode::argument);
  const std::vector<std::int32_t> zero{1, 0}, huge{1, 5000}, one{1};
  for (const auto& substates : {zero, huge, one})
    CHECK_THROWS_CODE(RuleBlocks(example_rules, substates), ErrorCode::argument);
  const std::vector<double> few(3, 0.1);
  CHECK_THROWS_CODE(expect(example_trees(), example_substates, few), ErrorCode::argument);
}
