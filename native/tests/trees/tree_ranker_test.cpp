#include "trees/tree_ranker.h"

#include <algorithm>
#include <cmath>

#include "tests/harness.h"
#include "trees/rank_features.h"

using namespace treelm;
using treelm::test::english;
using treelm::test::read;
using treelm::test::verbatim_recipe;

namespace {

constexpr const char* two_readings =
    "(ROOT (S (NP (PRP They)) (VP (VBD saw) (NP (NP (NNS stars)) (PP (IN with) (NP (NNS lenses)))))))\n"
    "(ROOT (S (NP (PRP They)) (VP (VBD saw) (NP (NNS stars)) (PP (IN with) (NP (NNS lenses))))))\n";

PackedTrees readings(std::size_t times = 1) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += two_readings;
  return read(verbatim_recipe(), text);
}

// Lists of two readings each, of which the second is the right one.
RankingLists lists_of(std::size_t count) {
  RankingLists lists;
  std::vector<std::uint64_t> starts{0};
  std::vector<double> scores;
  std::vector<std::uint8_t> best;
  for (std::size_t i = 0; i < count; ++i) {
    starts.push_back(starts.back() + 2);
    scores.insert(scores.end(), {-20.0, -21.0});
    best.insert(best.end(), {0, 1});
  }
  lists.add(readings(count), *english(), starts, scores, best, 2);
  return lists;
}

std::vector<std::uint64_t> kept(RankingLists& lists, std::uint32_t least) {
  const std::vector<std::uint64_t> features = lists.frequent(least);
  lists.keep(features);
  return features;
}

}  // namespace

TEST("tree ranker: hashes are those of FNV-1a") {
  CHECK_EQ(RankFeatures::hash(""), 0xCBF29CE484222325ull);
  CHECK_EQ(RankFeatures::hash("a"), 0xAF63DC4C8601EC8Cull);
  CHECK_EQ(RankFeatures::hash("foobar"), 0x85944171F73967E8ull);
  CHECK_EQ(RankFeatures::hash("bar", RankFeatures::hash("foo")), RankFeatures::hash("foobar"));
}

TEST("tree ranker: a tree has the weights of its features, each as often as it occurs") {
  const std::uint64_t noun_phrase = RankFeatures::hash("rule NP -> NNS");
  const std::uint64_t attached = RankFeatures::hash("rule VP -> VBD NP PP");
  std::vector<std::uint64_t> features{noun_phrase, attached};
  std::vector<float> weights{0.5f, 4.0f};
  if (features[0] > features[1]) {
    std::swap(features[0], features[1]);
    std::swap(weights[0], weights[1]);
  }
  const TreeRanker ranker(features, weights);
  CHECK_EQ(ranker.weight(noun_phrase), 0.5f);
  CHECK_EQ(ranker.weight(noun_phrase + 1), 0.0f);
  const std::vector<double> scores = ranker.score(readings(), *english(), 1);
  CHECK_EQ(scores[0], 1.0);
  CHECK_EQ(scores[1], 5.0);
  CHECK_EQ(TreeRanker({}, {}).score(readings(), *english(), 1)[1], 0.0);
}

TEST("tree ranker: features that do not ascend, or have no weight, are refused") {
  CHECK_THROWS_CODE(TreeRanker({2, 1}, {1, 1}), ErrorCode::argument);
  CHECK_THROWS_CODE(TreeRanker({1, 1}, {1, 1}), ErrorCode::argument);
  CHECK_THROWS_CODE(TreeRanker({1, 2}, {1}), ErrorCode::argument);
}

TEST("tree ranker: features all of whose hashes begin alike are found") {
  std::vector<std::uint64_t> features(1000);
  for (std::size_t i = 0; i < features.size(); ++i) features[i] = 0xABCDEF0000000000ull + 7 * i;
  std::vector<float> weights(features.size());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
  const TreeRanker ranker(features, weights);
  for (std::size_t i = 0; i < features.size(); ++i) CHECK_EQ(ranker.weight(features[i]), static_cast<float>(i));
  CHECK_EQ(ranker.weight(features[0] + 1), 0.0f);
  CHECK_EQ(ranker.weight(~0ull), 0.0f);
}

TEST("tree ranker: only features that tell trees apart are kept") {
  RankingLists lists = lists_of(3);
  CHECK_EQ(lists.size(), 3);
  CHECK_EQ(lists.tree_count(), 6);
  CHECK(lists.frequent(4).empty());
  const std::vector<std::uint64_t> features = kept(lists, 3);
  const auto has = [&](const char* name) { return std::ranges::binary_search(features, RankFeatures::hash(name)); };
  CHECK(has("rule VP -> VBD NP PP"));
  CHECK(has("rule NP -> NP PP"));
  CHECK(!has("rule S -> NP VP"));
  CHECK(!has("word+0 saw VBD"));
}

TEST("tree ranker: the gradient is the slope of the loss, whatever the threads") {
  RankingLists lists = lists_of(5);
  std::vector<double> weights(kept(lists, 1).size(), 0.01), slope, other;
  const double loss = lists.loss(weights, slope, 1);
  CHECK_EQ(lists.loss(weights, other, 3), loss);
  CHECK(slope == other);
  for (std::size_t i = 0; i < weights.size(); i += 5) {
    std::vector<double> moved = weights, ignored;
    moved[i] += 1e-6;
    CHECK(std::abs((lists.loss(moved, ignored, 1) - loss) / 1e-6 - slope[i]) < 1e-4);
  }
}

TEST("tree ranker: learning prefers the right reading, and less so with a larger penalty") {
  RankingLists lists = lists_of(4);
  const std::vector<double> zero(kept(lists, 1).size(), 0.0);
  CHECK_EQ(lists.choose(zero)[0], 0);
  const std::vector<double> weak = lists.fit(zero, 0.01, 100, 1), strong = lists.fit(zero, 10.0, 100, 1);
  for (const std::uint32_t chosen : lists.choose(weak)) CHECK_EQ(chosen, 1);
  std::vector<double> ignored;
  CHECK(lists.loss(weak, ignored, 1) < lists.loss(strong, ignored, 1));
  CHECK(lists.loss(strong, ignored, 1) < lists.loss(zero, ignored, 1));
}

TEST("tree ranker: lists that do not fit their trees are refused") {
  const PackedTrees trees = readings();
  const auto add = [&](std::vector<std::uint64_t> starts, std::vector<double> scores, std::vector<std::uint8_t> best) {
    RankingLists lists;
    lists.add(trees, *english(), starts, scores, best, 1);
  };
  add({0, 2}, {-1, -2}, {1, 1});
  CHECK_THROWS_CODE(add({0, 3}, {-1, -2}, {1, 1}), ErrorCode::argument);
  CHECK_THROWS_CODE(add({0, 2}, {-1}, {1, 1}), ErrorCode::argument);
  CHECK_THROWS_CODE(add({0, 2}, {-1, NAN}, {1, 1}), ErrorCode::argument);
  CHECK_THROWS_CODE(add({0, 2}, {-1, -2}, {0, 0}), ErrorCode::argument);
  RankingLists lists = lists_of(1);
  std::vector<double> gradient;
  CHECK_THROWS_CODE(lists.loss({}, gradient, 1), ErrorCode::argument);
  kept(lists, 1);
  CHECK_THROWS_CODE(lists.add(trees, *english(), std::vector<std::uint64_t>{0, 2}, std::vector<double>{-1, -2},
                              std::vector<std::uint8_t>{1, 0}, 1),
                    ErrorCode::argument);
  CHECK_THROWS_CODE(lists.choose(std::vector<double>{1.0}), ErrorCode::argument);
}
