// Weights of the nodes of a lattice and how they are found: EM on events that the counts have not
// seen, with one set of weights for all contexts of a node that were seen about equally often.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "lattice/shape.h"
#include "lattice/tables.h"

namespace treelm {

// Which bucket a count falls into: 0 for nothing, 1 up to the first edge, and so on.
class CountBuckets {
 public:
  // Edges in fixed point, ascending and positive; at most 200.
  explicit CountBuckets(std::vector<std::int64_t> edges);

  std::size_t size() const { return edges_.size() + 2; }
  const std::vector<std::int64_t>& edges() const { return edges_; }
  std::size_t of(std::int64_t count) const {
    if (count <= 0) return 0;
    std::size_t edge = first_[static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(count)))];
    while (edge < edges_.size() && edges_[edge] < count) ++edge;
    return edge + 1;
  }

 private:
  std::vector<std::int64_t> edges_;
  std::array<std::uint8_t, 65> first_{};  // by the number of bits of a count
};

class LatticeWeights {
 public:
  // All weights of a node and bucket are the same, that of its own frequency 0 in bucket 0.
  LatticeWeights(const LatticeShape& shape, CountBuckets buckets);
  // Weights read from a file, by node, bucket, and (own, parents); Error(table) unless they add up to 1.
  LatticeWeights(const LatticeShape& shape, CountBuckets buckets, std::vector<double> values);

  const CountBuckets& buckets() const { return buckets_; }
  std::size_t stride() const { return stride_; }  // 1 + most parents
  const std::vector<double>& values() const { return values_; }
  // The weight of the node's own frequency, then those of its parents; of the uniform distribution
  // for the first node.
  const double* of(std::size_t node, std::size_t bucket) const {
    return values_.data() + (node * buckets_.size() + bucket) * stride_;
  }
  double* of(std::size_t node, std::size_t bucket) {
    return values_.data() + (node * buckets_.size() + bucket) * stride_;
  }
  // Mixes a very little of the equal weights into all, so that nothing has no probability.
  void soften(const LatticeShape& shape, double share);

 private:
  CountBuckets buckets_;
  std::size_t stride_;
  std::vector<double> values_;
};

// The relative frequency of an event in every node, and the bucket of its context there.
void look_up_frequencies(const LatticeTables& tables, const CountBuckets& buckets, const std::uint32_t* columns,
                         std::uint32_t outcome, double* frequencies, std::uint8_t* bucket_of);

// Events that the counts have not seen, as a kernel wants them: every frequency looked up once.
class LatticeCheck {
 public:
  // `columns`: rows of shape.columns() values; `weights`: how often each, not negative.
  LatticeCheck(const LatticeTables& tables, const CountBuckets& buckets, std::span<const std::uint32_t> columns,
               std::span<const std::uint32_t> outcomes, std::span<const double> weights, ThreadPool& pool);

  std::size_t size() const { return weights_.size(); }
  // The log likelihood under some weights, and after one step of EM the new ones (sums pooled in
  // the classes of `tie_buckets`).
  double log_likelihood(const LatticeWeights& weights, ThreadPool& pool) const;
  double step(LatticeWeights& weights, double least, ThreadPool& pool, const std::function<void()>& hear) const;

 private:
  double pass(const LatticeWeights& weights, std::vector<double>* sums, ThreadPool& pool) const;
  std::vector<std::vector<std::size_t>> classes(std::size_t node, double least) const;

  LatticeShape shape_;
  std::size_t buckets_;
  std::vector<double> weights_;
  std::vector<double> frequencies_;      // by event and node
  std::vector<std::uint8_t> bucket_of_;  // by event and node
  std::vector<double> bucket_weights_;   // by node and bucket
};

// Buckets that share their weights, bucket 0 apart: from the highest down, a class with less weight
// than `least` takes in the next lower bucket; what is left at the end joins the class above it.
std::vector<std::vector<std::size_t>> tie_buckets(std::span<const double> weights, double least);

}  // namespace treelm
