// Work beyond memory: the same results as in memory, in runs as small as they can be.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "backoff/estimate.h"
#include "backoff/streamed_counts.h"
#include "base/external_sort.h"
#include "base/random.h"
#include "tests/harness.h"

using namespace treelm;
using namespace treelm::test;

namespace {

std::string folder() {
  const char* place = std::getenv("TMPDIR");
  return place != nullptr ? place : "/tmp";
}

struct Numbered {
  static constexpr bool has_ties = false;
  Key<1> key;
  std::uint64_t number;
  friend bool operator<(const Numbered& a, const Numbered& b) { return a.key < b.key; }
};

}  // namespace

TEST("external sort: any number of runs, in order, nothing lost") {
  for (const std::size_t count : {0u, 1u, 63u, 64u, 65u, 1000u, 20000u}) {
    ThreadPool pool(2);
    ExternalSorter<Numbered> sorter(64, 0, folder(), pool);  // runs of 64 records, merged by 64
    for (std::uint64_t i = 0; i < count; ++i) sorter.add({{{mix64(i)}}, i});
    CHECK_EQ(sorter.size(), std::uint64_t{count});
    sorter.finish();
    std::vector<std::uint64_t> seen;
    std::uint64_t before = 0;
    for (Numbered record; sorter.next(record);) {
      CHECK_EQ(record.key.w[0], mix64(record.number));
      CHECK(seen.empty() || before < record.key.w[0]);
      before = record.key.w[0];
      seen.push_back(record.number);
    }
    std::sort(seen.begin(), seen.end());
    CHECK_EQ(seen.size(), count);
    for (std::size_t i = 0; i < seen.size(); ++i) CHECK_EQ(seen[i], std::uint64_t{i});
  }
}

TEST("byte arena: in memory and in a file the same bytes, which may be forgotten") {
  for (const std::string& place : {std::string(), folder()}) {
    ByteArena arena(place, 100);
    std::vector<std::uint8_t> expected;
    for (std::size_t i = 0; i < 500; ++i) {
      const std::vector<std::uint8_t> piece(i % 137, static_cast<std::uint8_t>(i));
      arena.append(piece.data(), piece.size());
      expected.insert(expected.end(), piece.begin(), piece.end());
    }
    CHECK_EQ(arena.size(), std::uint64_t{expected.size()});
    const auto stored = arena.finish();
    CHECK_EQ(stored->size(), expected.size());
    CHECK_EQ(stored->mapped(), !place.empty());
    for (int round = 0; round < 2; ++round) {
      CHECK(std::equal(expected.begin(), expected.end(), stored->data()));
      stored->forget(0, stored->size());
    }
  }
  CHECK_THROWS_CODE(ByteArena(folder() + "/is/not/there"), ErrorCode::spill);
}

TEST("streamed estimation: the table of memory, byte for byte") {
  Random random(21);
  for (int round = 0; round < 12; ++round) {
    const bool sequence = random.chance(2);
    std::vector<std::uint32_t> ids;
    std::vector<std::uint64_t> starts{0};
    for (int s = 0; s < 300; ++s) {
      for (std::size_t w = random.below(12); w > 0; --w)
        ids.push_back(static_cast<std::uint32_t>(random.below(random.chance(2) ? 4 : 40)));
      starts.push_back(ids.size());
    }
    constexpr std::uint32_t end = 40, pad = 41;
    std::vector<std::shared_ptr<SortedEvents>> events;
    for (const bool on_disk : {false, true}) {
      EventCounter counter(3, 1, 1024, on_disk ? MemoryLimit{1, folder()} : MemoryLimit{});
      counter.add_sequences(ids, starts, end, pad);
      events.push_back(std::make_shared<SortedEvents>(counter.finish()));
    }
    CHECK(events[1]->mapped() && !events[0]->mapped());
    const ChainShape shape{{2, 1, 0}, {sequence ? pad : none, sequence ? pad : none}};
    const ChainCounts inside(events[0], shape, false, true, 1);
    const StreamedCounts outside(events[1], shape, false, 1, {1, folder()});
    EstimatePlan plan;
    const auto least = static_cast<std::uint32_t>(1 + random.below(3));
    for (std::size_t j = 0; j < 3; ++j) {
      CHECK_EQ(inside.size(j), outside.size(j));
      CHECK(inside.counts_of_counts(j) == outside.counts_of_counts(j));
      plan.levels.push_back({{0.5, 0.75, 0.9}, {}, false, j + 1 < 3 ? least : 1});
    }
    plan.shape.widths = shape.widths;
    plan.shape.outcomes = pad + 1;
    plan.shape.base_size = pad;
    plan.shape.sequence = sequence;
    plan.shape.pad = sequence ? pad : none;
    plan.shape.first_contexts = sequence ? 0 : pad + 1;
    plan.shape.value_bits = random.chance(2) ? 32 : 64;
    const auto silent = [](std::uint64_t, std::uint64_t) {};
    const auto one = estimate(inside, plan, silent), other = estimate(outside, plan, silent);
    CHECK(one->shape().entries == other->shape().entries);
    CHECK(one->shape().contexts == other->shape().contexts);
    CHECK_EQ(one->shape().empty_weight, other->shape().empty_weight);
    CHECK(std::memcmp(one->arrays().slots, other->arrays().slots, one->layout().slot_bytes) == 0);
    CHECK(std::memcmp(one->arrays().index, other->arrays().index, 4 * one->layout().index_length) == 0);
  }
}
