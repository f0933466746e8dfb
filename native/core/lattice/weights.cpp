#include "lattice/weights.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>

#include "base/error.h"

namespace treelm {

namespace {

// Events that one task sums up; sums are added in order of these blocks, whoever made them.
constexpr std::size_t block_size = 1 << 14;

std::size_t terms(const LatticeShape& shape, std::size_t node) {
  return 1 + std::max<std::size_t>(1, shape.nodes()[node].parents.size());
}

}  // namespace

CountBuckets::CountBuckets(std::vector<std::int64_t> edges) : edges_(std::move(edges)) {
  if (edges_.size() > 200 || (!edges_.empty() && edges_.front() <= 0) ||
      std::adjacent_find(edges_.begin(), edges_.end(), std::greater_equal<>()) != edges_.end())
    throw Error(ErrorCode::argument, "the edges of buckets must be positive and ascend");
  for (std::size_t bits = 1; bits <= 64; ++bits) {
    const std::uint64_t smallest = std::uint64_t{1} << (bits - 1);
    const auto edge = std::find_if(edges_.begin(), edges_.end(),
                                   [&](std::int64_t e) { return static_cast<std::uint64_t>(e) >= smallest; });
    first_[bits] = static_cast<std::uint8_t>(edge - edges_.begin());
  }
}

LatticeWeights::LatticeWeights(const LatticeShape& shape, CountBuckets buckets)
    : buckets_(std::move(buckets)), stride_(1 + shape.parents()) {
  values_.assign(shape.size() * buckets_.size() * stride_, 0.0);
  for (std::size_t v = 0; v < shape.size(); ++v)
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const std::size_t first = b == 0 ? 1 : 0, last = terms(shape, v);
      for (std::size_t i = first; i < last; ++i) of(v, b)[i] = 1.0 / static_cast<double>(last - first);
    }
}

LatticeWeights::LatticeWeights(const LatticeShape& shape, CountBuckets buckets, std::vector<double> values)
    : buckets_(std::move(buckets)), stride_(1 + shape.parents()), values_(std::move(values)) {
  if (values_.size() != shape.size() * buckets_.size() * stride_)
    throw Error(ErrorCode::table, "the weights belong to another lattice");
  for (std::size_t v = 0; v < shape.size(); ++v)
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const double* weights = of(v, b);
      double sum = 0;
      bool fits = b > 0 || weights[0] == 0;
      for (std::size_t i = 0; i < stride_; ++i) {
        sum += weights[i];
        fits = fits && weights[i] >= 0 && (i < terms(shape, v) || weights[i] == 0);
      }
      if (!fits || !(std::abs(sum - 1) < 1e-6))
        throw Error(ErrorCode::table, "the weights of node " + std::to_string(v) + " of a lattice do not add up to 1");
    }
}

void LatticeWeights::soften(const LatticeShape& shape, double share) {
  const LatticeWeights equal(shape, buckets_);
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = (1 - share) * values_[i] + share * equal.values_[i];
}

std::vector<std::vector<std::size_t>> tie_buckets(std::span<const double> weights, double least) {
  std::vector<std::vector<std::size_t>> classes;
  double held = 0;
  for (std::size_t bucket = weights.size(); bucket-- > 1;) {
    if (classes.empty() || held >= least) {
      classes.emplace_back();
      held = 0;
    }
    classes.back().push_back(bucket);
    held += weights[bucket];
  }
  if (classes.size() > 1 && held < least) {
    const std::vector<std::size_t> rest = std::move(classes.back());
    classes.pop_back();
    classes.back().insert(classes.back().end(), rest.begin(), rest.end());
  }
  classes.push_back({0});
  return classes;
}

void look_up_frequencies(const LatticeTables& tables, const CountBuckets& buckets, const std::uint32_t* columns,
                         std::uint32_t outcome, double* frequencies, std::uint8_t* bucket_of) {
  const LatticeShape& shape = tables.shape();
  std::uint32_t context[max_lattice_nodes];
  std::uint64_t entry[max_lattice_nodes];
  for (std::size_t s = 0; s < shape.stems().size(); ++s) {
    context[s] = tables.find_context(s, columns);
    entry[s] = context[s] == StemTable::none ? StemTable::no_entry : tables.stem(s).find(context[s], outcome);
  }
  for (std::size_t v = 0; v < shape.size(); ++v) {
    const std::size_t s = shape.stem(v);
    const StemTable& stem = tables.stem(s);
    std::int64_t total = 0, count = 0;
    if (context[s] != StemTable::none) {
      if (shape.with_topic(v)) {
        const std::uint32_t topic = columns[shape.columns() - 1];
        total = stem.context_topics(context[s]).find(topic);
        if (entry[s] != StemTable::no_entry) count = stem.entry_topics(entry[s]).find(topic);
      } else {
        total = stem.total(context[s]);
        if (entry[s] != StemTable::no_entry) count = stem.count(entry[s]);
      }
    }
    frequencies[v] = total > 0 ? static_cast<double>(count) / static_cast<double>(total) : 0.0;
    bucket_of[v] = static_cast<std::uint8_t>(buckets.of(total));
  }
}

LatticeCheck::LatticeCheck(const LatticeTables& tables, const CountBuckets& buckets,
                           std::span<const std::uint32_t> columns, std::span<const std::uint32_t> outcomes,
                           std::span<const double> weights, ThreadPool& pool)
    : shape_(tables.shape()), buckets_(buckets.size()), weights_(weights.begin(), weights.end()) {
  const std::size_t events = weights.size(), nodes = shape_.size();
  if (outcomes.size() != events || columns.size() != events * shape_.columns())
    throw Error(ErrorCode::argument, "columns, outcomes and weights of check events must have the same length");
  for (std::size_t i = 0; i < events; ++i) {
    if (!(weights[i] >= 0) || !std::isfinite(weights[i]))
      throw Error(ErrorCode::argument, "the weight of a check event is negative, NaN or infinite");
    if (outcomes[i] >= shape_.outcomes())
      throw Error(ErrorCode::argument, "the outcome of a check event is out of range");
  }
  frequencies_.resize(events * nodes);
  bucket_of_.resize(events * nodes);
  pool.map((events + block_size - 1) / block_size, [&](std::size_t block, std::size_t) {
    for (std::size_t i = block * block_size; i < std::min(events, (block + 1) * block_size); ++i)
      look_up_frequencies(tables, buckets, columns.data() + i * shape_.columns(), outcomes[i],
                          frequencies_.data() + i * nodes, bucket_of_.data() + i * nodes);
  });
  bucket_weights_.assign(nodes * buckets_, 0.0);
  for (std::size_t i = 0; i < events; ++i)
    for (std::size_t v = 0; v < nodes; ++v) bucket_weights_[v * buckets_ + bucket_of_[i * nodes + v]] += weights_[i];
}

// Equation (14): one pass up for the probabilities, one pass down for the shares.
double LatticeCheck::pass(const LatticeWeights& weights, std::vector<double>* sums, ThreadPool& pool) const {
  const std::size_t nodes = shape_.size(), stride = weights.stride();
  const std::size_t blocks = (size() + block_size - 1) / block_size;
  const double uniform = 1.0 / shape_.outcomes();
  std::vector<double> likelihoods(blocks, 0.0);
  std::vector<std::vector<double>> parts(sums == nullptr ? 0 : blocks);
  pool.map(blocks, [&](std::size_t block, std::size_t) {
    double probs[max_lattice_nodes], shares[max_lattice_nodes];
    std::vector<double> own(sums == nullptr ? 0 : nodes * buckets_ * stride, 0.0);
    for (std::size_t i = block * block_size; i < std::min(size(), (block + 1) * block_size); ++i) {
      const double* frequency = frequencies_.data() + i * nodes;
      const std::uint8_t* bucket = bucket_of_.data() + i * nodes;
      for (std::size_t v = 0; v < nodes; ++v) {
        const double* weight = weights.of(v, bucket[v]);
        const std::vector<std::uint32_t>& parents = shape_.nodes()[v].parents;
        probs[v] = weight[0] * frequency[v];
        if (v == 0) probs[v] += weight[1] * uniform;
        for (std::size_t u = 0; u < parents.size(); ++u) probs[v] += weight[1 + u] * probs[parents[u]];
      }
      if (weights_[i] == 0) continue;
      likelihoods[block] += weights_[i] * std::log(probs[nodes - 1]);
      if (sums == nullptr) continue;
      std::fill_n(shares, nodes, 0.0);
      shares[nodes - 1] = weights_[i];
      for (std::size_t v = nodes; v-- > 0;) {
        if (shares[v] == 0) continue;
        const double ratio = shares[v] / probs[v];
        const double* weight = weights.of(v, bucket[v]);
        double* sum = own.data() + (v * buckets_ + bucket[v]) * stride;
        const std::vector<std::uint32_t>& parents = shape_.nodes()[v].parents;
        sum[0] += ratio * weight[0] * frequency[v];
        if (v == 0) sum[1] += ratio * weight[1] * uniform;
        for (std::size_t u = 0; u < parents.size(); ++u) {
          const double share = ratio * weight[1 + u] * probs[parents[u]];
          sum[1 + u] += share;
          shares[parents[u]] += share;
        }
      }
    }
    if (sums != nullptr) parts[block] = std::move(own);
  });
  if (sums != nullptr) {
    sums->assign(nodes * buckets_ * stride, 0.0);
    for (const std::vector<double>& part : parts)
      for (std::size_t i = 0; i < part.size(); ++i) (*sums)[i] += part[i];
  }
  const double total = std::accumulate(likelihoods.begin(), likelihoods.end(), 0.0);
  if (std::isnan(total)) throw Error(ErrorCode::not_a_number, "the likelihood of the check events is NaN");
  return total;
}

double LatticeCheck::log_likelihood(const LatticeWeights& weights, ThreadPool& pool) const {
  return pass(weights, nullptr, pool);
}

double LatticeCheck::step(LatticeWeights& weights, double least, ThreadPool& pool,
                          const std::function<void()>& hear) const {
  hear();
  std::vector<double> sums;
  const double before = pass(weights, &sums, pool);
  const std::size_t stride = weights.stride();
  for (std::size_t v = 0; v < shape_.size(); ++v)
    for (const std::vector<std::size_t>& tied : classes(v, least)) {
      std::array<double, max_lattice_parents + 1> pooled{};
      for (const std::size_t bucket : tied)
        for (std::size_t i = 0; i < stride; ++i) pooled[i] += sums[(v * buckets_ + bucket) * stride + i];
      const double total = std::accumulate(pooled.begin(), pooled.end(), 0.0);
      if (!(total > 0)) continue;
      for (const std::size_t bucket : tied)
        for (std::size_t i = 0; i < stride; ++i) weights.of(v, bucket)[i] = pooled[i] / total;
    }
  return before;
}

std::vector<std::vector<std::size_t>> LatticeCheck::classes(std::size_t node, double least) const {
  return tie_buckets(std::span(bucket_weights_).subspan(node * buckets_, buckets_), least);
}

}  // namespace treelm
