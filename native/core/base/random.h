// Counter-based random numbers: the value depends on (seed, stream, counter) and nothing else, so
// results are the same for any number of threads. The recipe is part of our file format promises:
// three rounds of SplitMix64 finalisation over the three numbers, top 53 bits as a fraction.
#pragma once

#include <cstdint>

namespace treelm {

constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  return mix64(mix64(mix64(seed) ^ stream) ^ counter);
}

// A uniform number in [0, 1).
constexpr double random_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  return static_cast<double>(random_bits(seed, stream, counter) >> 11) * 0x1.0p-53;
}

}  // namespace treelm
