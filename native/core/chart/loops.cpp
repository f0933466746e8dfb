#include "chart/loops.h"

#include <bit>

#include "base/target_clones.h"
#include "chart/block.h"

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
[[gnu::always_inline]] inline void add_all_products(Real* pairs, const Real* rights, const LeftChild<Real>* lefts,
                                                    std::size_t count, const std::uint32_t* slots, Real scale) {
  constexpr std::size_t lanes = Block<Real>::lanes;
  for (std::size_t i = 0; i < count; ++i) {
    const LeftChild<Real>& left = lefts[i];
    const Real factor = left.inside * scale;
    for (std::uint32_t b = left.first_block; b < left.first_block + left.blocks; ++b) {
      Block<Real> sums = Block<Real>::load(pairs + b * lanes);
      sums.add(factor, Block<Real>::load(rights + slots[b]));
      sums.store(pairs + b * lanes);
    }
  }
}

template <class Real>
[[gnu::always_inline]] inline void hand_all_products(Real* outside, Real* sums, const Real* weights, const Real* rights,
                                                     const char* marked, const LeftChild<Real>* lefts,
                                                     std::size_t count, const std::uint32_t* slots, Real scale) {
  constexpr std::size_t lanes = Block<Real>::lanes;
  for (std::size_t i = 0; i < count; ++i) {
    const LeftChild<Real>& left = lefts[i];
    sums[i] = 0;
    if (!marked[left.symbol]) continue;
    const Real factor = left.inside * scale;
    Block<Real> sum;
    sum.clear();
    for (std::uint32_t b = left.first_block; b < left.first_block + left.blocks; ++b) {
      const Block<Real> own = Block<Real>::load(weights + b * lanes);
      sum.add(own, Block<Real>::load(rights + slots[b]));
      Block<Real> handed = Block<Real>::load(outside + slots[b]);
      handed.add(factor, own);
      handed.store(outside + slots[b]);
    }
    sums[i] = sum.sum();
  }
}

template <class Real>
[[gnu::always_inline]] inline void apply_all_rows(Real* sums, Real* pairs, const PairBlocks<Real>& blocks,
                                                  const char* marked, std::uint32_t symbols) {
  constexpr std::size_t lanes = Block<Real>::lanes;
  const auto* rows = blocks.rows();
  const Real* weights = blocks.weights();
  Block<Real> zero;
  zero.clear();
  for (std::uint32_t left = 0; left < symbols; ++left) {
    if (!marked[left]) continue;
    std::uint32_t row = blocks.first_row(left);
    const std::uint32_t end = blocks.first_row(left + 1);
    while (row < end) {
      const std::uint32_t block = rows[row].block;
      const Block<Real> pair = Block<Real>::load(pairs + block * lanes);
      zero.store(pairs + block * lanes);
      for (; row < end && rows[row].block == block; ++row) {
        Real* own = sums + rows[row].parent * lanes;
        Block<Real> sum = Block<Real>::load(own);
        sum.add(pair, Block<Real>::load(weights + row * lanes));
        sum.store(own);
      }
    }
  }
}

template <class Real>
[[gnu::always_inline]] inline void add_all_weights(Real* pairs, const PairBlocks<Real>& blocks, std::uint32_t parent,
                                                   Real factor) {
  constexpr std::size_t lanes = Block<Real>::lanes;
  const auto* rows = blocks.rows();
  const Real* weights = blocks.weights();
  for (const std::uint32_t row : blocks.rows_of_parent(parent)) {
    Real* own = pairs + rows[row].block * lanes;
    Block<Real> sum = Block<Real>::load(own);
    sum.add(factor, Block<Real>::load(weights + row * lanes));
    sum.store(own);
  }
}

template <class Real>
[[gnu::always_inline]] inline std::size_t find_all_products(std::uint32_t* found, const Real* weights,
                                                            const Real* rights, const LeftChild<Real>& left,
                                                            const std::uint32_t* slots, Real factor, Real least) {
  constexpr std::size_t lanes = Block<Real>::lanes;
  std::size_t count = 0;
  for (std::uint32_t block = left.first_block; block < left.first_block + left.blocks; ++block) {
    const Real *own = weights + block * lanes, *values = rights + slots[block];
    std::uint32_t bits = 0;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      const Real product = own[lane] * values[lane] * factor;
      bits |= static_cast<std::uint32_t>(product >= least && product > 0) << lane;
    }
    for (; bits != 0; bits &= bits - 1)
      found[count++] = block * static_cast<std::uint32_t>(lanes) + static_cast<std::uint32_t>(std::countr_zero(bits));
  }
  return count;
}

template <class Real>
[[gnu::always_inline]] inline void fold_all_blocks(Real* out, Real* blocks, std::size_t count) {
  constexpr std::size_t lanes = Block<Real>::lanes;
  Block<Real> zero;
  zero.clear();
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = Block<Real>::load(blocks + i * lanes).sum();
    zero.store(blocks + i * lanes);
  }
}

}  // namespace

TREELM_CLONES void add_gathered(float* sums, const float* values, const std::uint32_t* index, std::size_t count,
                                float factor) {
  add_all_gathered(sums, values, index, count, factor);
}
void add_gathered(double* sums, const double* values, const std::uint32_t* index, std::size_t count, double factor) {
  add_all_gathered(sums, values, index, count, factor);
}

TREELM_CLONES void add_products(float* pairs, const float* rights, const LeftChild<float>* lefts, std::size_t count,
                                const std::uint32_t* slots, float scale) {
  add_all_products(pairs, rights, lefts, count, slots, scale);
}
TREELM_CLONES void add_products(double* pairs, const double* rights, const LeftChild<double>* lefts, std::size_t count,
                                const std::uint32_t* slots, double scale) {
  add_all_products(pairs, rights, lefts, count, slots, scale);
}

TREELM_CLONES void hand_products(float* outside, float* sums, const float* weights, const float* rights,
                                 const char* marked, const LeftChild<float>* lefts, std::size_t count,
                                 const std::uint32_t* slots, float scale) {
  hand_all_products(outside, sums, weights, rights, marked, lefts, count, slots, scale);
}
TREELM_CLONES void hand_products(double* outside, double* sums, const double* weights, const double* rights,
                                 const char* marked, const LeftChild<double>* lefts, std::size_t count,
                                 const std::uint32_t* slots, double scale) {
  hand_all_products(outside, sums, weights, rights, marked, lefts, count, slots, scale);
}

TREELM_CLONES void apply_rows(double* sums, double* pairs, const PairBlocks<double>& blocks, const char* marked,
                              std::uint32_t symbols) {
  apply_all_rows(sums, pairs, blocks, marked, symbols);
}
TREELM_CLONES void add_weights(double* pairs, const PairBlocks<double>& blocks, std::uint32_t parent, double factor) {
  add_all_weights(pairs, blocks, parent, factor);
}
TREELM_CLONES std::size_t find_products(std::uint32_t* found, const double* weights, const double* rights,
                                        const LeftChild<double>& left, const std::uint32_t* slots, double factor,
                                        double least) {
  return find_all_products(found, weights, rights, left, slots, factor, least);
}

TREELM_CLONES void apply_rows(float* sums, float* pairs, const PairBlocks<float>& blocks, const char* marked,
                              std::uint32_t symbols) {
  apply_all_rows(sums, pairs, blocks, marked, symbols);
}
TREELM_CLONES void add_weights(float* pairs, const PairBlocks<float>& blocks, std::uint32_t parent, float factor) {
  add_all_weights(pairs, blocks, parent, factor);
}
TREELM_CLONES std::size_t find_products(std::uint32_t* found, const float* weights, const float* rights,
                                        const LeftChild<float>& left, const std::uint32_t* slots, float factor,
                                        float least) {
  return find_all_products(found, weights, rights, left, slots, factor, least);
}

TREELM_CLONES void fold_blocks(double* out, double* blocks, std::size_t count) { fold_all_blocks(out, blocks, count); }
TREELM_CLONES void fold_blocks(float* out, float* blocks, std::size_t count) { fold_all_blocks(out, blocks, count); }

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
