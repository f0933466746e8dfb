#include "lattice/model.h"

#include <algorithm>

#include "base/error.h"

namespace treelm {

namespace {

// Topics that are worked on at once.
constexpr std::size_t block_topics = 64;

double ratio(std::int64_t count, std::int64_t total) { return static_cast<double>(count) / static_cast<double>(total); }

// Writes the counts of `n` ascending topics.
void pick(const TopicCounts& from, const std::uint32_t* topics, std::size_t n, std::int64_t* out) {
  if (n * 4 < from.size) {
    for (std::size_t i = 0; i < n; ++i) out[i] = from.find(topics[i]);
    return;
  }
  std::size_t place = 0;
  for (std::size_t i = 0; i < n; ++i) {
    while (place < from.size && from.topics[place] < topics[i]) ++place;
    out[i] = place < from.size && from.topics[place] == topics[i] ? from.counts[place] : 0;
  }
}

}  // namespace

LatticeModel::LatticeModel(std::shared_ptr<const LatticeTables> tables, LatticeWeights weights)
    : tables_(std::move(tables)), weights_(std::move(weights)) {
  if (weights_.stride() != 1 + shape().parents() ||
      weights_.values().size() != shape().size() * weights_.buckets().size() * weights_.stride())
    throw Error(ErrorCode::table, "the weights belong to another lattice");
}

// From the last node down: what a node does not keep goes to its parents.
double LatticeModel::mix(const std::uint32_t* columns, std::uint32_t* context, double* share) const {
  const LatticeShape& own = shape();
  for (std::size_t s = 0; s < own.stems().size(); ++s) context[s] = tables_->find_context(s, columns);
  double reach[max_lattice_nodes] = {};
  reach[own.size() - 1] = 1.0;
  double uniform = 0;
  for (std::size_t v = own.size(); v-- > 0;) {
    const std::size_t s = own.stem(v);
    std::int64_t total = 0;
    if (context[s] != StemTable::none)
      total = own.with_topic(v) ? tables_->stem(s).context_topics(context[s]).find(columns[own.columns() - 1])
                                : tables_->stem(s).total(context[s]);
    const double* weight = weights_.of(v, weights_.buckets().of(total));
    share[v] = total > 0 ? reach[v] * weight[0] / static_cast<double>(total) : 0.0;
    if (v == 0) uniform = reach[v] * weight[1];
    const std::vector<std::uint32_t>& parents = own.nodes()[v].parents;
    for (std::size_t u = 0; u < parents.size(); ++u) reach[parents[u]] += reach[v] * weight[1 + u];
  }
  return uniform / own.outcomes();
}

void LatticeModel::probs(const std::uint32_t* columns, const std::uint32_t* outcomes, std::size_t n,
                         double* out) const {
  std::uint32_t context[max_lattice_nodes];
  double share[max_lattice_nodes];
  const double uniform = mix(columns, context, share);
  const LatticeShape& own = shape();
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t entry[max_lattice_nodes];
    for (std::size_t s = 0; s < own.stems().size(); ++s)
      entry[s] = context[s] == StemTable::none ? StemTable::no_entry : tables_->stem(s).find(context[s], outcomes[i]);
    double sum = uniform;
    for (std::size_t v = 0; v < own.size(); ++v) {
      const std::size_t s = own.stem(v);
      if (share[v] == 0 || entry[s] == StemTable::no_entry) continue;
      const StemTable& stem = tables_->stem(s);
      const std::int64_t count =
          own.with_topic(v) ? stem.entry_topics(entry[s]).find(columns[own.columns() - 1]) : stem.count(entry[s]);
      sum += share[v] * static_cast<double>(count);
    }
    out[i] = sum;
  }
}

double LatticeModel::prob(const std::uint32_t* columns, std::uint32_t outcome) const {
  double found = 0;
  probs(columns, &outcome, 1, &found);
  return found;
}

void LatticeModel::distribution(const std::uint32_t* columns, double* out) const {
  std::uint32_t context[max_lattice_nodes];
  double share[max_lattice_nodes];
  const double uniform = mix(columns, context, share);
  const LatticeShape& own = shape();
  std::fill_n(out, own.outcomes(), uniform);
  for (std::size_t v = 0; v < own.size(); ++v) {
    const std::size_t s = own.stem(v);
    if (share[v] == 0) continue;
    const StemTable& stem = tables_->stem(s);
    for (std::uint64_t entry = stem.begin(context[s]); entry < stem.end(context[s]); ++entry) {
      const std::int64_t count =
          own.with_topic(v) ? stem.entry_topics(entry).find(columns[own.columns() - 1]) : stem.count(entry);
      out[stem.stored().outcomes[entry]] += share[v] * static_cast<double>(count);
    }
  }
}

void LatticeModel::find(const std::uint32_t* columns, std::uint32_t outcome, LatticePlaces& places) const {
  for (std::size_t s = 0; s < shape().stems().size(); ++s) {
    places.context[s] = tables_->find_context(s, columns);
    places.entry[s] =
        places.context[s] == StemTable::none ? StemTable::no_entry : tables_->stem(s).find(places.context[s], outcome);
  }
}

void LatticeModel::topic_probs(const std::uint32_t* columns, std::uint32_t outcome, const std::uint32_t* topics,
                               std::size_t n, double* out) const {
  LatticePlaces places;
  find(columns, outcome, places);
  topic_probs(places, topics, n, out);
}

void LatticeModel::topic_probs(const LatticePlaces& places, const std::uint32_t* topics, std::size_t n,
                               double* out) const {
  const LatticeShape& own = shape();
  double plain[max_lattice_nodes];
  for (std::size_t v = 0; v < own.size(); ++v) {
    if (own.with_topic(v)) continue;
    const std::size_t s = own.stem(v);
    const std::int64_t total = places.context[s] == StemTable::none ? 0 : tables_->stem(s).total(places.context[s]);
    const double* weight = weights_.of(v, weights_.buckets().of(total));
    double prob = 0;
    if (total > 0 && places.entry[s] != StemTable::no_entry)
      prob = weight[0] * ratio(tables_->stem(s).count(places.entry[s]), total);
    if (v == 0) prob += weight[1] / own.outcomes();
    const std::vector<std::uint32_t>& parents = own.nodes()[v].parents;
    for (std::size_t u = 0; u < parents.size(); ++u) prob += weight[1 + u] * plain[parents[u]];
    plain[v] = prob;
  }
  for (std::size_t first = 0; first < n; first += block_topics)
    topic_block(places, plain, topics + first, std::min(block_topics, n - first), out + first);
}

void LatticeModel::topic_block(const LatticePlaces& places, const double* plain, const std::uint32_t* topics,
                               std::size_t n, double* out) const {
  const LatticeShape& own = shape();
  double probs[max_lattice_nodes][block_topics];
  std::int64_t totals[block_topics], counts[block_topics];
  for (std::size_t v = 0; v < own.size(); ++v) {
    if (!own.with_topic(v)) continue;
    const std::size_t s = own.stem(v);
    const StemTable& stem = tables_->stem(s);
    std::fill_n(totals, n, 0);
    std::fill_n(counts, n, 0);
    if (places.context[s] != StemTable::none) pick(stem.context_topics(places.context[s]), topics, n, totals);
    if (places.entry[s] != StemTable::no_entry) pick(stem.entry_topics(places.entry[s]), topics, n, counts);
    const std::vector<std::uint32_t>& parents = own.nodes()[v].parents;
    for (std::size_t i = 0; i < n; ++i) {
      const double* weight = weights_.of(v, weights_.buckets().of(totals[i]));
      double prob = totals[i] > 0 ? weight[0] * ratio(counts[i], totals[i]) : 0.0;
      for (std::size_t u = 0; u < parents.size(); ++u)
        prob += weight[1 + u] * (own.with_topic(parents[u]) ? probs[parents[u]][i] : plain[parents[u]]);
      probs[v][i] = prob;
    }
  }
  const std::size_t top = own.size() - 1;
  for (std::size_t i = 0; i < n; ++i) out[i] = own.with_topic(top) ? probs[top][i] : plain[top];
}

}  // namespace treelm
