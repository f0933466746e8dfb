#include "base/random.h"

#include "tests/harness.h"

using namespace treelm;

// The recipe is a promise of our file formats, so the values are pinned; the first two are the
// published test vectors of SplitMix64, the others come from a second implementation in Python.
static_assert(mix64(0) == 0xE220A8397B1DCDAFull);
static_assert(mix64(1234567) == 6457827717110365317ull);
static_assert(random_bits(0, 0, 0) == 0x238275BC38FCBE91ull);
static_assert(random_uniform(1, 2, 3) == 0x1.a0e68ea1fbc6cp-1);

TEST("random: values are pinned") {
  CHECK_EQ(random_bits(1, 2, 3), 0xD0734750FDE362B3ull);
  CHECK_EQ(random_bits(42, 0, 7), 0xA475DB99D192C121ull);
  CHECK_EQ(random_bits(~0ull, ~0ull, ~0ull), 0x595B17F487C0E71Bull);
  CHECK_EQ(random_uniform(42, 0, 7), 0x1.48ebb733a3258p-1);
  CHECK_EQ(random_uniform(~0ull, ~0ull, ~0ull), 0x1.656c5fd21f038p-2);
}

TEST("random: each of the three numbers matters") {
  const std::uint64_t here = random_bits(5, 6, 7);
  CHECK(random_bits(4, 6, 7) != here);
  CHECK(random_bits(5, 7, 7) != here);
  CHECK(random_bits(5, 6, 8) != here);
  CHECK(random_bits(6, 5, 7) != here);
  CHECK(random_bits(5, 7, 6) != here);
}

TEST("random: uniform numbers fill [0, 1) evenly") {
  constexpr int count = 100000, bins = 20;
  int filled[bins] = {};
  for (std::uint64_t i = 0; i < count; ++i) {
    const double value = random_uniform(1, i % 7, i);
    CHECK(value >= 0 && value < 1);
    ++filled[static_cast<int>(value * bins)];
  }
  for (const int n : filled) CHECK(n > count / bins * 9 / 10 && n < count / bins * 11 / 10);
}
