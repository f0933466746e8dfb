// Tables whose slots are not what they should be: whatever they hold, nothing outside the array is
// read, every search ends, and every outcome drawn is one. Arrays are as long as their tables, so the
// address sanitizer sees a read beyond them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backoff/chain_sampler.h"
#include "backoff/table_quantizer.h"
#include "base/random.h"
#include "tests/harness.h"

using namespace treelm;
using namespace treelm::test;

namespace {

double forged_value(Random& random) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double values[] = {0.0,  -0.0,  1.0,   -1.0,     0.5,       -0.5, 2.0, -2.0,
                           1e30, -1e30, 1e-40, infinity, -infinity, nan,  -nan};
  return values[random.below(std::size(values))];
}

TableShape forged_shape(Random& random) {
  TableShape shape;
  shape.sequence = random.chance(2);
  const std::uint32_t bits[] = {8, 16, 32, 64};
  shape.value_bits = bits[random.below(4)];
  const auto width = static_cast<std::uint32_t>(random.chance(8) ? 31 : random.below(6));
  for (std::uint32_t w = width + 1; w-- > 0;)
    if (w == width || shape.sequence || random.chance(2)) shape.widths.push_back(w);
  shape.outcomes = 1 + random.below(40);
  shape.first_contexts = shape.sequence || width == 0 ? 0 : 1 + random.below(40);
  shape.base_size = random.chance(3) ? 0 : random.below(shape.outcomes + 1);
  shape.pad = static_cast<std::uint32_t>(random.below(shape.outcomes));
  shape.empty_weight = forged_value(random);
  const auto region = [&](std::uint64_t direct) -> RegionSize {
    if (direct != 0) return {direct, 0, 0};
    const std::uint64_t rows = random.below(random.chance(6) ? 3000 : 30);
    return {rows, 1 + random.below(random.chance(4) ? 1 : rows + 3), static_cast<std::uint32_t>(random.below(9))};
  };
  for (std::size_t j = 0; j < shape.levels(); ++j)
    shape.entries.push_back(region(shape.direct(j) ? shape.outcomes : 0));
  if (!shape.sequence)
    for (std::uint32_t w = 0; w < width; ++w) shape.contexts.push_back(region(w == 0 ? shape.first_contexts : 0));
  return shape;
}

struct Memory {
  std::vector<std::uint8_t> slots;
  std::vector<std::uint32_t> index;
  std::vector<float> codebooks;
};

std::shared_ptr<BackoffTable> over(const TableShape& shape, const std::shared_ptr<Memory>& memory) {
  return std::make_shared<BackoffTable>(
      shape, TableArrays{memory->slots.data(), memory->index.data(), memory->codebooks.data(), memory, {}});
}

std::shared_ptr<Memory> memory_for(const TableShape& shape) {
  const TableLayout layout(shape);
  auto memory = std::make_shared<Memory>();
  memory->slots.resize(layout.slot_bytes);
  memory->index.resize(layout.index_length);
  memory->codebooks.resize(layout.codebook_length);
  return memory;
}

// How the index and the heads of the slots are made up.
enum class Forgery { noise, even_buckets, full_buckets, falling_buckets, all_ones, count };

std::shared_ptr<BackoffTable> forged_table(Random& random, Forgery kind) {
  const TableShape shape = forged_shape(random);
  const auto memory = memory_for(shape);
  const auto noise = [&] { return mix64(random.below(~std::size_t{0})); };
  for (std::uint8_t& byte : memory->slots) byte = kind == Forgery::all_ones ? 255 : static_cast<std::uint8_t>(noise());
  for (float& value : memory->codebooks) value = static_cast<float>(forged_value(random));
  const TableLayout layout(shape);
  for (const auto* regions : {&layout.entries, &layout.contexts})
    for (const Region& region : *regions) {
      for (std::uint64_t b = 0; !region.direct() && b <= region.buckets; ++b) {
        std::uint64_t from = noise();
        if (kind == Forgery::even_buckets) from = b * region.rows / region.buckets;
        if (kind == Forgery::full_buckets) from = b % 2 == 0 ? 0 : region.rows;
        if (kind == Forgery::falling_buckets) from = region.rows - b * region.rows / region.buckets;
        if (kind == Forgery::all_ones) from = ~std::uint64_t{0};
        memory->index[region.index + b] = static_cast<std::uint32_t>(from);
      }
      if (shape.coded() || random.chance(2)) continue;
      // Values that people think of, between noise.
      for (std::uint64_t i = 0; i < region.rows; ++i)
        for (std::size_t v = region.head_bytes; v < region.slot_bytes; v += region.value_bytes) {
          std::uint8_t* place = memory->slots.data() + region.slot(i) + v;
          const double wide = forged_value(random);
          const auto narrow = static_cast<float>(wide);
          if (region.value_bytes == sizeof wide)
            std::memcpy(place, &wide, sizeof wide);
          else
            std::memcpy(place, &narrow, sizeof narrow);
        }
    }
  return over(shape, memory);
}

std::uint32_t any_id(Random& random) {
  const std::uint32_t far[] = {none, none - 1, none - 2, 1u << 31, 1000};
  return random.chance(8) ? far[random.below(5)] : static_cast<std::uint32_t>(random.below(45));
}

void ask(Random& random, const std::shared_ptr<BackoffTable>& table) {
  const TableShape& shape = table->shape();
  const std::uint32_t columns = shape.columns();
  std::vector<std::uint32_t> row(columns);
  for (int i = 0; i < 40; ++i) {
    for (auto& id : row) id = any_id(random);
    for (std::size_t j = 0; j < shape.levels(); ++j) {
      const double p = table->probability_from(j, row.data(), table->uniform_base(row[0]));
      CHECK(!(p < 0));
      CHECK(!(table->backoff_of(j, row.data() + 1) < 0));
      std::uint32_t contexts[max_columns + 1];
      table->find_contexts(j, row.data() + 1, contexts);
      for (std::size_t i = j; i < shape.levels(); ++i) CHECK(contexts[i] == none || contexts[i] < table->contexts());
    }
    if (!shape.sequence) continue;
    const auto length = static_cast<std::uint32_t>(random.below(columns));
    const BackoffTable::Advance step = table->advance(row.data() + 1, length, row[0]);
    CHECK(step.kept <= shape.widths.front());
    std::uint32_t context = table->context_after(row.data() + 1, length);
    const BackoffTable::Sought sought = table->seek(context, any_id(random), row[0]);
    table->fetch(sought);
    const double log_probability = table->read_sought(sought, context, row[0]);
    CHECK(log_probability == step.log_probability || (std::isnan(log_probability) && std::isnan(step.log_probability)));
    CHECK_EQ(table->depth_of(context), step.kept);
    table->fetch_back(context);
  }
  const ContextColumns columns_of(*table);
  std::vector<std::uint32_t> listed(max_columns);
  for (std::size_t j = 0; j < shape.levels(); ++j)
    table->each_entry(j,
                      [&](std::uint64_t row, std::uint32_t context, std::uint32_t outcome, double, std::uint32_t next) {
                        CHECK(row < shape.entries[j].rows);
                        CHECK(outcome < shape.outcomes);
                        CHECK(next < table->contexts());
                        const std::uint32_t found = columns_of.columns(context, listed.data());
                        CHECK(found == none || found < columns);
                      });
  if (shape.sequence) {
    std::vector<std::uint32_t> ids(100);
    for (auto& id : ids) id = any_id(random);
    const std::vector<std::uint64_t> starts{0, 0, 1, 30, 65, 100};
    std::vector<double> out(ids.size() + starts.size() - 1);
    table->score_sequences(ids, starts, any_id(random), 3, out.data());
    table->score_sequences(ids, starts, shape.pad, none, out.data());
  }
}

void draw(Random& random, const std::shared_ptr<BackoffTable>& table) {
  const ChainSampler sampler(table, {}, any_id(random));
  std::vector<std::uint32_t> context(sampler.context_columns());
  for (std::uint64_t i = 0; i < 40; ++i) {
    for (auto& id : context) id = any_id(random);
    const std::uint32_t drawn = sampler.draw(context.data(), 1, i, i);
    CHECK(drawn == none || drawn < table->shape().outcomes);
  }
}

}  // namespace

TEST("forged tables: queries, rows and draws stay inside and end") {
  Random random(11);
  for (int round = 0; round < 60; ++round)
    for (int kind = 0; kind < static_cast<int>(Forgery::count); ++kind) {
      const auto table = forged_table(random, static_cast<Forgery>(kind));
      ask(random, table);
      draw(random, table);
    }
}

namespace {

struct Entry {
  std::uint64_t row;
  std::uint32_t context, outcome, next;
  bool carrier, possible;
  friend bool operator==(const Entry&, const Entry&) = default;
};

}  // namespace

TEST("forged tables: codes mean what the values meant, and lead to the same contexts") {
  Random random(13);
  const auto ignore = [](std::uint64_t, std::uint64_t) {};
  for (int round = 0; round < 60; ++round)
    for (int kind = 0; kind < static_cast<int>(Forgery::count); ++kind) {
      const auto table = forged_table(random, static_cast<Forgery>(kind));
      const unsigned bits = random.chance(2) ? 8 : 16;
      if (table->shape().coded()) {
        CHECK_THROWS_CODE(quantize(*table, bits, 1, ignore), ErrorCode::argument);
        continue;
      }
      CHECK_THROWS_CODE(quantize(*table, 12, 1, ignore), ErrorCode::argument);
      const auto small = std::const_pointer_cast<BackoffTable>(quantize(*table, bits, 1 + round % 2, ignore).table);
      for (std::size_t j = 0; j < table->shape().levels(); ++j) {
        const auto entries = [j](const BackoffTable& from) {
          std::vector<Entry> found;
          from.each_entry(
              j, [&](std::uint64_t row, std::uint32_t context, std::uint32_t outcome, double p, std::uint32_t next) {
                found.push_back({row, context, outcome, next, std::signbit(p), usable_probability(p) > 0});
              });
          return found;
        };
        CHECK(entries(*table) == entries(*small));
      }
      ask(random, small);
      draw(random, small);
    }
}

TEST("forged tables: a search looks at few rows of a bucket without end") {
  TableShape shape;
  shape.widths = {1, 0};
  shape.outcomes = shape.base_size = 4;
  shape.sequence = true;
  shape.pad = 3;
  shape.entries = {{4000000, 1, 2}, {4, 0, 0}};  // all rows in one bucket
  const auto memory = memory_for(shape);
  const TableLayout layout(shape);
  memory->index = {0, 4000000};
  // No row is the one that is looked for, and every word is a context.
  for (std::uint64_t i = 0; i < 4000000; ++i)
    memory->slots[layout.entries[0].slot(i)] =
        static_cast<std::uint8_t>(layout.entries[0].mixer.mix(layout.entries[0].key(3, 3)));
  const auto table = over(shape, memory);
  const Clock clock;
  double sum = 0;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const std::uint32_t row[] = {i % 3, i % 4};
    sum += table->probability_from(0, row, 0.25);
  }
  CHECK_EQ(sum, 0.0);
  CHECK(clock.seconds() < 10);  // looking at all of them would take hours
}

TEST("forged tables: buckets that overlap list no row twice") {
  TableShape shape;
  shape.widths = {1, 0};
  shape.outcomes = shape.base_size = 4;
  shape.sequence = true;
  shape.pad = 3;
  const std::uint64_t rows = 1000, buckets = 100000;
  shape.entries = {{rows, buckets, 2}, {4, 0, 0}};
  const auto memory = memory_for(shape);
  for (std::uint64_t b = 0; b <= buckets; ++b) memory->index[b] = b % 2 == 0 ? 0 : rows;
  const auto table = over(shape, memory);
  std::vector<int> visited(rows, 0);
  table->each_row(table->layout().entries[0], [&](std::uint64_t i, std::uint32_t, std::uint32_t) { ++visited[i]; });
  CHECK_EQ(*std::max_element(visited.begin(), visited.end()), 1);
  const Clock clock;
  const ChainSampler sampler(table, {});
  CHECK(clock.seconds() < 5);  // all rows of all buckets would take gigabytes
}

TEST("forged tables: shapes that no table has are refused") {
  const auto refused = [&](const auto& change) {
    TableShape shape;
    shape.widths = {2, 1, 0};
    shape.outcomes = shape.base_size = 5;
    shape.first_contexts = 3;
    shape.entries = {{4, 1, 3}, {4, 2, 3}, {5, 0, 0}};
    shape.contexts = {{3, 0, 0}, {1, 1, 2}};
    const TableLayout fine(shape);
    CHECK_EQ(fine.context_count(), std::uint64_t{5});
    change(shape);
    CHECK_THROWS_CODE(TableLayout{shape}, ErrorCode::table);
  };
  const std::uint64_t far = ~std::uint64_t{0};
  refused([](TableShape& s) { s.widths.clear(); });
  refused([](TableShape& s) { s.widths = {2, 2, 0}; });
  refused([](TableShape& s) { s.widths = {3, 1, 0}; });
  refused([](TableShape& s) { s.widths = {32}; });
  refused([](TableShape& s) { s.outcomes = 0; });
  refused([&](TableShape& s) { s.outcomes = far; });
  refused([&](TableShape& s) { s.first_contexts = far; });
  refused([](TableShape& s) { s.base_size = 6; });
  refused([](TableShape& s) { s.entries.pop_back(); });
  refused([](TableShape& s) { s.contexts.clear(); });
  refused([](TableShape& s) { s.entries[0].buckets = 0; });
  refused([](TableShape& s) { s.entries[2].buckets = 1; });
  refused([&](TableShape& s) { s.entries[1].rows = far; });
  refused([&](TableShape& s) { s.entries[1].buckets = far; });
  refused([&](TableShape& s) { s.entries[1].last_bits = 33; });
  refused([&](TableShape& s) { s.contexts[0].rows = far - 8; });
  refused([&](TableShape& s) { s.contexts[1].rows = none - 4; });
  refused([](TableShape& s) { s.sequence = true; });
  refused([](TableShape& s) { s.value_bits = 4; });
  refused([](TableShape& s) { s.entries[2].rows = 6; });
  refused([](TableShape& s) { s.first_contexts = 4; });
}

TEST("tables: the hash of a region has an inverse, and its buckets tell the rest") {
  Random random(17);
  for (int round = 0; round < 400; ++round) {
    Region region;
    region.context_bits = static_cast<unsigned>(random.below(33));
    region.last_bits = static_cast<unsigned>(random.below(33));
    region.contexts = std::uint64_t{1} << region.context_bits;
    region.divide(1 + random.below(random.chance(2) ? 5 : 1 << 20));
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t key = mix64(random.below(~std::size_t{0})) & Region::low_bits(region.key_bits());
      const std::uint64_t hash = region.mixer.mix(key), bucket = region.bucket(hash);
      CHECK(hash <= Region::low_bits(region.key_bits()));
      CHECK_EQ(region.mixer.unmix(hash), key);
      CHECK(bucket < region.buckets);
      const std::uint64_t lowest = region.lowest(bucket);
      CHECK_EQ(region.bucket(lowest), bucket);
      CHECK(lowest == 0 || region.bucket(lowest - 1) < bucket);
      CHECK_EQ(lowest + region.check(region.check(hash) - lowest), hash);
      const std::uint64_t next = region.lowest(bucket + 1);  // how far into the bucket, by the bounds
      const double share =
          static_cast<double>(hash - lowest) / static_cast<double>(std::max(next - lowest, std::uint64_t{1}));
      const double told = std::ldexp(static_cast<double>(region.place(hash).fraction), -64);
      CHECK(next - lowest < 1000 || region.key_bits() == 64 || std::abs(told - share) < 0.01);
    }
  }
}
