#include "prefix_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "error.h"

namespace treelm {

namespace {

constexpr std::size_t most_symbols = 4096;  // the elimination needs a square of them
constexpr double smallest_pivot = 1e-10;

// The inverse of I - matrix for the phrases; what is zero is passed over.
std::vector<double> inverse_of_rest(std::vector<double> matrix, std::size_t n) {
  std::vector<double> inverse(n * n);
  for (double& value : matrix) value = -value;
  for (std::size_t i = 0; i < n; ++i) matrix[i * n + i] += 1, inverse[i * n + i] = 1;
  for (std::size_t pivot = 0; pivot < n; ++pivot) {
    const double value = matrix[pivot * n + pivot];
    if (!(value > smallest_pivot))
      throw Error(ErrorCode::argument,
                  "derivations of the grammar go on to the left for ever, so prefixes have no sum");
    for (std::size_t k = 0; k < n; ++k) matrix[pivot * n + k] /= value, inverse[pivot * n + k] /= value;
    for (std::size_t row = 0; row < n; ++row) {
      const double factor = matrix[row * n + pivot];
      if (row == pivot || factor == 0) continue;
      for (std::size_t k = pivot; k < n; ++k) matrix[row * n + k] -= factor * matrix[pivot * n + k];
      for (std::size_t k = 0; k < n; ++k) inverse[row * n + k] -= factor * inverse[pivot * n + k];
    }
  }
  return inverse;
}

}  // namespace

PrefixScorer::PrefixScorer(std::shared_ptr<const ChartGrammar<double>> grammar,
                           std::shared_ptr<const ChartLexicon> lexicon)
    : grammar_(std::move(grammar)), lexicon_(std::move(lexicon)) {
  if (!grammar_ || !lexicon_ || !grammar_->is_plain() || lexicon_->counts().size() != grammar_->symbols() ||
      lexicon_->phrasal() != grammar_->phrasal())
    throw Error(ErrorCode::argument, "prefixes need a grammar without subcategories, and its lexicon");
  const std::size_t n = grammar_->phrasal(), symbols = grammar_->symbols();
  if (n > most_symbols) throw Error(ErrorCode::argument, "the grammar has too many phrases for prefixes");
  // Weight of a symbol as the first child of a phrase, whatever stands to its right.
  std::vector<double> first(n * symbols);
  for (std::uint32_t child = 0; child < symbols; ++child)
    for (const ParentRule& rule : grammar_->unary_rules(child))
      first[rule.parent * symbols + child] += *grammar_->unary_block(rule);
  for (std::uint32_t pair = 0; pair < grammar_->pairs(); ++pair)
    for (const ParentRule& rule : grammar_->rules_of_pair(pair))
      first[rule.parent * symbols + grammar_->pair_left(pair)] += *grammar_->binary_block(rule);
  std::vector<double> inner(n * n);
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < n; ++b) inner[a * n + b] = first[a * symbols + b];
  const std::vector<double> inverse = inverse_of_rest(std::move(inner), n);
  corners_.resize(symbols);
  std::vector<double> row(symbols);
  for (std::uint32_t a = 0; a < symbols; ++a) {
    if (a >= n) {
      corners_[a].push_back({a, 1.0});
      continue;
    }
    std::fill(row.begin(), row.end(), 0.0);
    for (std::size_t b = 0; b < n; ++b) {
      const double weight = inverse[a * n + b];
      if (weight == 0) continue;
      row[b] += weight;
      for (std::size_t tag = n; tag < symbols; ++tag) row[tag] += weight * first[b * symbols + tag];
    }
    for (std::uint32_t c = 0; c < symbols; ++c)
      if (row[c] > 0) corners_[a].push_back({c, row[c]});
  }
}

// prefix(i, A) is the probability that A makes a string that begins with the words from i to the last
// one. The last word is the left corner of something; or a binary rule has its split before it:
//   prefix(i, A) = sum over C, rules C -> D E, splits k: corner(A, C) rule inside(i, k, D) prefix(k, E)
std::vector<double> PrefixScorer::score(std::span<const std::uint32_t> words) const {
  const std::size_t n = words.size(), symbols = grammar_->symbols();
  std::vector<TagScores> scores(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (words[i] >= lexicon_->words()) throw Error(ErrorCode::argument, "a word id is not known");
    lexicon_->look_up(words[i], scores[i]);
  }
  std::vector<double> result(n + 1, -std::numeric_limits<double>::infinity());
  if (n == 0) return result;
  PlainChart<double> chart;
  if (chart.inside(*grammar_, scores, {}) == ChartOutcome::parsed) result[n] = chart.log_prob();
  constexpr double log_2 = 0.693147180559945309417232121458;
  // prefix[k] holds the values for strings from word k to the current end, times 2^-exponent[k].
  std::vector<std::vector<double>> prefix(n);
  std::vector<int> exponent(n);
  std::vector<double> ends(symbols), pair(grammar_->pairs());
  for (std::size_t end = 1; end <= n; ++end) {
    for (std::size_t start = end; start-- > 0;) {
      std::fill(ends.begin(), ends.end(), 0.0);
      int reference = 0;
      if (start + 1 == end) {
        const TagScores& word = scores[start];
        for (std::size_t t = 0; t < word.tag.size(); ++t) ends[word.tag[t]] = word.score[word.start[t]];
      } else {
        bool any = false;
        for (std::size_t split = start + 1; split < end; ++split) {
          if (chart.items(cell_of(start, split)).empty() || prefix[split].empty()) continue;
          const int sum = chart.exponent(cell_of(start, split)) + exponent[split];
          reference = any ? std::max(reference, sum) : sum;
          any = true;
        }
        std::fill(pair.begin(), pair.end(), 0.0);
        for (std::size_t split = start + 1; any && split < end; ++split) {
          if (prefix[split].empty()) continue;
          const double scale =
              power_of_two<double>(chart.exponent(cell_of(start, split)) + exponent[split] - reference);
          for (const auto& item : chart.items(cell_of(start, split)))
            for (std::uint32_t p = grammar_->first_pair(item.symbol); p < grammar_->first_pair(item.symbol + 1); ++p)
              pair[p] += item.inside * scale * prefix[split][grammar_->pair_right(p)];
        }
        for (std::uint32_t p = 0; p < grammar_->pairs(); ++p) {
          if (pair[p] == 0) continue;
          for (const ParentRule& rule : grammar_->rules_of_pair(p))
            ends[rule.parent] += pair[p] * *grammar_->binary_block(rule);
        }
      }
      std::vector<double>& out = prefix[start];
      out.assign(symbols, 0);
      double largest = 0;
      for (std::uint32_t a = 0; a < symbols; ++a) {
        for (const Corner& corner : corners_[a]) out[a] += corner.weight * ends[corner.below];
        largest = std::max(largest, out[a]);
      }
      if (largest == 0) {
        out.clear();
        continue;
      }
      const int shift = top_exponent - std::ilogb(largest);
      for (double& value : out) value = std::ldexp(value, shift);
      exponent[start] = reference - shift;
    }
    if (!prefix[0].empty() && prefix[0][0] > 0) result[end - 1] = std::log(prefix[0][0]) + exponent[0] * log_2;
  }
  return result;
}

}  // namespace treelm
