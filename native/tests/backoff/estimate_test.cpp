// Packed keys, radix sort, counting, and tables built and looked up.
#include "backoff/estimate.h"

#include <cmath>
#include <map>
#include <set>

#include "base/radix_sort.h"
#include "tests/harness.h"

using namespace treelm;
using namespace treelm::test;

namespace {

std::uint32_t random_bits_of(Random& random, unsigned bits) {
  return bits == 0 ? 0 : static_cast<std::uint32_t>(random.below(std::size_t{1} << bits));
}

// A layout of at most `most` bits with columns of 0 to 32 bits.
KeyLayout random_layout(Random& random, unsigned most) {
  std::vector<unsigned> bits;
  for (unsigned total = 0; bits.size() < 40;) {
    const auto width = static_cast<unsigned>(random.below(33));
    if (total + width > most) break;
    total += width;
    bits.push_back(width);
  }
  return KeyLayout(std::move(bits));
}

std::vector<std::uint32_t> random_row(Random& random, const KeyLayout& layout) {
  std::vector<std::uint32_t> row(layout.columns());
  for (std::size_t i = 0; i < row.size(); ++i) {
    const unsigned bits = layout.bits(i);
    row[i] = random_bits_of(random, bits);
    if (bits != 0 && random.chance(4))  // all ones are where neighbours would be disturbed
      row[i] = static_cast<std::uint32_t>((std::uint64_t{1} << bits) - 1);
  }
  return row;
}

template <std::size_t W>
bool bit(const Key<W>& key, unsigned place) {
  return place < 64 * W && (key.w[place / 64] >> (63 - place % 64) & 1) != 0;
}

template <std::size_t W>
void check_keys(Random& random) {
  const KeyLayout layout = random_layout(random, 64 * W);
  const std::vector<std::uint32_t> a = random_row(random, layout);
  std::vector<std::uint32_t> b = random_row(random, layout);
  for (std::size_t i = random.below(b.size() + 1); i-- > 0;) b[i] = a[i];  // some first columns agree
  const auto left = layout.pack<W>(a.data()), right = layout.pack<W>(b.data());
  std::vector<std::uint32_t> back(layout.columns());
  layout.unpack(left, back.data());
  CHECK(back == a);
  CHECK_EQ(left < right, a < b);
  CHECK_EQ(left == right, a == b);
  unsigned common = 0;
  while (common < 64 * W && bit(left, common) == bit(right, common)) ++common;
  CHECK_EQ(common_bits(left, right), common);

  const std::size_t from = random.below(layout.columns() + 1);
  const std::size_t to = from + random.below(layout.columns() - from + 1);
  const unsigned first = layout.prefix(from), last = layout.prefix(to);
  const auto cut = slice<W>(left, first, last);
  const auto wide = slice<max_key_words>(left, first, last);
  for (unsigned i = 0; i < 64 * W; ++i) CHECK_EQ(bit(cut, i), first + i < last && bit(left, first + i));
  for (unsigned i = 0; i < 64 * max_key_words; ++i) CHECK_EQ(bit(wide, i), first + i < last && bit(left, first + i));
  if (last - first <= 64) CHECK_EQ(slice<1>(left, first, last).w[0], cut.w[0]);
}

template <std::size_t W>
struct Tied {
  static constexpr bool has_ties = true;
  Key<W> key;
  std::uint32_t place;
  friend bool operator<(const Tied& a, const Tied& b) { return a.key != b.key ? a.key < b.key : a.place < b.place; }
  friend bool operator==(const Tied&, const Tied&) = default;
};

template <std::size_t W>
void check_sort(LargeVector<Tied<W>> records, unsigned bits) {
  for (std::size_t i = 0; i < records.size(); ++i) records[i].place = static_cast<std::uint32_t>(i);
  LargeVector<Tied<W>> expected = records;
  std::sort(expected.begin(), expected.end());
  for (const std::size_t threads : {1u, 3u}) {
    ThreadPool pool(threads);
    LargeVector<Tied<W>> sorted = records;
    radix_sort(std::span(sorted), bits, pool);
    CHECK(sorted == expected);
  }
}

// Keys of `bits` bits that differ in the bits from `from` on only.
template <std::size_t W>
LargeVector<Tied<W>> random_records(Random& random, std::size_t count, unsigned from, unsigned bits) {
  LargeVector<Tied<W>> records(count);
  for (auto& record : records) {
    Key<W> key{};
    for (auto& word : key.w) word = mix64(random.below(~std::size_t{0}));
    record.key = slice<W>(key, 0, bits);
    for (unsigned i = 0; i < from; ++i) record.key.w[i / 64] &= ~(std::uint64_t{1} << (63 - i % 64));
  }
  return records;
}

}  // namespace

TEST("packed keys: packing, order and slices agree with the bits") {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    check_keys<1>(random);
    check_keys<2>(random);
    check_keys<3>(random);
    check_keys<4>(random);
    check_keys<8>(random);
  }
}

TEST("packed keys: what is too long is refused") {
  CHECK_EQ(KeyLayout(std::vector<unsigned>(16, 32)).words(), 8);
  CHECK_THROWS_CODE(KeyLayout(std::vector<unsigned>(17, 32)), ErrorCode::too_large);
  CHECK_EQ(KeyLayout(std::vector<unsigned>(3, 0)).words(), 1);
  CHECK_EQ(KeyLayout({32, 32}).words(), 1);
  CHECK_EQ(KeyLayout({32, 32, 1}).words(), 2);
  CHECK(KeyLayout({3}).fits(0, 7) && !KeyLayout({3}).fits(0, 8) && KeyLayout({0}).fits(0, 0));
}

TEST("radix sort: random, equal, constant digits, sorted and reversed") {
  Random random(2);
  for (const std::size_t count : {0u, 1u, 255u, 257u, 5000u}) {
    check_sort(random_records<1>(random, count, 0, 64), 64);
    check_sort(random_records<1>(random, count, 0, 13), 13);
    check_sort(random_records<2>(random, count, 50, 77), 77);  // constant digits first
    check_sort(random_records<3>(random, count, 180, 192), 192);
    check_sort(random_records<8>(random, count, 0, 512), 512);
    check_sort(LargeVector<Tied<2>>(count, Tied<2>{{{7, 9}}, 0}), 128);
  }
}

TEST("radix sort: threads share what is long") {
  Random random(3);
  constexpr std::size_t count = 120000;
  check_sort(random_records<1>(random, count, 0, 40), 40);
  check_sort(random_records<2>(random, count, 90, 100), 100);
  check_sort(LargeVector<Tied<1>>(count, Tied<1>{{{5}}, 0}), 64);
  LargeVector<Tied<1>> rising(count), falling(count);
  for (std::size_t i = 0; i < count; ++i) {
    rising[i].key.w[0] = i;
    falling[i].key.w[0] = count - i;
  }
  check_sort(rising, 64);
  check_sort(falling, 64);
}

TEST("counter: runs, weights and wider ids, by any number of threads") {
  for (const std::size_t threads : {1u, 3u}) {
    Random random(4);
    EventCounter counter(3, threads, 1024);
    std::map<std::vector<std::uint32_t>, std::uint64_t> expected;
    std::uint64_t total = 0;
    for (int part = 0; part < 12; ++part) {
      const auto bits = static_cast<unsigned>(2 + 2 * part);
      std::vector<std::uint32_t> rows;
      std::vector<std::uint64_t> weights;
      for (int i = 0; i < 900; ++i) {
        std::vector<std::uint32_t> row(3);
        for (auto& column : row) column = random_bits_of(random, random.chance(3) ? bits : 2);
        rows.insert(rows.end(), row.begin(), row.end());
        weights.push_back(part % 3 == 2 ? random.below(4) : 1);
        total += weights.back();
        if (weights.back() != 0) expected[row] += weights.back();
      }
      counter.add(rows.data(), weights.size(), part % 3 == 2 ? weights.data() : nullptr);
    }
    CHECK_EQ(counter.total(), total);
    const SortedEvents events = counter.finish();
    CHECK_EQ(events.total(), total);
    CHECK_EQ(events.rows(), expected.size());
    std::size_t at = 0;
    std::vector<std::uint32_t> row(3);
    with_key_words(events.layout().words(), [&]<std::size_t W>() {
      for (const auto& [wanted, count] : expected) {
        events.layout().unpack(events.keys_as<W>()[at], row.data());
        CHECK(row == wanted);
        CHECK_EQ(events.counts()[at++], count);
      }
    });
  }
}

TEST("counter: starts and sums that do not fit are refused") {
  EventCounter counter(2, 1, 1024);
  const std::vector<std::uint32_t> ids{1, 2, 3};
  for (const std::vector<std::uint64_t>& starts :
       {std::vector<std::uint64_t>{}, {0, 4}, {0, 1000, 3}, {2, 1, 3}, {0, ~std::uint64_t{0}, 3}})
    CHECK_THROWS_CODE(counter.add_sequences(ids, starts, 4, 5), ErrorCode::argument);
  CHECK_EQ(counter.finish().rows(), 0);
  const std::vector<std::uint32_t> rows{1, 2, 1, 2};
  for (const std::vector<std::uint64_t>& weights :
       {std::vector<std::uint64_t>{1ull << 32, 0}, {1ull << 63, 1ull << 63}, {~0ull, 1}, {1, ~0ull}})
    CHECK_THROWS_CODE(counter.add(rows.data(), 2, weights.data()), ErrorCode::overflow);
}

TEST("table builder: every row is found, and nothing else") {
  for (const bool wide : {false, true})
    for (const std::size_t threads : {1u, 3u}) {
      Random random(6);
      TableShape shape;
      shape.widths = {2, 1, 0};
      shape.outcomes = 50;
      shape.first_contexts = 50;
      shape.value_bits = wide ? 64 : 32;
      shape.base_size = 50;
      TableBuilder builder(shape, 1000, threads);
      RowBatch rows = builder.batch();
      for (std::uint32_t x = 0; x < 50; x += 2) rows.add(0, x, 0.5, 0, 0, x);
      builder.add_entries(2, std::move(rows), nullptr);
      RowBatch outside = builder.batch();
      outside.add(0, 50, 0, 1, 0, 0);
      TableBuilder refusing(shape, 1000, threads);
      CHECK_THROWS_CODE(refusing.add_contexts(1, std::move(outside), nullptr), ErrorCode::argument);
      // First context column c is context c + 1.
      RowBatch first = builder.batch();
      for (std::uint32_t c = 0; c < 50; ++c) first.add(0, c, 0, 0.5, 0, c);
      LargeVector<std::uint32_t> positions(50);
      builder.add_contexts(1, std::move(first), &positions);
      for (std::uint32_t c = 0; c < 50; ++c) CHECK_EQ(positions[c], c);
      std::set<std::pair<std::uint32_t, std::uint32_t>> keys;
      for (int i = 0; i < 110000; ++i)
        keys.emplace(static_cast<std::uint32_t>(1 + random.below(50)), static_cast<std::uint32_t>(random.below(9000)));
      rows = builder.batch();
      for (const auto& [context, outcome] : keys) rows.add(context - 1, outcome, 0.25, 0, 0, 0);
      builder.add_entries(1, std::move(rows), nullptr);
      builder.add_contexts(2, builder.batch(), nullptr);
      builder.add_entries(0, builder.batch(), nullptr);
      const auto table = builder.finish();
      const auto p = [&](std::uint32_t context, std::uint32_t outcome) {
        const std::uint32_t row[] = {outcome, context - 1, 7777};
        return table->probability_from(1, row, 0);
      };
      for (std::uint32_t x = 0; x < 60; ++x) {
        const std::uint32_t row[] = {x, 7777, 7777};
        CHECK_EQ(table->probability_from(2, row, 0), x < 50 && x % 2 == 0 ? 0.5 : 0.0);
      }
      for (const auto& [context, outcome] : keys)
        if (context >= 1 && context <= 50) CHECK_EQ(p(context, outcome), 0.25);
      for (int i = 0; i < 20000; ++i) {
        const auto context = static_cast<std::uint32_t>(1 + random.below(50));
        const auto outcome = static_cast<std::uint32_t>(100 + random.below(20000));
        CHECK_EQ(p(context, outcome), keys.contains({context, outcome}) ? 0.25 : 0.0);
      }
    }
}

TEST("estimate: the bigram of the specification") {
  EventCounter counter(2, 1, 1024);
  const std::vector<std::uint32_t> ids{0, 1, 0, 1, 0, 2};  // a b, a b, a c; 3 ends, 5 begins
  counter.add_sequences(ids, std::vector<std::uint64_t>{0, 2, 4, 6}, 3, 5);
  const auto events = std::make_shared<SortedEvents>(counter.finish());
  const ChainCounts counts(events, {{1, 0}, {5}}, false, true, 1);
  EstimatePlan plan;
  plan.shape.widths = {1, 0};
  plan.shape.outcomes = 6;
  plan.shape.base_size = 5;
  plan.shape.sequence = true;
  plan.shape.value_bits = 64;
  plan.shape.pad = 5;
  for (const double d : {1.0 / 3, 0.6}) plan.levels.push_back({{d, d, d}, {}, false, 1});
  const auto table = estimate(counts, plan, [](std::uint64_t, std::uint64_t) {});
  const auto p = [&](std::uint32_t x, std::uint32_t before) {
    const std::uint32_t row[] = {x, before};
    return table->probability_from(0, row, table->uniform_base(x));
  };
  const auto near = [](double a, double b) { return std::fabs(a - b) < 1e-15; };
  CHECK(near(p(0, 5), 1022.0 / 1125) && near(p(1, 0), 223.0 / 375) && near(p(4, 2), 4.0 / 125));
  CHECK(near(p(3, 77), 47.0 / 125) && near(p(77, 0), 0));
}
