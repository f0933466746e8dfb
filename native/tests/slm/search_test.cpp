#include "slm/search.h"

#include <cmath>

#include "slm/events.h"
#include "slm/replay.h"
#include "tests/harness.h"

using namespace treelm;

namespace {

// 3 words, 2 tags, 2 phrases, bigram, 2 heads; unary moves make too many parses to look at all of them.
constexpr SlmShape shape{3, 2, 2, 2, 2, true, true}, without_unary{3, 2, 2, 2, 2, true, false};

LatticeShape chain(std::size_t columns, std::uint32_t outcomes) {
  std::vector<LatticeNode> nodes{{{}, {}}};
  for (std::uint32_t column = 0; column < columns; ++column) {
    std::vector<std::uint32_t> seen = nodes.back().columns;
    seen.push_back(column);
    nodes.push_back({seen, {column}});
  }
  return {columns, outcomes, false, nodes};
}

std::shared_ptr<const LatticeModel> random_part(std::size_t columns, std::uint32_t outcomes, std::uint64_t seed) {
  const LatticeShape own = chain(columns, outcomes);
  LatticeEvents events(own, std::vector<std::uint32_t>(columns, 64), 1);
  for (std::uint64_t row = 0; row < 50; ++row) {
    std::vector<std::uint32_t> values;
    for (std::uint64_t column = 0; column < columns; ++column)
      values.push_back(static_cast<std::uint32_t>((seed + row * 31 + column * column * 7) % 25));
    const auto outcome = static_cast<std::uint32_t>((seed * 13 + row) % outcomes);
    const std::int64_t count = fixed_point(1.5 + static_cast<double>(row % 4));
    events.add(values.data(), &outcome, &count, 1);
  }
  auto tables = std::make_shared<const LatticeTables>(events);
  return std::make_shared<const LatticeModel>(tables, LatticeWeights(own, CountBuckets({1 << 30, 4LL << 30})));
}

SlmSearch search_with(const SlmOptions& options, const SlmShape& shape) {
  return {
      shape,
      {random_part(shape.predictor_columns(), shape.words + 1, 1), random_part(shape.tagger_columns(), shape.tags, 2),
       random_part(shape.constructor_columns(), shape.moves(), 3)},
      options,
      0};
}

}  // namespace

TEST("slm: words add up to one under any pruning") {
  for (const SlmOptions& options :
       {SlmOptions{20, 1e9, 0, false}, SlmOptions{2, 1.0, 0.01, true}, SlmOptions{1, 0, 0.2, false}}) {
    const SlmSearch search = search_with(options, shape);
    SlmSearch::Workspace work;
    SlmBeam beam = initial_beam(shape);
    for (const std::uint32_t word : {0U, 2U, 1U, 1U}) {
      const std::vector<double> all = search.distribution(beam, {}, work);
      double sum = 0;
      for (const double prob : all) sum += prob;
      CHECK(std::abs(sum - 1) < 1e-9);
      CHECK(std::abs(std::log(all[shape.end()]) - search.finish(beam, {}, work)) < 1e-9);
      const double log_prob = search.advance(beam, word, {}, work, false);
      CHECK(std::abs(std::log(all[word]) - log_prob) < 1e-9);
      double weights = 0;
      for (const SlmHypothesis& each : beam.hypotheses) weights += std::exp(each.score);
      CHECK(std::abs(weights - 1) < 1e-9);
    }
  }
}

TEST("slm: all parses of a sentence add up to its probability") {
  const SlmSearch search = search_with({0, 1e9, 0, false}, without_unary);
  SlmSearch::Workspace work;
  const std::vector<std::uint32_t> words{1, 0, 2};
  SlmBeam beam = initial_beam(without_unary);
  double total = 0;
  for (const std::uint32_t word : words) total += search.advance(beam, word, {}, work, false);
  total += search.finish(beam, {}, work);
  double sum = 0;
  for (const SlmParse& parse : search.best_parses(words, 1 << 20, {}, work)) {
    sum += std::exp(parse.score);
    CHECK(std::abs(parse.score - search.score_parse(words, parse.actions, {}, work)) < 1e-9);
  }
  CHECK(std::abs(std::log(sum) - total) < 1e-9);
}

TEST("slm: beams survive bytes, and bytes that are no beam are refused") {
  const SlmSearch search = search_with({5, 3.0, 0.001, true}, shape);
  SlmSearch::Workspace work;
  SlmBeam beam = initial_beam(shape);
  for (const std::uint32_t word : {2U, 0U, 1U}) search.advance(beam, word, {}, work, false);
  const std::string data = beam.to_bytes();
  const SlmBeam back = SlmBeam::from_bytes(data);
  CHECK(back.same(beam));
  CHECK_EQ(back.hash(), beam.hash());
  CHECK(back.fits(shape));
  SlmShape other = shape;
  other.order = 3;
  CHECK(!back.fits(other));
  for (std::size_t size = 0; size < data.size(); ++size)
    CHECK_THROWS_CODE(SlmBeam::from_bytes(std::string_view(data).substr(0, size)), ErrorCode::argument);
  for (std::size_t place = 0; place < data.size(); ++place) {
    std::string changed = data;
    changed[place] = static_cast<char>(changed[place] ^ 0x55);
    try {
      SlmBeam wrong = SlmBeam::from_bytes(changed);
      if (wrong.fits(shape)) search.advance(wrong, 1, {}, work, false);
    } catch (const Error&) {
    }
  }
}

TEST("slm: impossible parses are refused") {
  const SlmSearch search = search_with({5, 3.0, 0.001, true}, shape);
  SlmSearch::Workspace work;
  const std::vector<std::uint32_t> words{1, 0};
  const std::vector<std::vector<std::uint16_t>> parses{
      {}, {0, 0}, {0, 0, 1}, {0, 1, 0, 1, 0}, {9, 0, 1, 0}, {0, 0, 1, 0, 0, 0}, {0, 5, 5, 5, 0, 1, 0}, {0, 0, 1, 7, 0}};
  for (const auto& parse : parses) CHECK_THROWS_CODE(search.score_parse(words, parse, {}, work), ErrorCode::argument);
  CHECK(std::isfinite(search.score_parse(words, std::vector<std::uint16_t>{0, 0, 1, 3, 0}, {}, work)));
}

TEST("slm: fixed-point counts") {
  CHECK_EQ(fixed_point(0.3) + fixed_point(0.7), std::int64_t{1} << 30);
  CHECK_EQ(fixed_point(0.1) * 3, 322122546);
  CHECK_THROWS_CODE(fixed_point(-1), ErrorCode::argument);
  CHECK_THROWS_CODE(fixed_point(std::nan("")), ErrorCode::argument);
  CHECK_THROWS_CODE(fixed_point(0x1.0p33), ErrorCode::argument);
}
