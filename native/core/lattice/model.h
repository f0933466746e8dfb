// Probabilities of a lattice: relative frequencies of all nodes, mixed by their weights. Nothing
// here allocates or changes, so that any number of threads may ask at once.
#pragma once

#include <cstdint>
#include <memory>

#include "lattice/tables.h"
#include "lattice/weights.h"

namespace treelm {

// Where an event without its topic stands in the tables of every stem.
struct LatticePlaces {
  std::uint32_t context[max_lattice_nodes];
  std::uint64_t entry[max_lattice_nodes];
};

class LatticeModel {
 public:
  LatticeModel(std::shared_ptr<const LatticeTables> tables, LatticeWeights weights);

  const LatticeShape& shape() const { return tables_->shape(); }
  const LatticeTables& tables() const { return *tables_; }
  const std::shared_ptr<const LatticeTables>& shared_tables() const { return tables_; }
  const LatticeWeights& weights() const { return weights_; }

  // The probability of an outcome; `columns` has all columns, the topic last where there is one.
  double prob(const std::uint32_t* columns, std::uint32_t outcome) const;
  // Those of several outcomes in one context.
  void probs(const std::uint32_t* columns, const std::uint32_t* outcomes, std::size_t n, double* out) const;
  // Those of all outcomes; `out` has room for shape().outcomes() numbers.
  void distribution(const std::uint32_t* columns, double* out) const;
  // Those of one outcome under each of `n` topics in ascending order. The columns have no topic; the
  // nodes without it are looked up once for all.
  void topic_probs(const std::uint32_t* columns, std::uint32_t outcome, const std::uint32_t* topics, std::size_t n,
                   double* out) const;
  // The same, where the event has been found already.
  void find(const std::uint32_t* columns, std::uint32_t outcome, LatticePlaces& places) const;
  void topic_probs(const LatticePlaces& places, const std::uint32_t* topics, std::size_t n, double* out) const;

 private:
  // Shares of the own frequencies in the mixture for a context, and that of the uniform distribution.
  double mix(const std::uint32_t* columns, std::uint32_t* context, double* share) const;
  void topic_block(const LatticePlaces& places, const double* plain, const std::uint32_t* topics, std::size_t n,
                   double* out) const;

  std::shared_ptr<const LatticeTables> tables_;
  LatticeWeights weights_;
};

}  // namespace treelm
