// The innermost loops of charts, compiled for several generations of processors where that can be.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chart/pair_blocks.h"

namespace treelm {

// sums[i] += factor * values[index[i]]
void add_gathered(float* sums, const float* values, const std::uint32_t* index, std::size_t count, float factor);
void add_gathered(double* sums, const double* values, const std::uint32_t* index, std::size_t count, double factor);

// A left child at a split, and its blocks among the pairs of children (see PairBlocks).
template <class Real>
struct LeftChild {
  std::uint32_t symbol, item, first_block, blocks;
  Real inside;
};

// Adds to all pairs of children at one split their products: pairs[16 * b + x] += scale * inside * rights[slots[b] + x]
// for the blocks b of all left children.
void add_products(float* pairs, const float* rights, const LeftChild<float>* lefts, std::size_t count,
                  const std::uint32_t* slots, float scale);
void add_products(double* pairs, const double* rights, const LeftChild<double>* lefts, std::size_t count,
                  const std::uint32_t* slots, double scale);

// The way back, for left children whose symbol is marked: adds scale * inside * weights[16 * b + x] to
// outside[slots[b] + x], and puts the sum of weights[16 * b + x] * rights[slots[b] + x] into sums, 0 for the others.
void hand_products(float* outside, float* sums, const float* weights, const float* rights, const char* marked,
                   const LeftChild<float>* lefts, std::size_t count, const std::uint32_t* slots, float scale);
void hand_products(double* outside, double* sums, const double* weights, const double* rights, const char* marked,
                   const LeftChild<double>* lefts, std::size_t count, const std::uint32_t* slots, double scale);

// Applies all rules of left children whose symbol is marked to their pairs: sums[16 * A + x] grows by the products of
// all pairs in lane x with the weights of their rules that make A. Then clears the pairs.
void apply_rows(float* sums, float* pairs, const PairBlocks<float>& blocks, const char* marked, std::uint32_t symbols);
void apply_rows(double* sums, double* pairs, const PairBlocks<double>& blocks, const char* marked,
                std::uint32_t symbols);

// Adds to the pairs that make a parent their weights, times a factor.
void add_weights(float* pairs, const PairBlocks<float>& blocks, std::uint32_t parent, float factor);
void add_weights(double* pairs, const PairBlocks<double>& blocks, std::uint32_t parent, double factor);

// Lists the places of a left child at which weights * rights * factor is at least `least` and not 0; gives their
// number.
std::size_t find_products(std::uint32_t* found, const float* weights, const float* rights, const LeftChild<float>& left,
                          const std::uint32_t* slots, float factor, float least);
std::size_t find_products(std::uint32_t* found, const double* weights, const double* rights,
                          const LeftChild<double>& left, const std::uint32_t* slots, double factor, double least);

// out[i] becomes the sum of blocks[16 * i] to blocks[16 * i + 15], for i below count; then clears the blocks.
void fold_blocks(float* out, float* blocks, std::size_t count);
void fold_blocks(double* out, double* blocks, std::size_t count);

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
