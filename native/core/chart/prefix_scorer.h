// Probabilities of prefixes under a probabilistic context-free grammar, exact (Jelinek and Lafferty 1991;
// Stolcke 1995): chains of left corners are summed once, so no derivation is cut off. The chart grows by
// one column per word, and columns are shared by all charts that begin with the same words.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "chart/cky.h"
#include "chart/grammar.h"
#include "chart/left_corners.h"
#include "chart/lexicon.h"

namespace treelm {

// What is known after some words; never changed once it is made.
class PrefixChart {
 public:
  std::size_t words() const { return columns_.size() - 1; }
  // Natural logarithm of the probability that a sentence begins with the words, and of the words as a
  // whole sentence.
  double log_prefix() const { return columns_.back()->log_prefix; }
  double log_whole() const { return columns_.back()->log_whole; }
  // Memory of the last column, in bytes.
  std::size_t bytes() const { return columns_.back()->bytes(); }

 private:
  friend class PrefixScorer;
  struct Item {
    std::uint32_t symbol;
    double inside;
  };
  // All spans that end after the same word, and what may come next.
  struct Column {
    std::vector<Item> items;
    std::vector<std::uint32_t> first;  // per start of a span, and the number of items
    std::vector<int> exponent;         // per start: items are to be multiplied with 2 to this power
    // Weight with which a pair of children, or a tag, begins here, in all derivations of the words so
    // far that are not complete; times 2 to the power of `forward_exponent`.
    std::vector<double> pairs, tags;
    int forward_exponent = 0;
    double log_prefix = 0, log_whole = 0;

    std::span<const Item> cell(std::size_t start) const {
      return std::span(items).subspan(first[start], first[start + 1] - first[start]);
    }
    std::size_t bytes() const {
      return sizeof(Column) + items.size() * sizeof(Item) + first.size() * 8 + 8 * (pairs.size() + tags.size());
    }
  };
  std::vector<std::shared_ptr<const Column>> columns_;
  std::shared_ptr<const ChartGrammar<double>> grammar_;
};

class PrefixScorer {
 public:
  // For grammars without subcategories. Throws Error(argument) if left corners have no sum, that is if
  // the grammar recurses to the left for ever.
  PrefixScorer(std::shared_ptr<const ChartGrammar<double>> grammar, std::shared_ptr<const ChartLexicon> lexicon);

  // The chart of no words, and a chart with one word more. Throws Error(argument) for a chart of another
  // grammar.
  const PrefixChart& start() const { return start_; }
  PrefixChart extend(const PrefixChart& chart, std::uint32_t word) const;
  // Natural logarithms of the probabilities that a sentence begins with the words of a chart and then
  // with each of these.
  std::vector<double> next(const PrefixChart& chart, std::span<const std::uint32_t> words) const;

  // Natural logarithms of the probabilities that a sentence begins with the first 1, 2, .. words; the last
  // entry of the result is that of the words as a whole sentence. Not numbers beyond the limits.
  std::vector<double> score(std::span<const std::uint32_t> words, const ChartLimits& limits = {}) const;
  // The same for many sentences, one result after the other.
  std::vector<double> score_all(std::span<const std::uint32_t> words, std::span<const std::uint64_t> starts,
                                const ChartLimits& limits, std::size_t threads) const;

 private:
  using Column = PrefixChart::Column;
  using Columns = std::span<const std::shared_ptr<const Column>>;
  struct Scratch;
  // A column after the others; gives the multiplications it took.
  std::uint64_t add_column(Columns before, const TagScores& word, Scratch& scratch, Column& out) const;
  void combine(Columns before, std::size_t first, const Column& out, Scratch& scratch) const;
  void finish_cell(std::size_t first, Scratch& scratch, Column& out) const;
  // Fills what may come next from the weights with which symbols begin here, in scratch.
  void look_ahead(Scratch& scratch, int exponent, Column& out) const;
  double next_sum(const Column& column, const TagScores& word) const;
  void look_up(std::uint32_t word, TagScores& out) const;
  void check_own(const PrefixChart& chart) const;

  std::shared_ptr<const ChartGrammar<double>> grammar_;
  std::shared_ptr<const ChartLexicon> lexicon_;
  std::unique_ptr<const LeftCorners> corners_;
  PrefixChart start_;
};

}  // namespace treelm
