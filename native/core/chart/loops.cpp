#include "chart/loops.h"

#include "base/target_clones.h"

namespace treelm {

namespace {

template <std::size_t lanes, class Real>
[[gnu::always_inline]] inline void add_rows_of(Real* out, const Real* rows, const std::uint32_t* index,
                                               const Real* value, std::size_t count, std::size_t width) {
  Real sum[lanes];
  for (std::size_t lane = 0; lane < lanes; ++lane) sum[lane] = out[lane];
  for (std::size_t t = 0; t < count; ++t) {
    const Real* row = rows + std::size_t{index[t]} * width;
    const Real factor = value[t];
    for (std::size_t lane = 0; lane < lanes; ++lane) sum[lane] += factor * row[lane];
  }
  for (std::size_t lane = 0; lane < lanes; ++lane) out[lane] = sum[lane];
}

template <class Real>
[[gnu::always_inline]] inline void add_all_rows(Real* out, const Real* rows, const std::uint32_t* index,
                                                const Real* value, std::size_t count, std::size_t width) {
  std::size_t x = 0;
  for (; x + 32 <= width; x += 32) add_rows_of<32>(out + x, rows + x, index, value, count, width);
  for (; x + 16 <= width; x += 16) add_rows_of<16>(out + x, rows + x, index, value, count, width);
  for (; x + 8 <= width; x += 8) add_rows_of<8>(out + x, rows + x, index, value, count, width);
  switch (width - x) {
    case 1: add_rows_of<1>(out + x, rows + x, index, value, count, width); break;
    case 2: add_rows_of<2>(out + x, rows + x, index, value, count, width); break;
    case 3: add_rows_of<3>(out + x, rows + x, index, value, count, width); break;
    case 4: add_rows_of<4>(out + x, rows + x, index, value, count, width); break;
    default: break;
  }
}

template <class Real>
[[gnu::always_inline]] inline void dot_all_rows(Real* out, const Real* rows, const std::uint32_t* index,
                                                std::size_t count, const Real* value, std::size_t width) {
  if (width < 8) {
    for (std::size_t t = 0; t < count; ++t) {
      const Real* row = rows + std::size_t{index[t]} * width;
      Real sum = 0;
      for (std::size_t x = 0; x < width; ++x) sum += row[x] * value[x];
      out[t] = sum;
    }
    return;
  }
  for (std::size_t t = 0; t < count; ++t) {
    const Real* row = rows + std::size_t{index[t]} * width;
    Real part[8] = {};
    for (std::size_t x = 0; x < width; x += 8)
      for (std::size_t lane = 0; lane < 8; ++lane) part[lane] += row[x + lane] * value[x + lane];
    out[t] = ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
  }
}

template <class Real>
[[gnu::always_inline]] inline void add_all_gathered(Real* sums, const Real* values, const std::uint32_t* index,
                                                    std::size_t count, Real factor) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += factor * values[index[i]];
}

template <class Real>
[[gnu::always_inline]] inline Real scatter_all(Real* values, const Real* others, const Real* weights,
                                               const std::uint32_t* index, std::size_t count, Real factor) {
  Real sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Real weight = weights[i];
    values[index[i]] += factor * weight;
    sum += weight * others[index[i]];
  }
  return sum;
}

}  // namespace

TREELM_CLONES void add_gathered(float* sums, const float* values, const std::uint32_t* index, std::size_t count,
                                float factor) {
  add_all_gathered(sums, values, index, count, factor);
}
void add_gathered(double* sums, const double* values, const std::uint32_t* index, std::size_t count, double factor) {
  add_all_gathered(sums, values, index, count, factor);
}

float scatter_and_sum(float* values, const float* others, const float* weights, const std::uint32_t* index,
                      std::size_t count, float factor) {
  return scatter_all(values, others, weights, index, count, factor);
}
double scatter_and_sum(double* values, const double* others, const double* weights, const std::uint32_t* index,
                       std::size_t count, double factor) {
  return scatter_all(values, others, weights, index, count, factor);
}

TREELM_CLONES void add_rows(float* out, const float* rows, const std::uint32_t* index, const float* value,
                            std::size_t count, std::size_t width) {
  add_all_rows(out, rows, index, value, count, width);
}
TREELM_CLONES void add_rows(double* out, const double* rows, const std::uint32_t* index, const double* value,
                            std::size_t count, std::size_t width) {
  add_all_rows(out, rows, index, value, count, width);
}

TREELM_CLONES void dot_rows(float* out, const float* rows, const std::uint32_t* index, std::size_t count,
                            const float* value, std::size_t width) {
  dot_all_rows(out, rows, index, count, value, width);
}
TREELM_CLONES void dot_rows(double* out, const double* rows, const std::uint32_t* index, std::size_t count,
                            const double* value, std::size_t width) {
  dot_all_rows(out, rows, index, count, value, width);
}

}  // namespace treelm
