#include "latent/rule_contraction.h"

#include <cstring>

// A copy of the hot loops for each generation of vector instructions, chosen at start-up; not under the
// sanitizers, which are not ready when the choice is made.
#if defined(__GNUC__) && defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TREELM_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TREELM_CLONES
#endif

#if defined(__GNUC__)
#define TREELM_INLINE inline __attribute__((always_inline))
#else
#define TREELM_INLINE inline
#endif

namespace treelm {

namespace {

#if defined(__GNUC__)
typedef double Vector __attribute__((vector_size(sizeof(Lanes))));

TREELM_INLINE void clear(Vector& to) { to = Vector{}; }
TREELM_INLINE void multiply(Vector& to, const Vector& a) { to *= a; }
TREELM_INLINE void add_product(Vector& to, const Vector& a, const Vector& b) { to += a * b; }
TREELM_INLINE void add_scaled(Vector& to, double a, const Vector& b) { to += a * b; }
TREELM_INLINE void raise_to(Vector& to, const Vector& a) { to = a > to ? a : to; }
#else
struct Vector {
  double value[lanes];
};

TREELM_INLINE void clear(Vector& to) {
  for (double& value : to.value) value = 0;
}
TREELM_INLINE void multiply(Vector& to, const Vector& a) {
  for (std::size_t i = 0; i < lanes; ++i) to.value[i] *= a.value[i];
}
TREELM_INLINE void add_product(Vector& to, const Vector& a, const Vector& b) {
  for (std::size_t i = 0; i < lanes; ++i) to.value[i] += a.value[i] * b.value[i];
}
TREELM_INLINE void add_scaled(Vector& to, double a, const Vector& b) {
  for (std::size_t i = 0; i < lanes; ++i) to.value[i] += a * b.value[i];
}
TREELM_INLINE void raise_to(Vector& to, const Vector& a) {
  for (std::size_t i = 0; i < lanes; ++i) to.value[i] = a.value[i] > to.value[i] ? a.value[i] : to.value[i];
}
#endif

TREELM_INLINE void load(Vector& to, const Lanes& from) { std::memcpy(&to, &from, sizeof to); }
TREELM_INLINE void store(Lanes& to, const Vector& from) { std::memcpy(&to, &from, sizeof from); }

TREELM_INLINE void collect(Vector& to, const double* const* scores, std::size_t i) {
  to = Vector{scores[0][i], scores[1][i], scores[2][i], scores[3][i],
              scores[4][i], scores[5][i], scores[6][i], scores[7][i]};
}

// Sums over the columns for R rows from `first`.
template <std::size_t R>
TREELM_INLINE void children_of_rows(const ActiveBlock& block, std::size_t first, const Lanes* pairs, Lanes* parents,
                                    Vector& largest) {
  Vector sum[R];
  for (Vector& value : sum) clear(value);
  const std::size_t rows = block.rows.size(), columns = block.columns();
  const double* weights = block.weights + first;
  for (std::size_t j = 0; j < columns; ++j, weights += rows) {
    Vector pair;
    load(pair, pairs[j]);
    for (std::size_t i = 0; i < R; ++i) add_scaled(sum[i], weights[i], pair);
  }
  for (std::size_t i = 0; i < R; ++i) {
    raise_to(largest, sum[i]);
    store(parents[first + i], sum[i]);
  }
}

// Shares the sums over the rows for J columns from `first`.
template <std::size_t J>
TREELM_INLINE void parent_of_columns(const ActiveBlock& block, std::size_t first, const Lanes* parents,
                                     const Lanes* left, const Lanes* right, Lanes* to_left, Lanes* to_right) {
  Vector sum[J];
  for (Vector& value : sum) clear(value);
  const std::size_t rows = block.rows.size();
  const double* weights = block.weights + first * rows;
  for (std::size_t i = 0; i < rows; ++i) {
    Vector parent;
    load(parent, parents[i]);
    for (std::size_t j = 0; j < J; ++j) add_scaled(sum[j], weights[j * rows + i], parent);
  }
  for (std::size_t j = 0; j < J; ++j) {
    const std::size_t y = block.left[first + j], z = block.right[first + j];
    Vector score, to;
    load(score, right[z]);
    load(to, to_left[y]);
    add_product(to, sum[j], score);
    store(to_left[y], to);
    load(score, left[y]);
    load(to, to_right[z]);
    add_product(to, sum[j], score);
    store(to_right[z], to);
  }
}

template <std::size_t G>
TREELM_INLINE void products(const Lanes* parents, std::size_t parent_stride, std::size_t rows, const Lanes* pairs,
                            std::size_t columns, Lanes* sums) {
  for (std::size_t i = 0; i < rows; ++i) {
    Vector parent[G];
    for (std::size_t g = 0; g < G; ++g) load(parent[g], parents[g * parent_stride + i]);
    for (std::size_t j = 0; j < columns; ++j) {
      Vector sum, pair;
      load(sum, sums[i * columns + j]);
      for (std::size_t g = 0; g < G; ++g) {
        load(pair, pairs[g * columns + j]);
        add_product(sum, parent[g], pair);
      }
      store(sums[i * columns + j], sum);
    }
  }
}

}  // namespace

TREELM_CLONES void gather(const double* const* scores, std::size_t size, Lanes* out) {
  for (std::size_t i = 0; i < size; ++i) {
    Vector found;
    collect(found, scores, i);
    store(out[i], found);
  }
}

TREELM_CLONES void gather_rows(const double* const* scores, std::span<const std::uint16_t> rows, const Lanes& scale,
                               Lanes* out) {
  Vector factor;
  load(factor, scale);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Vector found;
    collect(found, scores, rows[i]);
    multiply(found, factor);
    store(out[i], found);
  }
}

TREELM_CLONES void scatter(const Lanes* from, std::size_t size, std::size_t count, double* const* scores) {
  for (std::size_t n = 0; n < count; ++n) {
    double* to = scores[n];
    for (std::size_t i = 0; i < size; ++i) to[i] = from[i].value[n];
  }
}

TREELM_CLONES void multiply_children(const ActiveBlock& block, const Lanes* left, const Lanes* right, Lanes* pairs) {
  for (std::size_t j = 0; j < block.columns(); ++j) {
    Vector product, score;
    load(product, left[block.left[j]]);
    load(score, right[block.right[j]]);
    multiply(product, score);
    store(pairs[j], product);
  }
}

TREELM_CLONES Lanes contract_children(const ActiveBlock& block, const Lanes* pairs, Lanes* parents) {
  Vector largest;
  clear(largest);
  const std::size_t rows = block.rows.size();
  std::size_t i = 0;
  for (; i + 8 <= rows; i += 8) children_of_rows<8>(block, i, pairs, parents, largest);
  if (i + 4 <= rows) {
    children_of_rows<4>(block, i, pairs, parents, largest);
    i += 4;
  }
  if (i + 2 <= rows) {
    children_of_rows<2>(block, i, pairs, parents, largest);
    i += 2;
  }
  if (i < rows) children_of_rows<1>(block, i, pairs, parents, largest);
  Lanes result;
  store(result, largest);
  return result;
}

TREELM_CLONES void contract_parent(const ActiveBlock& block, const Lanes* parents, const Lanes* left,
                                   const Lanes* right, Lanes* to_left, Lanes* to_right) {
  std::size_t j = 0;
  for (; j + 4 <= block.columns(); j += 4) parent_of_columns<4>(block, j, parents, left, right, to_left, to_right);
  for (; j < block.columns(); ++j) parent_of_columns<1>(block, j, parents, left, right, to_left, to_right);
}

TREELM_CLONES void add_products(const Lanes* parents, std::size_t parent_stride, std::size_t rows, const Lanes* pairs,
                                std::size_t columns, std::size_t groups, Lanes* sums) {
  switch (groups) {
    case 1: return products<1>(parents, parent_stride, rows, pairs, columns, sums);
    case 2: return products<2>(parents, parent_stride, rows, pairs, columns, sums);
    case 3: return products<3>(parents, parent_stride, rows, pairs, columns, sums);
    default: return products<4>(parents, parent_stride, rows, pairs, columns, sums);
  }
}

}  // namespace treelm
