#include "topics/em.h"

#include <cmath>
#include <numeric>

#include "lattice/model.h"
#include "tests/harness.h"
#include "topics/plsa.h"

using namespace treelm;

namespace {

constexpr std::int64_t one = std::int64_t{1} << count_bits;

// The M-step: counts of words by topic divided by the totals of the topics.
void normalise(const std::vector<std::int64_t>& counts, std::size_t topics, std::vector<double>& word_topics) {
  std::vector<std::int64_t> totals(topics, 0);
  for (std::size_t i = 0; i < counts.size(); ++i) totals[i % topics] += counts[i];
  for (std::size_t i = 0; i < counts.size(); ++i)
    word_topics[i] = static_cast<double>(counts[i]) / static_cast<double>(totals[i % topics]);
}

}  // namespace

TEST("PLSA of parts of a text adds up to that of the whole") {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint64_t> starts{0};
  for (std::uint64_t i = 0; i < 6000; ++i) {
    ids.push_back(static_cast<std::uint32_t>(random_bits(2, i, 0) % 9));
    if (i % 8 == 7) starts.push_back(ids.size());
  }
  const DocumentWords whole = count_documents(ids, starts, 9);
  CHECK_EQ(whole.blocks(), 3u);
  const std::vector<double> words = draw_word_topics(9, 3, 5);
  std::vector<double> mixtures(whole.documents * 3, 1.0 / 3), together;
  ThreadPool pool(1);
  const PlsaExpectation all = plsa_expect(whole, 3, words, mixtures, pool, no_progress);
  std::vector<std::int64_t> counts(all.counts.size(), 0);
  std::vector<double> likelihoods;
  for (const auto& [first, last] : {std::pair{0u, 1u}, std::pair{1u, 1u}, std::pair{1u, 3u}}) {
    const DocumentWords part = whole.part(first, last);
    part.check();
    std::vector<double> own(part.documents * 3, 1.0 / 3);
    const PlsaExpectation found = plsa_expect(part, 3, words, own, pool, no_progress);
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += found.counts[i];
    likelihoods.insert(likelihoods.end(), found.log_likelihoods.begin(), found.log_likelihoods.end());
    together.insert(together.end(), own.begin(), own.end());
  }
  CHECK(counts == all.counts);
  CHECK(likelihoods == all.log_likelihoods);
  CHECK(together == mixtures);
  CHECK_THROWS_CODE(whole.part(2, 4), ErrorCode::argument);
  DocumentWords damaged = whole;
  damaged.places.back() = 255;
  CHECK_THROWS_CODE(damaged.check(), ErrorCode::argument);
}

TEST("PLSA and expected topics do not depend on threads") {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint64_t> starts{0}, documents{0};
  for (std::uint64_t sentence = 0; sentence < 600; ++sentence) {
    for (std::uint64_t i = 0; i < 5; ++i)
      ids.push_back(static_cast<std::uint32_t>(random_bits(1, sentence / 2, i) % 9));
    starts.push_back(ids.size());
    if (sentence % 2 == 1) documents.push_back(sentence + 1);
  }
  std::vector<std::uint64_t> document_words;
  for (const std::uint64_t sentence : documents) document_words.push_back(starts[sentence]);
  const DocumentWords counted = count_documents(ids, document_words, 9);
  std::vector<std::vector<double>> words, mixtures;
  std::vector<double> likelihoods;
  for (const std::size_t threads : {1u, 2u}) {
    ThreadPool pool(threads);
    words.push_back(draw_word_topics(9, 3, 5));
    mixtures.emplace_back(counted.documents * 3, 1.0 / 3);
    double last = -1e300;
    for (int step = 0; step < 5; ++step) {
      const PlsaExpectation found = plsa_expect(counted, 3, words.back(), mixtures.back(), pool, no_progress);
      normalise(found.counts, 3, words.back());
      const double now = std::accumulate(found.log_likelihoods.begin(), found.log_likelihoods.end(), 0.0);
      CHECK(now >= last - 1e-6);
      last = now;
    }
    likelihoods.push_back(last);
  }
  CHECK(words[0] == words[1]);
  CHECK(mixtures[0] == mixtures[1]);
  CHECK_EQ(likelihoods[0], likelihoods[1]);

  const TopicText text{ids, starts, documents, 2, 10, 9};
  const LatticeShape shape(2, 10, true, {{{}, {}}, {{1}, {0}}, {{0}, {0}}, {{0, 1}, {1, 2}}});
  std::vector<std::uint32_t> topics;
  for (std::size_t d = 0; d < text.size(); ++d) topics.insert(topics.end(), {0, 1, 2});
  const KeptTopics kept{3, topics, mixtures[0]};
  LatticeEvents events(shape, {11, 3}, 1);
  add_topic_events(text, kept, words[0], 3, events, no_progress);
  const auto tables = std::make_shared<LatticeTables>(events);
  const LatticeModel model(tables, LatticeWeights(shape, CountBuckets({one / 2, one, 2 * one, 4 * one, 8 * one})));
  std::vector<std::vector<std::int64_t>> found;
  for (const std::size_t threads : {1u, 2u}) {
    ThreadPool pool(threads);
    std::vector<double> shares = mixtures[0];
    found.emplace_back(tables->types(3), 0);
    expect_topics(model, *tables, text, {3, topics, shares}, found.back(), pool, no_progress);
  }
  CHECK(found[0] == found[1]);
  std::int64_t total = 0;
  for (const std::int64_t count : found[0]) total += count;
  CHECK(std::abs(static_cast<double>(total) * count_unit - static_cast<double>(text.events())) < 1e-4);
}
