// Sums as numpy adds up a piece of an array, to the last bit.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace treelm {

inline double pairwise_sum(const double* values, std::size_t count) {
  constexpr std::size_t wide = 8, block = 128;
  if (count < wide) {
    double sum = -0.0;
    for (std::size_t i = 0; i < count; ++i) sum += values[i];
    return sum;
  }
  if (count > block) {
    const std::size_t half = count / 2 / wide * wide;
    return pairwise_sum(values, half) + pairwise_sum(values + half, count - half);
  }
  std::array<double, wide> sums;
  std::copy_n(values, wide, sums.begin());
  std::size_t i = wide;
  for (; i + wide <= count; i += wide)
    for (std::size_t lane = 0; lane < wide; ++lane) sums[lane] += values[i + lane];
  double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (; i < count; ++i) sum += values[i];
  return sum;
}

// The first number, and the others by halves: a piece in the middle of an array. There is at least one.
inline double piece_sum(const double* values, std::size_t count) {
  return values[0] + pairwise_sum(values + 1, count - 1);
}

}  // namespace treelm
