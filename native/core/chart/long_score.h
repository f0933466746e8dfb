// Products of many small numbers without logarithms.
#pragma once

#include <cmath>
#include <cstdint>

namespace treelm {

// A number above 2^-400 and at most 1, times a power of 2^400; sums leave the power at 0.
struct LongScore {
  double value = 0;
  std::int32_t exponent = 0;

  friend bool operator<(const LongScore& a, const LongScore& b) {
    if (a.value == 0 || b.value == 0) return a.value < b.value;
    return a.exponent != b.exponent ? a.exponent < b.exponent : a.value < b.value;
  }
  friend bool operator==(const LongScore&, const LongScore&) = default;
  double log() const {
    constexpr double log_step = 400 * 0.693147180559945309417232121458;
    return std::log(value) + exponent * log_step;
  }
};

inline LongScore normalized(double value, std::int32_t exponent) {
  constexpr double step_down = 0x1p-400, step_up = 0x1p+400;
  while (value > 0 && value <= step_down) {
    value *= step_up;
    --exponent;
  }
  while (value > 1 && value <= 0x1p+1000) {
    value *= step_down;
    ++exponent;
  }
  return {value, exponent};
}

// The number value * 2^exponent.
inline LongScore long_score(double value, int exponent) {
  const int steps = exponent >= 0 ? exponent / 400 : -(-exponent / 400);
  return normalized(std::ldexp(value, exponent - 400 * steps), steps);
}

}  // namespace treelm
