// Compact tables: the same rows and the same numbers as the tables that they are made from, whatever these hold; and
// nothing outside their arrays is read, whatever is in them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "backoff/chain_sampler.h"
#include "backoff/sequence_builder.h"
#include "backoff/table_builder.h"
#include "backoff/table_compactor.h"
#include "backoff/table_quantizer.h"
#include "tests/harness.h"

using namespace treelm;
using namespace treelm::test;

namespace {

const auto ignore = [](std::uint64_t, std::uint64_t) {};

using Table = std::shared_ptr<const BackoffTable>;

// A sequence table of random rows; those that a row's shorter ones should be need not be there.
Table random_sequences(Random& random, bool wide) {
  TableShape shape;
  const std::size_t order = 1 + random.below(5);
  for (std::size_t width = order; width-- > 0;) shape.widths.push_back(static_cast<std::uint32_t>(width));
  const std::size_t words = 2 + random.below(random.chance(4) ? 300 : 12);
  shape.outcomes = words;
  shape.pad = static_cast<std::uint32_t>(words - 1);
  shape.base_size = random.chance(2) ? words - 1 : 0;
  shape.sequence = true;
  shape.value_bits = wide ? 64 : 32;
  std::vector<SequenceRows> levels;
  std::set<std::vector<std::uint32_t>> contexts{{}};
  for (std::size_t n = 1; n <= order; ++n) {
    std::set<std::vector<std::uint32_t>> rows;
    const std::vector<std::vector<std::uint32_t>> before(contexts.begin(), contexts.end());
    for (std::size_t i = random.below(n == 1 ? 3 * words : 200); i > 0 && !before.empty(); --i) {
      std::vector<std::uint32_t> row = before[random.below(before.size())];
      row.insert(row.begin(), static_cast<std::uint32_t>(random.below(words)));
      rows.insert(row);
    }
    SequenceRows level;
    for (const auto& row : rows) {
      level.rows.insert(level.rows.end(), row.begin(), row.end());
      level.log_probability.push_back(-static_cast<float>(random.below(random.chance(2) ? 9 : 100000)) / 7.0f);
      level.log_backoff.push_back(random.chance(4) ? 0.0f : -static_cast<float>(random.below(50)) / 11.0f);
    }
    levels.push_back(std::move(level));
    contexts = rows;
  }
  return build_sequences(shape, levels, 1, [](std::size_t, std::size_t, RowProblem) { CHECK(false); });
}

// A chain whose contexts are not its outcomes, of random rows.
Table random_chain(Random& random, bool wide) {
  TableShape shape;
  const auto width = static_cast<std::uint32_t>(1 + random.below(4));
  for (std::uint32_t w = width + 1; w-- > 0;)
    if (w == width || random.chance(2)) shape.widths.push_back(w);
  shape.outcomes = shape.base_size = 1 + random.below(20);
  shape.first_contexts = 1 + random.below(20);
  shape.value_bits = wide ? 64 : 32;
  TableBuilder builder(shape, 100, 1);
  std::uint64_t count = 1;  // of the contexts of the last depth
  std::uint32_t depth = 0;
  const auto value = [&] { return static_cast<double>(random.below(64)) / 64; };
  const auto rows_after = [&](std::uint64_t contexts, std::uint64_t columns) {
    std::set<std::pair<std::uint64_t, std::uint32_t>> rows;
    for (std::size_t i = 1 + random.below(60); i > 0; --i)
      rows.insert({random.below(contexts), static_cast<std::uint32_t>(random.below(columns))});
    return rows;
  };
  for (std::size_t j = shape.levels(); j-- > 0;) {
    for (; depth < shape.widths[j]; ++depth) {
      RowBatch batch = builder.batch();
      for (const auto& [context, last] : rows_after(count, depth == 0 ? shape.first_contexts : 30))
        batch.add(context, last, 0, random.chance(5) ? not_a_context : value(), 0,
                  static_cast<std::uint32_t>(batch.size()));
      count = depth == 0 ? shape.first_contexts : batch.size();
      builder.add_contexts(depth + 1, std::move(batch), nullptr);
    }
    RowBatch batch = builder.batch();
    for (const auto& [context, last] : rows_after(count, shape.outcomes))
      batch.add(context, last, random.chance(5) ? -value() : value(), 0, 0, static_cast<std::uint32_t>(batch.size()));
    builder.add_entries(j, std::move(batch), nullptr);
  }
  return builder.finish();
}

// The entries of a level by their columns: probability and, if it is a context, weight.
using Listed = std::map<std::vector<std::uint32_t>, std::pair<double, double>>;
Listed entries_of(const BackoffTable& table, std::size_t level) {
  Listed listed;
  const ContextColumns columns_of(table);
  table.each_entry(level,
                   [&](std::uint64_t, std::uint32_t context, std::uint32_t outcome, double p, std::uint32_t own) {
                     std::vector<std::uint32_t> row(max_columns + 1, outcome);
                     const std::uint32_t found = columns_of.columns(context, row.data() + 1);
                     row.resize(found == none ? 1 : found + 1);
                     listed[row] = {p, own == empty_context ? not_a_context : table.backoff(own)};
                   });
  return listed;
}

std::uint32_t any_id(Random& random, std::uint64_t ids) {
  const std::uint32_t far[] = {none, none - 1, 1u << 31, 1000};
  return random.chance(12) ? far[random.below(4)] : static_cast<std::uint32_t>(random.below(ids));
}

void check_same(Random& random, const BackoffTable& one, const BackoffTable& other) {
  const TableShape& shape = one.shape();
  CHECK_EQ(one.contexts(), other.contexts());
  for (std::size_t j = 0; j < shape.levels(); ++j) CHECK(entries_of(one, j) == entries_of(other, j));
  std::vector<std::uint32_t> row(shape.columns());
  for (int i = 0; i < 60; ++i) {
    for (auto& id : row) id = any_id(random, std::max(shape.outcomes, shape.first_contexts));
    for (std::size_t j = 0; j < shape.levels(); ++j) {
      CHECK_EQ(one.probability_from(j, row.data(), 0.25), other.probability_from(j, row.data(), 0.25));
      CHECK_EQ(one.backoff_of(j, row.data() + 1), other.backoff_of(j, row.data() + 1));
      std::uint32_t found[max_columns + 1], again[max_columns + 1];
      one.find_contexts(j, row.data() + 1, found);
      other.find_contexts(j, row.data() + 1, again);
      for (std::size_t k = j; k < shape.levels(); ++k) CHECK_EQ(found[k] == none, again[k] == none);
    }
    std::vector<double> all(shape.outcomes), same(shape.outcomes);
    one.distribution(row.data() + 1, all);
    other.distribution(row.data() + 1, same);
    CHECK(all == same);
    if (!shape.sequence) continue;
    const auto length = static_cast<std::uint32_t>(random.below(shape.columns()));
    const BackoffTable::Advance step = one.advance(row.data() + 1, length, row[0]);
    const BackoffTable::Advance also = other.advance(row.data() + 1, length, row[0]);
    CHECK_EQ(step.log_probability, also.log_probability);
    CHECK_EQ(step.kept, also.kept);
    const std::uint32_t matched = one.matched_words(one.context_after(row.data() + 1, length), row[0]);
    CHECK(matched <= length + 1);
    CHECK_EQ(matched, other.matched_words(other.context_after(row.data() + 1, length), row[0]));
    for (const BackoffTable* table : {&one, &other}) {  // whatever is said of the word before
      std::uint32_t context = table->context_after(row.data() + 1, length);
      const BackoffTable::Sought sought = table->seek(context, any_id(random, shape.outcomes), row[0]);
      table->fetch(sought);
      CHECK_EQ(table->read_sought(sought, context, row[0]), step.log_probability);
      CHECK_EQ(table->depth_of(context), step.kept);
      table->fetch_back(context);
    }
  }
  if (!shape.sequence) return;
  std::vector<std::uint32_t> ids(200);
  for (auto& id : ids) id = any_id(random, shape.outcomes);
  std::vector<std::uint64_t> starts{0, 0, 1};
  while (starts.back() < ids.size())
    starts.push_back(std::min<std::uint64_t>(ids.size(), starts.back() + random.below(9)));
  for (const std::uint32_t end : {none, ids[0]}) {
    std::vector<double> out(ids.size() + (end == none ? 0 : starts.size() - 1)), same(out.size());
    one.score_sequences(ids, starts, shape.pad, end, out.data());
    other.score_sequences(ids, starts, shape.pad, end, same.data());
    CHECK(out == same);
  }
  const std::uint32_t first = one.context_after(&shape.pad, 1), other_first = other.context_after(&shape.pad, 1);
  std::vector<double> out(ids.size()), same(ids.size());
  one.read_words(first, ids, out.data());
  other.read_words(other_first, ids, same.data());
  CHECK(out == same);
  std::uint32_t context = first;
  for (std::size_t i = 0; i < ids.size(); ++i) CHECK_EQ(one.read_word(context, ids[i]), out[i]);
}

}  // namespace

TEST("compact tables: the same rows and the same numbers") {
  Random random(23);
  for (int round = 0; round < 120; ++round) {
    const bool wide = random.chance(4);
    const Table table = random.chance(2) ? random_chain(random, wide) : random_sequences(random, wide);
    const Table compact = make_compact(*table, 0, {}, ignore);
    CHECK(compact->shape().compact);
    check_same(random, *table, *compact);
    const unsigned sizes[] = {4, 5, 6, 7, 8, 16};
    const unsigned bits = sizes[random.below(6)];
    const Table coded = quantize(*table, bits, 1, ignore).table;
    const Table small = make_compact(*coded, bits, {}, ignore);
    CHECK_EQ(small->shape().value_bits, bits);
    check_same(random, *coded, *small);
    for (const RegionSize& size : small->shape().entries) CHECK(size.probability_bits <= bits);
    CHECK_THROWS_CODE(make_compact(*compact, 0, {}, ignore), ErrorCode::argument);
    CHECK_THROWS_CODE(quantize(*compact, 8, 1, ignore), ErrorCode::argument);
    CHECK_THROWS_CODE(make_compact(*coded, 3, {}, ignore), ErrorCode::argument);
  }
}

TEST("compact tables: draws follow the same probabilities") {
  Random random(29);
  const Table table = random_sequences(random, false), compact = make_compact(*table, 0, {}, ignore);
  const ChainSampler sampler(compact, {});
  std::vector<std::uint32_t> context(sampler.context_columns());
  for (std::uint64_t i = 0; i < 200; ++i) {
    for (auto& id : context) id = any_id(random, table->shape().outcomes);
    const std::uint32_t drawn = sampler.draw(context.data(), 1, i, i);
    CHECK(drawn == none || drawn < table->shape().outcomes);
  }
}

TEST("compact tables: ranges tell where the rows of a context lie, and nonsense is refused") {
  Random random(31);
  for (int round = 0; round < 300; ++round) {
    const std::size_t contexts = 1 + random.below(random.chance(3) ? 500 : 20);
    std::vector<std::uint32_t> begins(contexts + 1, 0);
    for (std::size_t i = 0; i < contexts; ++i)
      begins[i + 1] =
          begins[i] + static_cast<std::uint32_t>(random.chance(3) ? random.below(random.chance(20) ? 3000 : 7) : 0);
    const ChildRanges ranges(contexts, begins.back());
    std::vector<std::uint32_t> words = ranges.encode(begins);
    CHECK_EQ(words.size(), ranges.words());
    CHECK(ranges.check(words.data()));
    for (std::size_t i = 0; i < contexts; ++i) {
      CHECK(ranges.range(words.data(), i) == ChildRanges::Range(begins[i], begins[i + 1]));
      for (std::uint32_t row = begins[i]; row < begins[i + 1]; row += 1 + (begins[i + 1] - begins[i]) / 3)
        CHECK_EQ(ranges.context_of(words.data(), row), i);
    }
    // One bit elsewhere: refused, or ranges that stay inside and do not overlap.
    const std::size_t flipped = random.below(32 * words.size());
    words[flipped / 32] ^= 1u << flipped % 32;
    if (!ranges.check(words.data())) continue;
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < contexts; ++i) {
      const auto [from, to] = ranges.range(words.data(), i);
      CHECK_EQ(from, end);
      CHECK(from <= to && to <= begins.back());
      end = to;
    }
    CHECK_EQ(end, begins.back());
  }
}

namespace {

struct Memory {
  std::vector<std::uint8_t> slots;
  std::vector<std::uint32_t> index;
  std::vector<float> codebooks;
};

std::shared_ptr<Memory> copy_of(const BackoffTable& table) {
  const TableArrays& arrays = table.arrays();
  auto memory = std::make_shared<Memory>();
  memory->slots.assign(arrays.slots, arrays.slots + table.layout().slot_bytes);
  memory->index.assign(arrays.index, arrays.index + table.layout().index_length);
  memory->codebooks.assign(arrays.codebooks, arrays.codebooks + table.layout().codebook_length);
  return memory;
}

Table over(const TableShape& shape, const std::shared_ptr<Memory>& memory) {
  return std::make_shared<const BackoffTable>(
      shape, TableArrays{memory->slots.data(), memory->index.data(), memory->codebooks.data(), memory, {}});
}

// Whatever comes out is in range.
void use(Random& random, const Table& table) {
  const TableShape& shape = table->shape();
  std::vector<std::uint32_t> row(shape.columns()), ids(50);
  for (int i = 0; i < 20; ++i) {
    for (auto& id : row) id = any_id(random, 40);
    for (std::size_t j = 0; j < shape.levels(); ++j) {
      CHECK(!(table->probability_from(j, row.data(), table->uniform_base(row[0])) < 0));
      CHECK(!(table->backoff_of(j, row.data() + 1) < 0));
    }
    if (shape.sequence) CHECK(table->advance(row.data() + 1, shape.columns() - 1, row[0]).kept < shape.columns());
  }
  const ContextColumns columns_of(*table);
  for (std::size_t j = 0; j < shape.levels(); ++j)
    table->each_entry(j,
                      [&](std::uint64_t at, std::uint32_t context, std::uint32_t outcome, double, std::uint32_t own) {
                        CHECK(at < shape.entries[j].rows && outcome < shape.outcomes && own < table->contexts());
                        std::uint32_t columns[max_columns + 1];
                        const std::uint32_t found = columns_of.columns(context, columns);
                        CHECK(found == none || found < shape.columns());
                      });
  const ChainSampler sampler(table, {}, any_id(random, 40));
  std::vector<std::uint32_t> context(sampler.context_columns(), 1);
  const std::uint32_t drawn = sampler.draw(context.data(), 1, 1, 1);
  CHECK(drawn == none || drawn < shape.outcomes);
  if (!shape.sequence) return;
  for (auto& id : ids) id = any_id(random, 40);
  const std::vector<std::uint64_t> starts{0, 0, 1, 30, 50};
  std::vector<double> out(ids.size() + starts.size() - 1);
  table->score_sequences(ids, starts, any_id(random, 40), 3, out.data());
}

}  // namespace

TEST("compact tables: forged ones are refused, or stay inside") {
  Random random(37);
  int refused = 0, used = 0;
  for (int round = 0; round < 200; ++round) {
    const bool wide = random.chance(4);
    Table table = random.chance(2) ? random_chain(random, wide) : random_sequences(random, wide);
    const bool coded = random.chance(2);
    if (coded) table = quantize(*table, 5, 1, ignore).table;
    table = make_compact(*table, 5, {}, ignore);
    const auto memory = copy_of(*table);
    for (std::uint8_t& byte : memory->slots)
      if (round % 2 == 0 || random.chance(9)) byte = static_cast<std::uint8_t>(mix64(random.below(1u << 30)));
    for (float& value : memory->codebooks)
      if (random.chance(3)) value = std::bit_cast<float>(static_cast<std::uint32_t>(mix64(random.below(1u << 30))));
    if (round % 3 == 0 && !memory->index.empty())
      memory->index[random.below(memory->index.size())] ^= 1u << random.below(32);
    try {
      use(random, over(table->shape(), memory));
      ++used;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::table);
      ++refused;
    }
  }
  CHECK(refused > 20);
  CHECK(used > 100);
}

TEST("compact tables: shapes that none has are refused") {
  const auto refused = [&](const auto& change) {
    TableShape shape;
    shape.widths = {2, 1, 0};
    shape.outcomes = shape.base_size = 5;
    shape.sequence = shape.compact = true;
    shape.pad = 4;
    shape.entries = {{4, 1, 3, 32, 0}, {4, 1, 3, 32, 4}, {5, 0, 0, 6, 0}};
    const TableLayout fine(shape);
    CHECK_EQ(fine.context_count(), std::uint64_t{10});
    change(shape);
    CHECK_THROWS_CODE(TableLayout{shape}, ErrorCode::table);
  };
  refused([](TableShape& s) { s.compact = false; });
  refused([](TableShape& s) { s.entries[0].buckets = 2; });
  refused([](TableShape& s) { s.entries[0].buckets = 0; });
  refused([](TableShape& s) { s.entries[0].probability_bits = 21; });
  refused([](TableShape& s) { s.entries[0].probability_bits = 64; });
  refused([](TableShape& s) { s.entries[0].weight_bits = 1; });
  refused([](TableShape& s) { s.entries[2].last_bits = 3; });
  refused([](TableShape& s) { s.entries[1].weight_bits = 33; });
  refused([](TableShape& s) { s.value_bits = 3; });
  refused([](TableShape& s) { s.value_bits = 8; });  // a coded table has codes only
  refused([](TableShape& s) { s.entries[0].rows = none - 4; });
}
