#include "topics/plsa.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/random.h"
#include "base/starts.h"
#include "lattice/shape.h"

namespace treelm {

namespace {

// A larger count of one word in one document could not be rounded exactly.
constexpr std::uint64_t largest_count = std::uint64_t{1} << 20;

// The E-step; with `changed` the topics of every document are replaced there.
PlsaExpectation expect_plsa(const DocumentWords& text, std::size_t topics, std::span<const double> word_topics,
                            std::span<const double> document_topics, double* changed, ThreadPool& pool,
                            const ProgressCallback& progress) {
  constexpr std::size_t block_size = DocumentWords::block_size;
  const std::size_t documents = text.documents, blocks = text.blocks();
  if (topics == 0 || word_topics.size() % topics != 0 || document_topics.size() != documents * topics)
    throw Error(ErrorCode::argument, "there must be one number for each word, document and topic");
  const std::size_t words = word_topics.size() / topics;
  if (!text.words.empty() && *std::max_element(text.words.begin(), text.words.end()) >= words)
    throw Error(ErrorCode::argument, "a word id of the text is out of range");
  std::vector<std::vector<std::int64_t>> counts(std::max<std::size_t>(1, pool.size()));
  std::vector<double> likelihoods(blocks, 0.0);
  const auto one_block = [&](std::size_t block, std::size_t worker) {
    std::vector<std::int64_t>& own = counts[worker];
    if (own.empty()) own.assign(words * topics, 0);
    const std::size_t first = block * block_size, here = std::min(block_size, documents - first);
    std::vector<std::int64_t> shares(here * topics, 0);
    for (std::uint64_t i = text.begin[block]; i < text.begin[block + 1]; ++i) {
      const std::size_t word = std::size_t{text.words[i]} * topics, document = text.places[i] * topics;
      const double* const row = word_topics.data() + word;
      const double* const mixture = document_topics.data() + first * topics + document;
      const double prob = dot_product(row, mixture, topics), times = text.counts[i];
      if (prob > 0) {
        likelihoods[block] += times * std::log(prob);
        add_rounded_products(row, mixture, times / prob * (1 << count_bits), topics, own.data() + word,
                             shares.data() + document);
      } else if (changed != nullptr) {
        throw Error(ErrorCode::not_a_number, "a word of a document has no topic");
      } else {
        // None of the topics that the document keeps knows the word.
        for (std::size_t g = 0; g < topics; ++g) own[word + g] += fixed_count(times * mixture[g]);
      }
    }
    for (std::size_t d = 0; changed != nullptr && d < here; ++d) {
      const std::int64_t* sums = shares.data() + d * topics;
      const auto total = static_cast<double>(std::accumulate(sums, sums + topics, std::int64_t{0}));
      for (std::size_t g = 0; total > 0 && g < topics; ++g)
        changed[(first + d) * topics + g] = static_cast<double>(sums[g]) / total;
    }
  };
  // In pieces, so that progress is reported and the work can be stopped.
  const std::size_t piece = std::max<std::size_t>(8, blocks / 64);
  for (std::size_t first = 0; first < blocks; first += piece) {
    progress(std::min(documents, first * block_size), documents);
    pool.map(std::min(piece, blocks - first), [&](std::size_t i, std::size_t worker) { one_block(first + i, worker); });
  }
  if (counts[0].empty()) counts[0].assign(words * topics, 0);
  for (std::size_t worker = 1; worker < counts.size(); ++worker)
    for (std::size_t i = 0; i < counts[worker].size(); ++i) counts[0][i] += counts[worker][i];
  progress(documents, documents);
  return {std::move(counts[0]), std::move(likelihoods)};
}

}  // namespace

DocumentWords DocumentWords::part(std::size_t first, std::size_t last) const {
  if (first > last || last > blocks()) throw Error(ErrorCode::argument, "the text has no such blocks");
  const auto cut = [&](const auto& values) {
    return std::vector(values.begin() + static_cast<std::ptrdiff_t>(begin[first]),
                       values.begin() + static_cast<std::ptrdiff_t>(begin[last]));
  };
  DocumentWords made;
  made.documents = std::min(documents, last * block_size) - std::min(documents, first * block_size);
  for (std::size_t block = first; block <= last; ++block) made.begin.push_back(begin[block] - begin[first]);
  made.words = cut(words);
  made.counts = cut(counts);
  made.places = cut(places);
  return made;
}

void DocumentWords::check() const {
  bool fits = !begin.empty() && blocks() == (documents + block_size - 1) / block_size &&
              starts_fit(begin, words.size()) && counts.size() == words.size() && places.size() == words.size();
  for (std::size_t block = 0; fits && block < blocks(); ++block) {
    const std::size_t here = std::min(block_size, documents - block * block_size);
    for (std::uint64_t i = begin[block]; fits && i < begin[block + 1]; ++i)
      fits = places[i] < here && counts[i] >= 1 && counts[i] <= largest_count;
  }
  if (!fits) throw Error(ErrorCode::argument, "the words of documents do not fit together");
}

DocumentWords count_documents(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                              std::uint32_t words) {
  check_starts(starts, ids.size(), "documents must follow each other and cover the whole text");
  DocumentWords text;
  text.documents = starts.size() - 1;
  text.begin.push_back(0);
  struct Pair {
    std::uint32_t word, place;
    auto operator<=>(const Pair&) const = default;
  };
  std::vector<Pair> pairs;
  for (std::size_t first = 0; first < text.documents; first += DocumentWords::block_size) {
    pairs.clear();
    for (std::size_t d = first; d < std::min(text.documents, first + DocumentWords::block_size); ++d)
      for (std::uint64_t i = starts[d]; i < starts[d + 1]; ++i) {
        if (ids[i] >= words) throw Error(ErrorCode::argument, "a word id of the text is out of range");
        pairs.push_back({ids[i], static_cast<std::uint32_t>(d - first)});
      }
    std::sort(pairs.begin(), pairs.end());
    for (std::size_t i = 0; i < pairs.size();) {
      std::size_t next = i;
      while (next < pairs.size() && pairs[next] == pairs[i]) ++next;
      if (next - i > largest_count)
        throw Error(ErrorCode::too_large,
                    "document " + std::to_string(first + pairs[i].place) + " contains one word more than 2^20 times");
      text.words.push_back(pairs[i].word);
      text.places.push_back(static_cast<std::uint16_t>(pairs[i].place));
      text.counts.push_back(static_cast<std::uint32_t>(next - i));
      i = next;
    }
    text.begin.push_back(text.words.size());
  }
  return text;
}

std::vector<double> draw_word_topics(std::size_t words, std::size_t topics, std::uint64_t seed) {
  std::vector<double> drawn(words * topics), sums(topics, 0.0);
  for (std::size_t w = 0; w < words; ++w)
    for (std::size_t g = 0; g < topics; ++g) {
      // Exponential numbers, divided by their sum, are uniform on the simplex.
      const double value = -std::log1p(-random_uniform(seed, w, g));
      drawn[w * topics + g] = value;
      sums[g] += value;
    }
  for (std::size_t w = 0; w < words; ++w)
    for (std::size_t g = 0; g < topics; ++g)
      if (sums[g] > 0) drawn[w * topics + g] /= sums[g];
  return drawn;
}

PlsaExpectation plsa_expect(const DocumentWords& text, std::size_t topics, std::span<const double> word_topics,
                            std::span<double> document_topics, ThreadPool& pool, const ProgressCallback& progress) {
  return expect_plsa(text, topics, word_topics, document_topics, document_topics.data(), pool, progress);
}

std::vector<std::int64_t> plsa_counts(const DocumentWords& text, std::size_t topics,
                                      std::span<const double> word_topics, std::span<const double> document_topics,
                                      ThreadPool& pool, const ProgressCallback& progress) {
  return expect_plsa(text, topics, word_topics, document_topics, nullptr, pool, progress).counts;
}

}  // namespace treelm
