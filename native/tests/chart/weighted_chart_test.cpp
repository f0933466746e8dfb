#include "chart/weighted_chart.h"

#include "tests/harness.h"
#include "trees/fragments.h"

using namespace treelm;
using treelm::test::Random;

namespace {

// A small grammar and some sentences, all weights small integers so that there are ties.
struct Weighted {
  std::uint32_t symbols = 5;
  std::vector<std::int32_t> rules;
  std::vector<double> weights, roots, tag_weights;
  std::vector<std::int32_t> tags;
  std::vector<std::int64_t> tag_starts{0}, starts{0};

  explicit Weighted(Random& random) {
    const auto weight = [&] { return static_cast<double>(random.below(5)) - 2; };
    const auto any = [&] { return static_cast<std::int32_t>(random.below(symbols)); };
    for (std::size_t rule = random.below(30); rule-- > 0;) {
      rules.insert(rules.end(), {any(), any(), any()});
      weights.push_back(weight());
    }
    for (std::uint32_t symbol = 0; symbol < symbols; ++symbol)
      roots.push_back(random.below(2) ? weight() : impossible_weight);
    for (int sentence = 0; sentence < 6; ++sentence) {
      for (std::size_t word = random.below(7); word-- > 0;) {
        for (std::int32_t tag = 0; tag < static_cast<std::int32_t>(symbols); ++tag) {
          if (random.below(2)) continue;
          tags.push_back(tag);
          tag_weights.push_back(weight());
        }
        tag_starts.push_back(static_cast<std::int64_t>(tags.size()));
      }
      starts.push_back(static_cast<std::int64_t>(tag_starts.size()) - 1);
    }
  }

  WeightedTrees parse(std::size_t threads, bool plain) const {
    const WeightedChart chart({symbols, rules, weights, roots});
    return chart.parse({{tags, tag_weights, tag_starts}, starts}, threads, no_progress, plain);
  }
};

struct Cut {
  std::vector<std::int64_t> starts{0, 5};
  std::vector<std::int32_t> rules{0, 1, 2, 1, 3}, labels{0, 1, 2, 1, 2}, sizes{5, 2, 1, 2, 1};
  std::vector<double> log_probs{0.0, 0.0, -0.7, -0.7};

  RuleTrees trees() const { return {starts, rules, labels, sizes}; }
};

}  // namespace

TEST("weighted chart: the trees of a dense chart") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const Weighted given(random);
    const WeightedTrees found = given.parse(1 + seed % 2, false), plain = given.parse(1, true);
    CHECK(found.scores == plain.scores && found.branching == plain.branching && found.starts == plain.starts);
    CHECK(found.symbols == plain.symbols && found.rules == plain.rules);
  }
}

TEST("weighted chart: refuses forged arrays") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    Weighted given(random);
    const auto any = [&] { return static_cast<std::int32_t>(random.below(20)) - 5; };
    switch (random.below(5)) {
      case 0: given.rules.push_back(any()); break;
      case 1: given.tags.push_back(any()); break;
      case 2: given.tag_starts[random.below(given.tag_starts.size())] = any(); break;
      case 3: given.starts[random.below(given.starts.size())] = any(); break;
      default: given.roots.resize(random.below(9)); break;
    }
    try {
      given.parse(1, false);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::argument);
    }
  }
}

TEST("fragments: sampled and found again") {
  const Cut cut;
  const Fragments fragments = sample_fragments(cut.trees(), cut.log_probs, 3, {1.0, 0.5, 20, 7}, no_progress);
  CHECK(fragments.counts.size() + 1 == fragments.starts.size());
  const std::vector<std::int32_t> rule_labels{0, 1, 2, 2};
  const FragmentCover cover(fragments.starts, fragments.tokens, fragments.counts, rule_labels, 3);
  const Derivations found = cover.derive(cut.trees(), 1, no_progress);
  CHECK(found.starts.size() == 2 && !found.fragments.empty());
  for (const std::int32_t fragment : found.fragments) CHECK(fragment >= 0);
}

TEST("fragments: refuse forged trees") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    Cut cut;
    const auto any = [&] { return static_cast<std::int32_t>(random.below(9)) - 2; };
    switch (random.below(4)) {
      case 0: cut.sizes[random.below(5)] = any(); break;
      case 1: cut.rules[random.below(5)] = any(); break;
      case 2: cut.labels[random.below(5)] = any(); break;
      default: cut.starts[random.below(2)] = any(); break;
    }
    try {
      sample_fragments(cut.trees(), cut.log_probs, 3, {1.0, 0.5, 2, seed}, no_progress);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::argument);
    }
  }
}
