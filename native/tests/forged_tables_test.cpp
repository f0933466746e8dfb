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
  std::uint64_t at = 0;
  const auto region = [&](std::uint64_t direct) {
    Region made;
    made.begin = at;
    made.capacity = direct != 0 ? direct : 1 + random.below(random.chance(6) ? 2000 : 30);
    made.length = direct != 0 ? direct : made.capacity + random.below(random.chance(6) ? 2000 : 5);
    at += made.length;
    return made;
  };
  if (!shape.sequence && width > 0) shape.first_contexts = 1 + random.below(40);
  shape.entry_regions.resize(shape.levels());
  for (std::size_t j = shape.levels(); j-- > 0;) shape.entry_regions[j] = region(shape.direct(j) ? shape.outcomes : 0);
  if (!shape.sequence)
    for (std::uint32_t w = 0; w < width; ++w)
      shape.context_regions.push_back(region(w == 0 ? shape.first_contexts : 0));
  shape.context_starts = {0, 1};
  for (std::uint32_t w = 0; w < width; ++w)
    shape.context_starts.push_back(shape.context_starts.back() + random.below(30));
  return shape;
}

enum class Forgery { noise, near_keys, long_chains, far_contexts, all_empty, count };

std::uint64_t forged_key(Random& random, Forgery kind, const TableShape& shape) {
  const auto any = static_cast<std::uint32_t>(random.below(shape.contexts() + 3));
  const auto element = static_cast<std::uint32_t>(random.below(45));
  switch (kind) {
    case Forgery::near_keys: return slot_key(any, element);  // contexts that exist, elements that are asked for
    case Forgery::long_chains: return smallest_hash;
    case Forgery::far_contexts: return slot_key(0xFFFFFF00u + static_cast<std::uint32_t>(random.below(256)), element);
    case Forgery::all_empty: return empty_key;
    default: return mix64(random.below(~std::size_t{0}));
  }
}

std::uint32_t forged_context(Random& random, const TableShape& shape) {
  return static_cast<std::uint32_t>(random.chance(4) ? random.below(~std::size_t{0})
                                                     : random.below(shape.contexts() + 2));
}

double forged_value(Random& random) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double values[] = {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 1e30, -1e30, 1e-40, infinity, -infinity, nan, -nan};
  return values[random.below(std::size(values))];
}

struct Memory {
  std::vector<std::uint64_t> slots, contexts;
};

template <class Value>
void fill(Random& random, Forgery kind, const TableShape& shape, Memory& memory) {
  const auto put = [&](std::uint64_t at, std::uint64_t key) {
    Slot<Value> slot{};
    slot.key = key;
    slot.probability = static_cast<Value>(forged_value(random));
    slot.next = forged_context(random, shape);
    std::memcpy(reinterpret_cast<char*>(memory.slots.data()) + at * sizeof slot, &slot, sizeof slot);
  };
  for (std::uint64_t i = 0; i < shape.slots(); ++i) put(i, forged_key(random, kind, shape));
  for (std::uint64_t i = 0; i < shape.contexts(); ++i) {
    ContextInfo<Value> info{};
    info.backoff = static_cast<Value>(forged_value(random));
    info.shorter = forged_context(random, shape);
    std::memcpy(reinterpret_cast<char*>(memory.contexts.data()) + i * sizeof info, &info, sizeof info);
  }
  if (kind != Forgery::near_keys) return;
  // Rows that lie where a search finds them: the rest of the walk meets forged ones.
  for (const auto& regions : {&shape.entry_regions, &shape.context_regions})
    for (const Region& region : *regions)
      for (int i = 0; i < 20; ++i) {
        const std::uint64_t key = forged_key(random, kind, shape);
        put(region.home(mix64(key)), key);
      }
}

std::shared_ptr<BackoffTable> over(const TableShape& shape, const std::shared_ptr<Memory>& memory) {
  return std::make_shared<BackoffTable>(shape, memory->slots.data(), memory->contexts.data(), memory);
}

std::shared_ptr<Memory> memory_for(const TableShape& shape) {
  auto memory = std::make_shared<Memory>();
  memory->slots.resize(shape.slots() * shape.slot_bytes() / 8);
  memory->contexts.resize(shape.contexts() * shape.context_bytes() / 8);
  return memory;
}

std::shared_ptr<BackoffTable> forged_table(Random& random, Forgery kind) {
  const TableShape shape = forged_shape(random);
  const auto memory = memory_for(shape);
  if (kind == Forgery::noise) {
    for (auto* words : {&memory->slots, &memory->contexts})
      for (std::uint64_t& word : *words) word = mix64(random.below(~std::size_t{0}));
  } else if (shape.double_precision) {
    fill<double>(random, kind, shape, *memory);
  } else {
    fill<float>(random, kind, shape, *memory);
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
      for (std::size_t i = j; i < shape.levels(); ++i) CHECK(contexts[i] == none || contexts[i] < shape.contexts());
    }
    if (!shape.sequence) continue;
    const auto length = static_cast<std::uint32_t>(random.below(columns));
    CHECK(table->advance(row.data() + 1, length, row[0]).kept <= shape.widths.front());
  }
  const ContextColumns columns_of(*table);
  std::vector<std::uint32_t> listed(max_columns);
  for (std::size_t j = 0; j < shape.levels(); ++j)
    table->each_entry(j, [&](std::uint64_t slot, std::uint32_t context, std::uint32_t outcome, double, std::uint32_t) {
      CHECK(slot < shape.slots());
      CHECK(outcome < shape.outcomes);
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

TEST("forged tables: a search looks at few slots of a region without end") {
  TableShape shape;
  shape.widths = {1, 0};
  shape.outcomes = shape.base_size = 4;
  shape.sequence = true;
  shape.pad = 3;
  shape.entry_regions = {{4, 1, 4000000}, {0, 4, 4}};  // all hashes point at its first slot
  shape.context_starts = {0, 1, 5};
  const auto memory = memory_for(shape);
  for (std::uint64_t i = 0; i < shape.slots(); ++i) memory->slots[2 * i] = i < 4 ? i : smallest_hash;
  // Every word leads to a context of its own.
  for (std::uint64_t i = 0; i < 4; ++i) memory->slots[2 * i + 1] = (i + 1) << 32;
  const BackoffTable table(shape, memory->slots.data(), memory->contexts.data(), memory);
  const Clock clock;
  double sum = 0;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const std::uint32_t row[] = {i % 4, i % 4};
    sum += table.probability_from(0, row, 0.25);
  }
  CHECK_EQ(sum, 0.0);
  CHECK(clock.seconds() < 10);  // looking at all of them would take hours
}

TEST("forged tables: damaged copies of each other's rows are passed over") {
  Random random(12);
  for (int round = 0; round < 200; ++round) {  // every slot the same key, at home or not
    const TableShape shape = forged_shape(random);
    const auto memory = memory_for(shape);
    const std::uint64_t key = forged_key(random, Forgery::near_keys, shape);
    for (std::uint64_t i = 0; i < shape.slots(); ++i) memory->slots[i * shape.slot_bytes() / 8] = key;
    const auto table = over(shape, memory);
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
    shape.entry_regions = {{9, 4, 4}, {5, 4, 4}, {0, 5, 5}};
    shape.context_regions = {{13, 3, 3}, {16, 1, 1}};
    shape.context_starts = {0, 1, 3, 4};
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
  refused([](TableShape& s) { s.entry_regions[0].begin = 8; });
  refused([](TableShape& s) { s.entry_regions[0].capacity = 0; });
  refused([](TableShape& s) { s.entry_regions[1].length = 3; });
  refused([&](TableShape& s) { s.entry_regions[1].length = far; });
  refused([&](TableShape& s) { s.context_regions[0].length = far - 8; });
  refused([](TableShape& s) { s.sequence = true; });
  refused([](TableShape& s) { s.context_starts.clear(); });
  refused([](TableShape& s) { s.context_starts = {0, 2, 3, 4}; });
  refused([](TableShape& s) { s.context_starts = {0, 1, 3, 2}; });
  refused([&](TableShape& s) { s.context_starts = {0, 1, 3, far}; });
  refused([](TableShape& s) { s.entry_regions[2].length = 6; });
  refused([](TableShape& s) { s.first_contexts = 4; });
}
