// The innermost loops of charts, compiled for several generations of processors where that can be.
#pragma once

#include <cstddef>
#include <cstdint>

namespace treelm {

// sums[i] += factor * values[index[i]]
void add_gathered(float* sums, const float* values, const std::uint32_t* index, std::size_t count, float factor);
void add_gathered(double* sums, const double* values, const std::uint32_t* index, std::size_t count, double factor);

// values[index[i]] += factor * weights[i], no index twice; gives the sum of weights[i] * others[index[i]]
float scatter_and_sum(float* values, const float* others, const float* weights, const std::uint32_t* index,
                      std::size_t count, float factor);
double scatter_and_sum(double* values, const double* others, const double* weights, const std::uint32_t* index,
                       std::size_t count, double factor);

// out[x] += sum over t of value[t] * rows[index[t] * width + x], for x below width
void add_rows(float* out, const float* rows, const std::uint32_t* index, const float* value, std::size_t count,
              std::size_t width);
void add_rows(double* out, const double* rows, const std::uint32_t* index, const double* value, std::size_t count,
              std::size_t width);

// out[t] = sum over x of rows[index[t] * width + x] * value[x]
void dot_rows(float* out, const float* rows, const std::uint32_t* index, std::size_t count, const float* value,
              std::size_t width);
void dot_rows(double* out, const double* rows, const std::uint32_t* index, std::size_t count, const double* value,
              std::size_t width);

}  // namespace treelm
