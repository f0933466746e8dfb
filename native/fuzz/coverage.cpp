#include "coverage.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace {

// Steps from one place to the next, by a hash of the two, with how often each was taken.
constexpr std::size_t steps = std::size_t{1} << 16;
std::array<std::uint8_t, steps> taken{};
std::array<std::uint16_t, steps> touched{};
std::array<std::uint8_t, steps> seen{};  // a bit for once, twice, four times, ...
std::size_t touched_count = 0;
std::uintptr_t before = 0;
bool noting = false;

}  // namespace

extern "C" {
__attribute__((no_sanitize("address", "undefined"), visibility("default"))) void __sanitizer_cov_trace_pc();

void __sanitizer_cov_trace_pc() {
  if (!noting) return;
  // Relative to this function, so that it does not depend on where the program was loaded.
  const std::uintptr_t here = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) -
                              reinterpret_cast<std::uintptr_t>(&__sanitizer_cov_trace_pc);
  const std::uintptr_t mixed = here * 0x9E3779B97F4A7C15ull >> 40;
  const auto step = static_cast<std::uint16_t>(mixed ^ before);
  before = mixed >> 1;
  if (taken[step] == 0) touched[touched_count++] = step;
  if (taken[step] < 255) ++taken[step];
}
}

namespace treelm::fuzz {

void start_noting() {
  before = 0;
  touched_count = 0;
  noting = true;
}

bool stop_noting() {
  noting = false;
  bool found = false;
  for (std::size_t i = 0; i < touched_count; ++i) {
    const std::uint16_t step = touched[i];
    const auto bit = static_cast<std::uint8_t>(1u << (std::bit_width(unsigned{taken[step]}) - 1));
    found |= (seen[step] & bit) == 0;
    seen[step] |= bit;
    taken[step] = 0;
  }
  return found;
}

}  // namespace treelm::fuzz
