// The inner loops of latent grammars: sums of products of a rule's weights with the scores at its parent and
// its children, for eight instances of the rule at once, one in each lane of a vector.
//
// The order of additions is fixed, so that every processor and every number of threads gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace treelm {

inline constexpr std::size_t lanes = 8;

// One number for each of eight instances.
struct alignas(64) Lanes {
  double value[lanes];
};

// What is not zero in the block of a rule: some subcategories of the parent (rows) and some pairs of
// subcategories of the children (columns). A unary rule has 0 as its right subcategory.
struct ActiveBlock {
  std::span<const std::uint16_t> rows, left, right;
  const double* weights;  // by column, then by row

  std::size_t columns() const { return left.size(); }
};

// out[i].value[n] = scores[n][i] for i < size.
void gather(const double* const* scores, std::size_t size, Lanes* out);

// out[i].value[n] = scores[n][rows[i]] * scale.value[n].
void gather_rows(const double* const* scores, std::span<const std::uint16_t> rows, const Lanes& scale, Lanes* out);

// scores[n][i] = from[i].value[n] for i < size and n < count.
void scatter(const Lanes* from, std::size_t size, std::size_t count, double* const* scores);

// pairs[j] = left[y] * right[z] for column j = (y, z).
void multiply_children(const ActiveBlock& block, const Lanes* left, const Lanes* right, Lanes* pairs);

// parents[i] = sum_j weights[j, i] * pairs[j]; returns the largest of them.
Lanes contract_children(const ActiveBlock& block, const Lanes* pairs, Lanes* parents);

// to_left[y] += t_j * right[z] and to_right[z] += t_j * left[y], where t_j = sum_i weights[j, i] * parents[i].
void contract_parent(const ActiveBlock& block, const Lanes* parents, const Lanes* left, const Lanes* right,
                     Lanes* to_left, Lanes* to_right);

// The most groups of eight instances that add_products takes at once.
inline constexpr std::size_t product_groups = 4;

// sums[i, j] += sum_g parents[g, i] * pairs[g, j] for i < rows, j < columns, g < groups; rows of `parents`
// are `parent_stride` long.
void add_products(const Lanes* parents, std::size_t parent_stride, std::size_t rows, const Lanes* pairs,
                  std::size_t columns, std::size_t groups, Lanes* sums);

// The sum of the lanes, in a fixed order.
inline double total(const Lanes& v) {
  const double* x = v.value;
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

}  // namespace treelm
