// Tables whose slots are not what they should be: whatever they hold, nothing outside the array is
// read, every search ends, and every outcome drawn is one. Arrays are as long as their tables, so the
// address sanitizer sees a read beyond them.
#include <cmath>
#include <cstring>
#include <limits>

#include "chain_sampler.h"
#include "harness.h"

using namespace treelm;
using namespace treelm::test;

namespace {

// mix64 of it is 0: in any search it is passed over.
constexpr std::uint64_t smallest_hash = 0x61C8864680B583EBull;
static_assert(mix64(smallest_hash) == 0);

TableShape forged_shape(Random& random) {
  TableShape shape;
  shape.sequence = random.chance(2);
  shape.double_precision = random.chance(2);
  const auto width = static_cast<std::uint32_t>(random.chance(8) ? 31 : random.below(6));
  for (std::uint32_t w = width + 1; w-- > 0;)
    if (w == width || shape.sequence || random.chance(2)) shape.widths.push_back(w);
  shape.outcomes = 1 + random.below(40);
  shape.first_contexts = shape.sequence ? 0 : random.below(40);
  shape.base_size = random.chance(3) ? 0 : random.below(shape.outcomes + 1);
  shape.pad = static_cast<std::uint32_t>(random.below(shape.outcomes));
  const double weights[] = {0, 1, 0.5, 1e30, 1e-300};
  shape.empty_backoff = weights[random.below(5)];
  std::uint64_t at = shape.roots();
  const auto region = [&] {
    Region made;
    made.begin = at;
    made.capacity = 1 + random.below(random.chance(6) ? 2000 : 30);
    made.length = made.capacity + random.below(random.chance(6) ? 2000 : 5);
    at += made.length;
    return made;
  };
  for (std::uint32_t w = 0; w < width; ++w) shape.entry_regions.push_back(region());
  if (!shape.sequence)
    for (std::uint32_t w = 1; w < width; ++w) shape.context_regions.push_back(region());
  return shape;
}

enum class Forgery { noise, near_keys, long_chains, cycles, far_parents, all_empty, count };

std::uint64_t forged_key(Random& random, Forgery kind, const TableShape& shape, std::uint64_t slot) {
  const auto any = static_cast<std::uint32_t>(random.below(shape.slots()));
  const auto element = static_cast<std::uint32_t>(random.below(45));
  switch (kind) {
    case Forgery::near_keys:  // parents that exist, elements that are asked for
      return slot_key(random.chance(3) ? entry_root : random.chance(3) ? context_root : any, element);
    case Forgery::long_chains: return smallest_hash;
    case Forgery::cycles: return slot_key(static_cast<std::uint32_t>(slot), element);
    case Forgery::far_parents: return slot_key(0xFFFFFF00u + static_cast<std::uint32_t>(random.below(256)), element);
    case Forgery::all_empty: return empty_key;
    default: return mix64(random.below(~std::size_t{0}));
  }
}

double forged_value(Random& random) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double values[] = {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 1e30, -1e30, 1e-40, infinity, -infinity, nan, -nan};
  return values[random.below(std::size(values))];
}

template <class Value>
void fill(Random& random, Forgery kind, const TableShape& shape, std::vector<std::uint64_t>& memory) {
  for (std::uint64_t i = 0; i < shape.slots(); ++i) {
    Slot<Value> slot{forged_key(random, kind, shape, i), static_cast<Value>(forged_value(random)),
                     static_cast<Value>(forged_value(random))};
    if (i < shape.outcomes && random.chance(2)) slot.key = slot_key(entry_root, static_cast<std::uint32_t>(i));
    // Rows that lie where a search finds them: the rest of the walk meets forged ones.
    std::memcpy(reinterpret_cast<char*>(memory.data()) + i * sizeof slot, &slot, sizeof slot);
  }
  if (kind != Forgery::near_keys) return;
  for (const auto& regions : {&shape.entry_regions, &shape.context_regions})
    for (const Region& region : *regions)
      for (int i = 0; i < 20; ++i) {
        Slot<Value> slot{forged_key(random, kind, shape, 0), static_cast<Value>(forged_value(random)),
                         static_cast<Value>(forged_value(random))};
        const std::uint64_t at = region.home(mix64(slot.key));
        std::memcpy(reinterpret_cast<char*>(memory.data()) + at * sizeof slot, &slot, sizeof slot);
      }
}

std::shared_ptr<BackoffTable> forged_table(Random& random, Forgery kind) {
  const TableShape shape = forged_shape(random);
  auto memory = std::make_shared<std::vector<std::uint64_t>>(shape.slots() * shape.slot_bytes() / 8);
  if (kind == Forgery::noise)
    for (std::uint64_t& word : *memory) word = mix64(random.below(~std::size_t{0}));
  else if (shape.double_precision)
    fill<double>(random, kind, shape, *memory);
  else
    fill<float>(random, kind, shape, *memory);
  return std::make_shared<BackoffTable>(shape, memory->data(), memory);
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
      const std::uint32_t slot = table->context_slot(row.data() + 1, shape.widths[j]);
      CHECK(shape.widths[j] == 0 || slot == none || slot < shape.slots());
    }
    if (!shape.sequence) continue;
    const auto length = static_cast<std::uint32_t>(random.below(columns));
    CHECK(table->advance(row.data() + 1, length, row[0]).kept <= shape.widths.front());
  }
  for (std::uint32_t width = 1; width <= columns; ++width)
    table->each_row(width, [&](std::uint32_t slot, const std::uint32_t* found) {
      CHECK(slot < shape.slots());
      CHECK(found[0] < shape.outcomes);
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

TEST("forged tables: a search looks at few slots of a region without end") {
  TableShape shape;
  shape.widths = {1, 0};
  shape.outcomes = shape.base_size = 4;
  shape.sequence = true;
  shape.pad = 3;
  shape.entry_regions = {{4, 1, 4000000}};  // all hashes point at its first slot
  auto memory = std::make_shared<std::vector<std::uint64_t>>(shape.slots() * 2);
  for (std::uint64_t i = 0; i < shape.slots(); ++i)
    (*memory)[2 * i] = i < 4 ? slot_key(entry_root, static_cast<std::uint32_t>(i)) : smallest_hash;
  const BackoffTable table(shape, memory->data(), memory);
  const Clock clock;
  double sum = 0;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const std::uint32_t row[] = {i % 4, i};
    sum += table.probability_from(0, row, 0.25);
  }
  CHECK_EQ(sum, 0.0);
  CHECK(clock.seconds() < 10);  // looking at all of them would take hours
}

TEST("forged tables: damaged copies of each other's rows are passed over") {
  Random random(12);
  for (int round = 0; round < 200; ++round) {  // every slot the same key, at home or not
    const TableShape shape = forged_shape(random);
    auto memory = std::make_shared<std::vector<std::uint64_t>>(shape.slots() * shape.slot_bytes() / 8);
    const std::uint64_t key = forged_key(random, Forgery::near_keys, shape, 0);
    for (std::uint64_t i = 0; i < shape.slots(); ++i) (*memory)[i * shape.slot_bytes() / 8] = key;
    const auto table = std::make_shared<BackoffTable>(shape, memory->data(), memory);
    ask(random, table);
    draw(random, table);
  }
}

TEST("forged tables: shapes that no table has are refused") {
  Random random(13);
  const auto refused = [&](const auto& change) {
    TableShape shape;
    shape.widths = {2, 1, 0};
    shape.outcomes = shape.base_size = 5;
    shape.first_contexts = 3;
    shape.entry_regions = {{8, 4, 5}, {13, 4, 4}};
    shape.context_regions = {{17, 1, 1}};
    check_table_shape(shape);
    change(shape);
    CHECK_THROWS_CODE(check_table_shape(shape), ErrorCode::table);
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
  refused([](TableShape& s) { s.entry_regions.pop_back(); });
  refused([](TableShape& s) { s.context_regions.clear(); });
  refused([](TableShape& s) { s.entry_regions[0].begin = 7; });
  refused([](TableShape& s) { s.entry_regions[0].capacity = 0; });
  refused([](TableShape& s) { s.entry_regions[1].length = 3; });
  refused([&](TableShape& s) { s.entry_regions[1].length = far; });
  refused([&](TableShape& s) { s.context_regions[0].length = far - 8; });
  refused([](TableShape& s) { s.sequence = true; });
  refused([](TableShape& s) { s.empty_backoff = -1; });
  refused([](TableShape& s) { s.empty_backoff = std::nan(""); });
  // Each fits, all of them together do not: slots are numbers of 32 bits.
  refused([](TableShape& s) {
    s.outcomes = s.first_contexts = 0xF0000000u;
    s.entry_regions = {{0x1E0000000ull, 4, 5}, {0x1E0000005ull, 4, 4}};
    s.context_regions = {{0x1E0000009ull, 1, 1}};
  });
}
