#include "lattice/model.h"

#include <algorithm>
#include <cmath>

#include "tests/harness.h"

using namespace treelm;

namespace {

constexpr std::int64_t one = std::int64_t{1} << count_bits;

bool close(double a, double b) { return std::abs(a - b) < 1e-9; }

// Last word, last head, topic: nodes (i, j, k) as the word predictor has them.
LatticeShape grid(bool topics) {
  std::vector<LatticeNode> nodes{{{}, {}}, {{1}, {0}}, {{0}, {0}}, {{0, 1}, {1, 2}}};
  if (!topics) return LatticeShape(2, 2, false, nodes);
  nodes = {{{}, {}},   {{2}, {0}},       {{1}, {0}},       {{1, 2}, {1, 2}},
           {{0}, {0}}, {{0, 2}, {1, 4}}, {{0, 1}, {2, 4}}, {{0, 1, 2}, {3, 5, 6}}};
  return LatticeShape(3, 2, true, nodes);
}

CountBuckets buckets() { return CountBuckets({one / 2, one, 2 * one, 4 * one, 8 * one}); }

// Five words, two topics, contexts of a word: enough to disagree about.
std::shared_ptr<LatticeTables> topic_tables(std::size_t threads, std::int64_t factor = 1) {
  LatticeEvents events(grid(true), {3, 2, 4}, threads);
  std::vector<std::uint32_t> columns, outcomes;
  std::vector<std::int64_t> counts;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::uint64_t bits = random_bits(7, 0, i);
    columns.insert(columns.end(), {static_cast<std::uint32_t>(bits % 3), static_cast<std::uint32_t>(bits >> 8 & 1),
                                   static_cast<std::uint32_t>(bits >> 16 & 3)});
    outcomes.push_back(static_cast<std::uint32_t>(bits >> 24 & 1));
    counts.push_back(factor * static_cast<std::int64_t>(bits >> 40));
  }
  events.add(columns.data(), outcomes.data(), counts.data(), counts.size());
  return std::make_shared<LatticeTables>(events);
}

}  // namespace

TEST("rows that are taken out of a collection are sorted, distinct, and add up in another") {
  const auto tables = topic_tables(1);
  LatticeEvents events(grid(true), {3, 2, 4}, 1), other(grid(true), {3, 2, 4}, 1);
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::uint64_t bits = random_bits(7, 0, i);
    const std::uint32_t row[] = {static_cast<std::uint32_t>(bits % 3), static_cast<std::uint32_t>(bits >> 8 & 1),
                                 static_cast<std::uint32_t>(bits >> 16 & 3)};
    const auto outcome = static_cast<std::uint32_t>(bits >> 24 & 1);
    const auto count = static_cast<std::int64_t>(bits >> 40);
    events.add(row, &outcome, &count, 1);
    if (i % 60 == 59 || i == 199) {
      const EventRows rows = events.take();
      CHECK_EQ(rows.columns.size(), 3 * rows.outcomes.size());
      CHECK_EQ(rows.counts.size(), rows.outcomes.size());
      CHECK(rows.outcomes.size() <= 3 * 2 * 4 * 2u);
      other.add(rows.columns.data(), rows.outcomes.data(), rows.counts.data(), rows.counts.size());
      CHECK(events.take().outcomes.empty());
    }
  }
  const LatticeTables added(other);
  for (std::size_t stem = 0; stem < added.shape().stems().size(); ++stem) {
    CHECK(added.stem(stem).stored().keys == tables->stem(stem).stored().keys);
    CHECK(added.stem(stem).stored().counts == tables->stem(stem).stored().counts);
    CHECK(added.stem(stem).stored().topic_counts == tables->stem(stem).stored().topic_counts);
  }
}

TEST("a lattice gives the worked example") {
  LatticeEvents events(grid(false), {2, 2}, 1);
  const std::vector<std::uint32_t> columns{0, 0, 0, 1, 0, 1, 1, 0, 1, 1}, outcomes{0, 0, 1, 1, 0};
  const std::vector<std::int64_t> counts{one, 2 * one, one, 3 * one, one};
  events.add(columns.data(), outcomes.data(), counts.data(), counts.size());
  const auto tables = std::make_shared<LatticeTables>(events);
  LatticeWeights weights(tables->shape(), buckets());
  for (std::size_t b = 1; b < weights.buckets().size(); ++b) {
    weights.of(3, b)[0] = 0.5;
    weights.of(3, b)[1] = weights.of(3, b)[2] = 0.25;
  }
  const std::uint32_t context[] = {0, 0};
  CHECK(close(LatticeModel(tables, weights).prob(context, 0), 0.75));
  ThreadPool pool(1);
  const std::vector<std::uint32_t> rows{0, 0, 0, 0}, seen{0, 1};
  const std::vector<double> times{1, 1};
  const LatticeCheck check(*tables, weights.buckets(), rows, seen, times, pool);
  CHECK(close(check.step(weights, 10, pool, [] {}), std::log(0.75) + std::log(0.25)));
  CHECK(close(weights.of(3, 2)[0], 1.0 / 3));
  CHECK(close(weights.of(3, 2)[1], 3.0 / 8));
  CHECK(close(LatticeModel(tables, weights).prob(context, 0), 31.0 / 48));
}

TEST("probabilities of a lattice are the same asked for in any way, and add up to 1") {
  const auto tables = topic_tables(1);
  const LatticeModel model(tables, LatticeWeights(tables->shape(), buckets()));
  const std::vector<std::uint32_t> topics{0, 1, 2, 3};
  for (std::uint32_t word = 0; word < 4; ++word)
    for (std::uint32_t topic = 0; topic < 4; ++topic) {
      const std::uint32_t columns[] = {word, 1, topic};
      double all[2], by_topic[4];
      model.distribution(columns, all);
      CHECK(close(all[0] + all[1], 1));
      CHECK_EQ(model.prob(columns, 1), all[1]);
      model.topic_probs(columns, 1, topics.data(), 4, by_topic);
      CHECK(close(by_topic[topic], all[1]));
    }
}

TEST("new counts of a lattice reach every node") {
  const auto one_way = topic_tables(1, 3), other = topic_tables(2);
  std::vector<std::int64_t> tripled;
  for (const std::int64_t count : other->stem(other->shape().top_stem()).stored().topic_counts)
    tripled.push_back(3 * count);
  other->refill(tripled);
  for (std::size_t s = 0; s < other->shape().stems().size(); ++s) {
    CHECK(one_way->stem(s).stored().counts == other->stem(s).stored().counts);
    CHECK(one_way->stem(s).stored().topic_counts == other->stem(s).stored().topic_counts);
  }
  const LatticeTables cut = other->cut(*std::max_element(tripled.begin(), tripled.end()));
  CHECK_THROWS_CODE(LatticeTables(cut).refill(tripled), ErrorCode::argument);
}

TEST("a lattice refuses what is none") {
  CHECK_THROWS_CODE(LatticeShape(1, 2, false, {}), ErrorCode::chain);
  CHECK_THROWS_CODE(LatticeShape(1, 2, false, {{{}, {}}, {{0}, {1}}}), ErrorCode::chain);
  CHECK_THROWS_CODE(CountBuckets({2, 1}), ErrorCode::argument);
  StemTable::Stored stored;
  stored.begin = {0, 2};
  stored.outcomes = {1, 0};
  stored.counts = {1, 1};
  CHECK_THROWS_CODE(LatticeTables(LatticeShape(0, 2, false, {{{}, {}}}), {stored}), ErrorCode::table);
}
