// The n-gram/PLSA model over documents: expected counts of words and topics, and the topics of a
// document that is read word by word (Tan et al. 2011).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/progress.h"
#include "base/thread_pool.h"
#include "lattice/events.h"
#include "lattice/model.h"

namespace treelm {

// A text in documents: sentence s is ids[starts[s]..starts[s + 1]), document d has the sentences
// documents[d]..documents[d + 1]. Events look at order - 1 words, the latest first, and a topic.
struct TopicText {
  std::span<const std::uint32_t> ids;
  std::span<const std::uint64_t> starts, documents;
  std::size_t order = 1;
  std::uint32_t start = 0, end = 0;

  std::size_t sentences() const { return starts.size() - 1; }
  std::size_t size() const { return documents.size() - 1; }  // in documents
  std::size_t events() const { return ids.size() + sentences(); }
  // Places of a document's events among all.
  std::size_t first_event(std::size_t document) const { return starts[documents[document]] + documents[document]; }
  // Throws Error(argument) for a malformed text, or one with words that the lattice does not predict.
  void check(const LatticeShape& shape) const;
  // The same without a lattice.
  void check() const;
  // Calls body(columns, outcome) for every word and sentence end of a document.
  template <class Body>
  void each(std::size_t document, const Body& body) const;
};

// The topics of every document of a training text: `width` in ascending order, with their shares.
struct KeptTopics {
  std::size_t width;
  std::span<const std::uint32_t> topics;
  std::span<double> shares;

  void check(std::size_t documents, std::size_t all) const;
};

// Adds every word with each topic its document keeps, divided as PLSA divides it: by p(g|d) p(w|g),
// and by p(g|d) at the end of a sentence. `word_topics` are p(w|g) by word and topic.
void add_topic_events(const TopicText& text, const KeptTopics& kept, std::span<const double> word_topics,
                      std::size_t topics, LatticeEvents& events, const ProgressCallback& progress);

// One E-step. Adds the expected count of every event to `counts`, in the order of the top stem of
// `tables`, which hold all events of the text; those of the model may have lost some. The shares of
// the topics are replaced. Returns the log likelihood of every document before.
std::vector<double> expect_topics(const LatticeModel& model, const LatticeTables& tables, const TopicText& text,
                                  const KeptTopics& kept, std::span<std::int64_t> counts, ThreadPool& pool,
                                  const ProgressCallback& progress);

// How a document that is read word by word finds its topics.
struct OnlineTopics {
  std::span<const double> prior;
  double rate = 0.01;    // eta; 0 leaves the prior as it is
  std::size_t keep = 5;  // topics in a prediction
};

// The topics of a document after so many words.
class TopicMixture {
 public:
  explicit TopicMixture(std::span<const double> shares) : shares_(shares.begin(), shares.end()) {}

  const std::vector<double>& shares() const { return shares_; }
  // The `keep` largest shares, ties to the lower topic, in ascending order of the topic.
  const std::vector<std::uint32_t>& largest(std::size_t keep);
  // The probability of a word that each topic gives `probs`: by the largest topics alone.
  double predict(std::span<const double> probs, std::size_t keep);
  // The update after that word, over all topics.
  void update(std::span<const double> probs, double rate);

 private:
  std::vector<double> shares_;
  std::vector<std::uint32_t> order_;
};

// The shares of all topics before every sentence, where a document is read word by word and p(w|g), by word
// and topic, is all that says which topic a word has. Sentence ends say nothing.
std::vector<double> topics_so_far(const TopicText& text, std::span<const double> word_topics,
                                  const OnlineTopics& online, ThreadPool& pool, const ProgressCallback& progress);

// Events of check data with the posterior of each topic, by event and topic kept.
struct TopicChecks {
  std::vector<std::uint32_t> columns, outcomes;
  std::vector<double> weights;
};

// The natural log probability of every word and sentence end, each document on its own; with
// `checks` also what weights are found on.
std::vector<double> score_topics(const LatticeModel& model, const TopicText& text, const OnlineTopics& online,
                                 TopicChecks* checks, ThreadPool& pool, const ProgressCallback& progress);

}  // namespace treelm
