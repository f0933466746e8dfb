// N-grams as a trie: the same counts and the same table as by the other ways, whatever the number of threads.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "backoff/context_totals.h"
#include "backoff/estimate.h"
#include "backoff/sequence_counts.h"
#include "backoff/streamed_counts.h"
#include "base/random.h"
#include "base/sequence_counter.h"
#include "base/small_numbers.h"
#include "tests/harness.h"

using namespace treelm;
using namespace treelm::test;

namespace {

constexpr std::uint32_t end = 9000, pad = 9001;

std::string folder() {
  const char* place = std::getenv("TMPDIR");
  return place != nullptr ? place : "/tmp";
}

struct Text {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint64_t> starts{0};
};

// Some words and phrases are so frequent, and some so versatile, that their numbers do not fit where those of others
// do.
Text random_text(Random& random, std::size_t sentences) {
  Text text;
  for (std::size_t s = 0; s < sentences; ++s) {
    if (random.chance(4)) text.ids.insert(text.ids.end(), {1, 2, 3, 4, 5});
    for (std::size_t w = random.below(12); w > 0; --w)
      text.ids.push_back(static_cast<std::uint32_t>(random.below(random.chance(2) ? 4 : 9000)));
    text.starts.push_back(text.ids.size());
  }
  return text;
}

ChainShape shape_of(std::size_t order) {
  ChainShape shape;
  for (std::size_t j = 0; j < order; ++j) shape.widths.push_back(static_cast<std::uint32_t>(order - 1 - j));
  shape.pads.assign(order - 1, pad);
  return shape;
}

EstimatePlan plan_of(const ChainShape& shape, std::uint32_t least, bool linear, std::uint32_t value_bits) {
  EstimatePlan plan;
  for (std::size_t j = 0; j < shape.levels(); ++j)
    plan.levels.push_back({{0.5, 0.75, 0.9},
                           linear ? std::vector<double>{0.3, 0.6, 0.8} : std::vector<double>{},
                           false,
                           j + 1 < shape.levels() ? least : 1});
  plan.shape.widths = shape.widths;
  plan.shape.outcomes = pad + 1;
  plan.shape.base_size = pad;
  plan.shape.sequence = true;
  plan.shape.pad = pad;
  plan.shape.value_bits = value_bits;
  return plan;
}

const auto silent = [](std::uint64_t, std::uint64_t) {};

bool is_same(const BackoffTable& one, const BackoffTable& other) {
  return one.shape().entries == other.shape().entries && one.shape().empty_weight == other.shape().empty_weight &&
         std::memcmp(one.arrays().slots, other.arrays().slots, one.layout().slot_bytes) == 0 &&
         std::memcmp(one.arrays().index, other.arrays().index, 4 * one.layout().index_length) == 0;
}

}  // namespace

TEST("sequence counter: what counting in pieces gives") {
  Random random(3);
  for (std::size_t columns = 1; columns <= 7; ++columns)
    for (const std::size_t sentences : {0u, 1u, 2000u}) {
      const Text text = random_text(random, sentences);
      // The end may also be a word of the text.
      const std::uint32_t last = random.chance(2) ? end : 1;
      EventCounter counter(columns, 1, 1024);
      counter.add_sequences(text.ids, text.starts, last, pad);
      const SortedEvents expected = counter.finish();
      for (const std::size_t threads : {1u, 3u}) {
        const SortedEvents found = count_sequences(text.ids, text.starts, columns, last, pad, threads);
        CHECK_EQ(found.rows(), expected.rows());
        CHECK_EQ(found.total(), expected.total());
        if (found.rows() == 0) continue;
        CHECK_EQ(found.stride(), expected.stride());
        CHECK(std::memcmp(found.keys(), expected.keys(), found.rows() * found.stride() * 8) == 0);
        CHECK(std::memcmp(found.counts(), expected.counts(), found.rows() * 4) == 0);
      }
    }
  const std::vector<std::uint32_t> ids{1, 2};
  for (const std::vector<std::uint64_t>& starts : {std::vector<std::uint64_t>{}, {0, 3}, {1, 0}})
    CHECK_THROWS_CODE(count_sequences(ids, starts, 2, 4, 5, 1), ErrorCode::argument);
}

TEST("sequence estimation: the table of temporary files, byte for byte") {
  Random random(8);
  for (int round = 0; round < 10; ++round) {
    const std::size_t order = 1 + random.below(5);
    const Text text = random_text(random, round < 2 ? 3000 : 200);
    const auto events = std::make_shared<SortedEvents>(count_sequences(text.ids, text.starts, order, end, pad, 1));
    const ChainShape shape = shape_of(order);
    const bool tokens = random.chance(3);
    const auto least = static_cast<std::uint32_t>(1 + random.below(3));
    const EstimatePlan plan = plan_of(shape, order == 1 ? 1 : least, tokens, random.chance(2) ? 32 : 64);
    const StreamedCounts streamed(events, shape, tokens, 1, {1, folder()});
    const auto expected = estimate(streamed, plan, silent);
    for (const std::size_t threads : {1u, 3u}) {
      SequenceCounts counts(*events, shape, pad + 1, tokens, least > 1, threads);
      for (std::size_t j = 0; j < order; ++j) {
        CHECK_EQ(counts.size(j), streamed.size(j));
        CHECK(counts.counts_of_counts(j) == streamed.counts_of_counts(j));
      }
      CHECK(is_same(*estimate(counts, plan, silent), *expected));
      // Estimating has not changed them, unless they are used up.
      CHECK(is_same(*estimate(counts, plan, silent), *expected));
      CHECK(is_same(*estimate(std::move(counts), plan, silent), *expected));
    }
  }
}

TEST("sequence counts: what is no text is refused") {
  EventCounter counter(3, 1, 1024);
  const std::uint32_t rows[] = {1, 2, 3, 2, 3, pad};  // 2 3 comes before 1, but was not counted after anything
  counter.add(rows, 1);
  const SortedEvents alone = counter.finish();
  const ChainShape shape = shape_of(3);
  const EstimatePlan plan = plan_of(shape, 1, false, 32);
  CHECK_THROWS_CODE(estimate(SequenceCounts(alone, shape, pad + 1, false, false, 1), plan, silent), ErrorCode::chain);
  CHECK_THROWS_CODE(SequenceCounts(alone, shape, 2, false, false, 1), ErrorCode::argument);
  CHECK_THROWS_CODE(SequenceCounts(alone, {{2, 0}, {pad, none}}, pad + 1, false, false, 1), ErrorCode::chain);
}

TEST("small numbers: from any place on") {
  Random random(4);
  std::vector<std::uint32_t> expected;
  for (int i = 0; i < 2000; ++i)
    expected.push_back(static_cast<std::uint32_t>(random.chance(5) ? random.below(1u << 31) : random.below(256)));
  SmallNumbers numbers(expected.size());
  SmallNumbers::LargeOnes large;
  for (std::size_t i = 0; i < expected.size(); ++i) numbers.set(i, expected[i], large);
  numbers.keep(large);
  for (std::size_t from = 0; from < expected.size(); from += 37) {
    auto reader = numbers.from(from);
    for (std::size_t i = from; i < expected.size(); ++i) CHECK_EQ(reader.next(), expected[i]);
  }
}

TEST("context totals: small and large ones") {
  Random random(5);
  std::vector<ContextCounts> expected(40);
  ContextTotals totals(40);
  std::vector<ContextTotals::Large> large(2);
  for (int i = 0; i < 60000; ++i) {
    const std::size_t context = random.chance(2) ? 7 : random.below(39);
    const auto count = static_cast<std::uint32_t>(context == 20 ? 1u << 26 : 1 + random.below(5));
    totals.add(context, count, large[context / 20]);
    expected[context].total += count;
    ++expected[context].outcomes_of[std::min(count, 3u) - 1];
  }
  totals.keep(0, 20, large[0]);
  totals.keep(20, 40, large[1]);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK_EQ(totals[i].total, expected[i].total);
    CHECK(totals[i].outcomes_of == expected[i].outcomes_of);
    CHECK_EQ(totals.any(i), i != 39);
  }
}
