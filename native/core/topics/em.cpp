#include "topics/em.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/starts.h"

namespace treelm {

namespace {

constexpr std::size_t piece_documents = 256;

std::uint64_t find_top(const LatticeTables& tables, const std::uint32_t* columns, std::uint32_t outcome) {
  const std::vector<std::uint32_t>& order = tables.shape().stems()[tables.shape().top_stem()];
  std::uint32_t key[max_lattice_columns];
  for (std::size_t i = 0; i < order.size(); ++i) key[i] = columns[order[i]];
  const StemTable& top = tables.stem(tables.shape().top_stem());
  const std::uint32_t context = top.find(key);
  return context == StemTable::none ? StemTable::no_entry : top.find(context, outcome);
}

// Runs body(document) for all, and tells how many events are done.
template <class Body>
void each_document(const TopicText& text, ThreadPool& pool, const ProgressCallback& progress, const Body& body) {
  for (std::size_t first = 0; first < text.size(); first += piece_documents) {
    const std::size_t here = std::min(piece_documents, text.size() - first);
    pool.map(here, [&](std::size_t i, std::size_t worker) { body(first + i, worker); });
    progress(text.first_event(first + here), text.events());
  }
}

}  // namespace

template <class Body>
void TopicText::each(std::size_t document, const Body& body) const {
  std::uint32_t columns[max_lattice_columns];
  for (std::size_t s = documents[document]; s < documents[document + 1]; ++s) {
    std::fill_n(columns, order - 1, start);
    for (std::size_t i = starts[s]; i <= starts[s + 1]; ++i) {
      const std::uint32_t outcome = i < starts[s + 1] ? ids[i] : end;
      body(columns, outcome);
      for (std::size_t c = order - 1; c-- > 1;) columns[c] = columns[c - 1];
      if (order > 1) columns[0] = outcome;
    }
  }
}

void TopicText::check() const {
  if (!starts_fit(starts, ids.size()) || !starts_fit(documents, sentences()))
    throw Error(ErrorCode::argument, "sentences and documents must follow each other and cover the whole text");
}

void TopicText::check(const LatticeShape& shape) const {
  check();
  if (order < 1 || shape.columns() != order - 1 + (shape.topics() ? 1 : 0))
    throw Error(ErrorCode::argument, "the lattice looks at a different number of words");
  if (end >= shape.outcomes() || std::any_of(ids.begin(), ids.end(), [&](auto id) { return id >= shape.outcomes(); }))
    throw Error(ErrorCode::argument, "a word id of the text is out of range");
}

void KeptTopics::check(std::size_t documents, std::size_t all) const {
  bool fits = width >= 1 && topics.size() == documents * width && shares.size() == topics.size();
  for (std::size_t i = 0; fits && i < topics.size(); ++i)
    fits = topics[i] < all && (i % width == 0 || topics[i - 1] < topics[i]) && shares[i] >= 0 && shares[i] <= 1.000001;
  if (!fits)
    throw Error(ErrorCode::argument, "the topics of a document must be in range and ascend, and each needs a share");
}

void add_topic_events(const TopicText& text, const KeptTopics& kept, std::span<const double> word_topics,
                      std::size_t topics, LatticeEvents& events, const ProgressCallback& progress) {
  text.check(events.shape());
  kept.check(text.size(), topics);
  if (topics == 0 || word_topics.size() % topics != 0 || text.end > word_topics.size() / topics)
    throw Error(ErrorCode::argument, "there must be one number for each word and topic");
  const std::size_t width = text.order, words = word_topics.size() / topics;
  std::vector<std::uint32_t> columns, outcomes;
  std::vector<std::int64_t> counts;
  std::vector<double> shares(kept.width);
  const auto flush = [&] {
    events.add(columns.data(), outcomes.data(), counts.data(), counts.size());
    columns.clear();
    outcomes.clear();
    counts.clear();
  };
  for (std::size_t d = 0; d < text.size(); ++d) {
    const std::uint32_t* own = kept.topics.data() + d * kept.width;
    const double* mixture = kept.shares.data() + d * kept.width;
    text.each(d, [&](const std::uint32_t* context, std::uint32_t outcome) {
      double sum = 0;
      for (std::size_t i = 0; i < kept.width; ++i) {
        shares[i] = mixture[i];
        if (outcome != text.end && outcome < words) shares[i] *= word_topics[std::size_t{outcome} * topics + own[i]];
        sum += shares[i];
      }
      for (std::size_t i = 0; i < kept.width; ++i) {
        columns.insert(columns.end(), context, context + width - 1);
        columns.push_back(own[i]);
        outcomes.push_back(outcome);
        // None of the kept topics knows the word: they share it as they share the document.
        counts.push_back(fixed_count(sum > 0 ? shares[i] / sum : mixture[i]));
      }
    });
    if (counts.size() >= (std::size_t{1} << 20)) flush();
    if (d % piece_documents == 0) progress(text.first_event(d), text.events());
  }
  flush();
  progress(text.events(), text.events());
}

std::vector<double> expect_topics(const LatticeModel& model, const LatticeTables& tables, const TopicText& text,
                                  const KeptTopics& kept, std::span<std::int64_t> counts, ThreadPool& pool,
                                  const ProgressCallback& progress) {
  const LatticeShape& shape = tables.shape();
  if (model.shape().columns() != shape.columns() || model.shape().stems() != shape.stems())
    throw Error(ErrorCode::argument, "the model and the tables belong to different lattices");
  if (!shape.topics()) throw Error(ErrorCode::argument, "the lattice has no topics");
  text.check(shape);
  kept.check(text.size(), 65536);
  const StemTable& top = tables.stem(shape.top_stem());
  const bool same = &tables == &model.tables();
  if (counts.size() != top.topic_entries())
    throw Error(ErrorCode::argument, "there must be one count for every type of the last node");
  std::vector<double> likelihoods(text.size(), 0.0);
  each_document(text, pool, progress, [&](std::size_t d, std::size_t) {
    const std::uint32_t* own = kept.topics.data() + d * kept.width;
    double* mixture = kept.shares.data() + d * kept.width;
    std::vector<double> probs(kept.width);
    std::vector<std::int64_t> sums(kept.width, 0);
    LatticePlaces places;
    double likelihood = 0;
    text.each(d, [&](const std::uint32_t* columns, std::uint32_t outcome) {
      model.find(columns, outcome, places);
      const std::uint64_t entry = same ? places.entry[shape.top_stem()] : find_top(tables, columns, outcome);
      if (entry == StemTable::no_entry) throw Error(ErrorCode::argument, "the text has an event that was not counted");
      model.topic_probs(places, own, kept.width, probs.data());
      double total = 0;
      for (std::size_t i = 0; i < kept.width; ++i) total += probs[i] *= mixture[i];
      if (!(total > 0)) throw Error(ErrorCode::not_a_number, "an event has no probability under any topic");
      likelihood += std::log(total);
      const TopicCounts stored = top.entry_topics(entry);
      const std::uint16_t* place = stored.topics;
      const std::uint16_t* last = stored.topics + stored.size;
      for (std::size_t i = 0; i < kept.width; ++i) {
        place = std::lower_bound(place, last, own[i]);
        if (place == last || *place != own[i])
          throw Error(ErrorCode::argument, "the text has an event that was not counted");
        const std::int64_t share = fixed_count(probs[i] / total);
        sums[i] += share;
        std::int64_t& count = counts[top.topic_place(entry) + static_cast<std::size_t>(place - stored.topics)];
        if (pool.size() > 1)
          std::atomic_ref<std::int64_t>(count).fetch_add(share, std::memory_order_relaxed);
        else
          count += share;
      }
    });
    likelihoods[d] = likelihood;
    const auto all = static_cast<double>(std::accumulate(sums.begin(), sums.end(), std::int64_t{0}));
    if (all > 0)
      for (std::size_t i = 0; i < kept.width; ++i) mixture[i] = static_cast<double>(sums[i]) / all;
  });
  return likelihoods;
}

const std::vector<std::uint32_t>& TopicMixture::largest(std::size_t keep) {
  order_.resize(shares_.size());
  std::iota(order_.begin(), order_.end(), std::uint32_t{0});
  if (keep < order_.size()) {
    std::nth_element(
        order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(keep), order_.end(),
        [&](std::uint32_t a, std::uint32_t b) { return shares_[a] != shares_[b] ? shares_[a] > shares_[b] : a < b; });
    order_.resize(keep);
    std::sort(order_.begin(), order_.end());
  }
  return order_;
}

double TopicMixture::predict(std::span<const double> probs, std::size_t keep) {
  double sum = 0, mass = 0;
  for (const std::uint32_t topic : largest(keep)) {
    sum += shares_[topic] * probs[topic];
    mass += shares_[topic];
  }
  return sum / mass;
}

void TopicMixture::update(std::span<const double> probs, double rate) {
  if (rate == 0) return;
  double total = 0;
  for (std::size_t g = 0; g < shares_.size(); ++g) total += shares_[g] * probs[g];
  if (!(total > 0)) return;
  for (std::size_t g = 0; g < shares_.size(); ++g)
    shares_[g] = (1 - rate) * shares_[g] + rate * (shares_[g] * probs[g] / total);
}

std::vector<double> topics_so_far(const TopicText& text, std::span<const double> word_topics,
                                  const OnlineTopics& online, ThreadPool& pool, const ProgressCallback& progress) {
  const std::size_t topics = online.prior.size();
  text.check();
  if (topics == 0 || word_topics.size() % topics != 0)
    throw Error(ErrorCode::argument, "there must be one number for each word and topic");
  const std::size_t words = word_topics.size() / topics;
  if (std::any_of(text.ids.begin(), text.ids.end(), [&](auto id) { return id >= words; }))
    throw Error(ErrorCode::argument, "a word id of the text is out of range");
  std::vector<double> found(text.sentences() * topics);
  each_document(text, pool, progress, [&](std::size_t d, std::size_t) {
    TopicMixture mixture(online.prior);
    std::vector<double> probs(topics);
    for (std::size_t s = text.documents[d]; s < text.documents[d + 1]; ++s) {
      std::copy(mixture.shares().begin(), mixture.shares().end(), found.data() + s * topics);
      for (std::size_t i = text.starts[s]; i < text.starts[s + 1]; ++i) {
        const double* row = word_topics.data() + std::size_t{text.ids[i]} * topics;
        // A word that no topic has tells nothing.
        for (std::size_t g = 0; g < topics; ++g) probs[g] = row[g] + 1e-12;
        mixture.update(probs, online.rate);
      }
    }
  });
  return found;
}

std::vector<double> score_topics(const LatticeModel& model, const TopicText& text, const OnlineTopics& online,
                                 TopicChecks* checks, ThreadPool& pool, const ProgressCallback& progress) {
  const LatticeShape& shape = model.shape();
  text.check(shape);
  const std::size_t topics = shape.topics() ? online.prior.size() : 0;
  if (shape.topics() && (topics == 0 || topics > 65536 || online.keep < 1))
    throw Error(ErrorCode::argument, "there must be between 1 and 65,536 topics");
  const std::size_t width = shape.topics() ? std::min(online.keep, topics) : 1;
  std::vector<double> log_probs(text.events());
  if (checks != nullptr) {
    checks->columns.assign(text.events() * width * shape.columns(), 0);
    checks->outcomes.assign(text.events() * width, 0);
    checks->weights.assign(text.events() * width, 0.0);
  }
  std::vector<std::uint32_t> every(topics);
  std::iota(every.begin(), every.end(), std::uint32_t{0});
  each_document(text, pool, progress, [&](std::size_t d, std::size_t) {
    TopicMixture mixture(online.prior.first(topics));
    std::vector<double> probs(topics);
    std::size_t event = text.first_event(d);
    text.each(d, [&](const std::uint32_t* columns, std::uint32_t outcome) {
      double prob = 0;
      if (shape.topics()) {
        model.topic_probs(columns, outcome, every.data(), topics, probs.data());
        prob = mixture.predict(probs, width);
      } else {
        prob = model.prob(columns, outcome);
      }
      log_probs[event] = std::log(prob);
      if (checks != nullptr) {
        const std::vector<std::uint32_t> chosen =
            shape.topics() ? mixture.largest(width) : std::vector<std::uint32_t>{0};
        double total = 0;
        if (shape.topics())
          for (const std::uint32_t topic : chosen) total += mixture.shares()[topic] * probs[topic];
        for (std::size_t i = 0; i < width; ++i) {
          const std::size_t row = event * width + i;
          std::uint32_t* to = checks->columns.data() + row * shape.columns();
          std::copy_n(columns, text.order - 1, to);
          if (shape.topics()) to[text.order - 1] = chosen[i];
          checks->outcomes[row] = outcome;
          checks->weights[row] = shape.topics() ? mixture.shares()[chosen[i]] * probs[chosen[i]] / total : 1.0;
        }
      }
      mixture.update(probs, online.rate);
      ++event;
    });
  });
  return log_probs;
}

}  // namespace treelm
