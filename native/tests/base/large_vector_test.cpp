#include "base/large_vector.h"

#include <algorithm>
#include <list>

#include "base/kept_blocks.h"
#include "base/random.h"
#include "tests/harness.h"

using namespace treelm;
using namespace treelm::test;

namespace {

constexpr std::size_t million = 1 << 20;

struct Filled {
  LargeVector<std::uint32_t> numbers;
  std::uint32_t number;

  bool is_whole() const {
    return std::all_of(numbers.begin(), numbers.end(), [&](std::uint32_t each) { return each == number; });
  }
};

}  // namespace

TEST("large vectors: memory that is used again belongs to one of them") {
  Random random(6);
  const KeptBlocks kept;
  std::list<Filled> all;
  for (std::uint32_t round = 0; round < 120; ++round) {
    if (random.chance(2) && !all.empty()) {
      auto gone = all.begin();
      std::advance(gone, random.below(all.size()));
      CHECK(gone->is_whole());
      all.erase(gone);
    } else if (all.size() < 8) {
      // Some smaller than what is kept, some larger than everything before.
      const std::size_t size = (1 + random.below(random.chance(5) ? 12 : 4)) * million - random.below(1000);
      all.push_back({LargeVector<std::uint32_t>(size, round), round});
    }
    if (random.chance(20)) KeptBlocks::release();
  }
  for (const Filled& each : all) CHECK(each.is_whole());
}

#if defined(__linux__)
TEST("large vectors: a block is used again while blocks are kept") {
  const KeptBlocks kept;
  auto first = std::make_unique<LargeVector<std::uint32_t>>(4 * million, 1);
  const std::uint32_t* const place = first->data();
  first.reset();
  LargeVector<std::uint32_t> half(2 * million), other(2 * million);
  CHECK(half.data() == place && other.data() == place + 2 * million);
}
#endif
