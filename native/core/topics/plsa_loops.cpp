#include <bit>

#include "base/target_clones.h"
#include "lattice/shape.h"
#include "topics/plsa.h"

namespace treelm {

namespace {

constexpr std::size_t lanes = 8;

}  // namespace

// The lanes are part of the result: sums are the same for every width of vector registers.
TREELM_CLONES double dot_product(const double* a, const double* b, std::size_t n) {
  double sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (std::size_t lane = 0; i < n; ++i, ++lane) sums[lane] += a[i] * b[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

TREELM_CLONES void add_rounded_products(const double* a, const double* b, double scale, std::size_t n,
                                        std::int64_t* first, std::int64_t* second) {
  const auto zero = std::bit_cast<std::int64_t>(whole_numbers);
  for (std::size_t i = 0; i < n; ++i) {
    const double value = a[i] * b[i] * scale + whole_numbers;
    const std::int64_t rounded = std::bit_cast<std::int64_t>(value) - zero;
    first[i] += rounded;
    second[i] += rounded;
  }
}

}  // namespace treelm
