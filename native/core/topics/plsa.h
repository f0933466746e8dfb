// Probabilistic latent semantic analysis: every word of a document comes from one of its topics
// (Hofmann 2001). One step of EM over counts of words in documents.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/progress.h"
#include "base/thread_pool.h"

namespace treelm {

// How often each document has each of its words: blocks of documents whose topics fit into the cache,
// and in each block the pairs of a word and a document in ascending order of the word, so that the
// topics of a word are fetched once for all of them.
struct DocumentWords {
  static constexpr std::size_t block_size = 256;

  std::size_t documents = 0;
  std::vector<std::uint64_t> begin;  // of every block, and the number of pairs at the end
  std::vector<std::uint32_t> words, counts;
  std::vector<std::uint16_t> places;  // of the document in its block

  std::size_t blocks() const { return begin.size() - 1; }
  // Blocks `first` to before `last` as a text of their own.
  DocumentWords part(std::size_t first, std::size_t last) const;
  // Throws Error(argument) for parts that do not fit together.
  void check() const;
};

// Counts words; document d is ids[starts[d]..starts[d + 1]), and all ids are below `words`.
DocumentWords count_documents(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                              std::uint32_t words);

// p(w|g) by word and topic, drawn from Dirichlet(1); the number of (word, topic) depends on the seed
// and on these two alone before it is normalised.
std::vector<double> draw_word_topics(std::size_t words, std::size_t topics, std::uint64_t seed);

// Expected counts by word and topic in multiples of 2^-30, and the log likelihood of every block. Sums
// of whole numbers do not depend on the number of threads, or on who counts which blocks.
struct PlsaExpectation {
  std::vector<std::int64_t> counts;
  std::vector<double> log_likelihoods;
};

// The E-step of EM; p(g|d) by document and topic is replaced.
PlsaExpectation plsa_expect(const DocumentWords& text, std::size_t topics, std::span<const double> word_topics,
                            std::span<double> document_topics, ThreadPool& pool, const ProgressCallback& progress);

// Expected counts of words (rows) and topics (columns) in multiples of 2^-30, for p(w|g) and p(g|d)
// that stay as they are.
std::vector<std::int64_t> plsa_counts(const DocumentWords& text, std::size_t topics,
                                      std::span<const double> word_topics, std::span<const double> document_topics,
                                      ThreadPool& pool, const ProgressCallback& progress);

// The inner loops. All arrays have `n` numbers.
double dot_product(const double* a, const double* b, std::size_t n);
// Adds a[i] * b[i] * scale, rounded half to even, to both sums; it must be below 2^51.
void add_rounded_products(const double* a, const double* b, double scale, std::size_t n, std::int64_t* first,
                          std::int64_t* second);

}  // namespace treelm
