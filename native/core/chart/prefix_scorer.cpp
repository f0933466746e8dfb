#include "chart/prefix_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/interrupt.h"
#include "chart/loops.h"
#include "chart/sentences.h"

namespace treelm {

namespace {

constexpr double log_2 = 0.693147180559945309417232121458;
constexpr int nothing_here = std::numeric_limits<int>::min();  // exponent of a span without items
constexpr double impossible = -std::numeric_limits<double>::infinity();

}  // namespace

struct PrefixScorer::Scratch {
  std::vector<double> below, above;  // by symbol: scores of the current cell before and after unary rules
  std::vector<double> column;        // by start and symbol: scores of the current column
  std::vector<double> pair;          // by pair of children
  std::vector<double> begin, reach;  // by symbol: weight of beginning here, itself and as a left corner
  int reference = 0;
  std::uint64_t work = 0;
  TagScores word;

  explicit Scratch(const ChartGrammar<double>& grammar)
      : below(grammar.symbols()),
        above(grammar.symbols()),
        pair(grammar.pairs()),
        begin(grammar.symbols()),
        reach(grammar.symbols()) {}
};

PrefixScorer::PrefixScorer(std::shared_ptr<const ChartGrammar<double>> grammar,
                           std::shared_ptr<const ChartLexicon> lexicon)
    : grammar_(std::move(grammar)), lexicon_(std::move(lexicon)) {
  if (!grammar_ || !lexicon_ || !grammar_->is_plain() || lexicon_->counts().size() != grammar_->symbols() ||
      lexicon_->phrasal() != grammar_->phrasal())
    throw Error(ErrorCode::argument, "prefixes need a grammar without subcategories, and its lexicon");
  corners_ = std::make_unique<const LeftCorners>(*grammar_);
  Scratch scratch(*grammar_);
  auto nothing = std::make_shared<Column>();
  nothing->first.push_back(0);
  nothing->log_whole = impossible;
  scratch.begin[0] = 1;
  look_ahead(scratch, 0, *nothing);
  start_.columns_.push_back(std::move(nothing));
  start_.grammar_ = grammar_;
}

// The weight with which a symbol E begins after the last word is
//   begin(E) = sum over starts i, items D on the span from i to here, rules C -> D E: reach_i(C) rule inside(D)
// where reach_i(C) = sum over A of begin_i(A) corner(A, C), because a symbol that begins reaches down to all its
// left corners. The probability of a prefix is then linear in the scores of its last word under its tags.
void PrefixScorer::look_ahead(Scratch& scratch, int exponent, Column& out) const {
  const std::size_t phrasal = grammar_->phrasal();
  scratch.reach = scratch.begin;
  scratch.work += corners_->add(scratch.reach);
  const double largest = *std::max_element(scratch.reach.begin(), scratch.reach.end());
  out.tags.clear();
  out.pairs.clear();
  std::fill(scratch.begin.begin(), scratch.begin.end(), 0.0);
  if (!(largest > 0)) return;
  const int shift = -std::ilogb(largest);
  for (double& value : scratch.reach) value = std::ldexp(value, shift);
  out.forward_exponent = exponent - shift;
  out.tags.assign(scratch.reach.begin() + static_cast<std::ptrdiff_t>(phrasal), scratch.reach.end());
  out.pairs.assign(grammar_->pairs(), 0.0);
  for (std::uint32_t parent = 0; parent < phrasal; ++parent) {
    const double value = scratch.reach[parent];
    if (value == 0) continue;
    for (const auto& [pair, weight] : grammar_->pairs_of_parent(parent)) out.pairs[pair] += value * weight;
    scratch.work += grammar_->pairs_of_parent(parent).size();
  }
}

std::uint64_t PrefixScorer::add_column(Columns before, const TagScores& word, Scratch& scratch, Column& out) const {
  const std::size_t last = before.size(), symbols = grammar_->symbols();
  scratch.work = 0;
  const double sum = next_sum(*before.back(), word);
  out.log_prefix = sum > 0 ? std::log(sum) + before.back()->forward_exponent * log_2 : impossible;
  out.log_whole = impossible;
  // Spans are made from the shortest to the longest, and stored by where they begin.
  scratch.column.assign(last * symbols, 0.0);
  out.exponent.assign(last, 0);
  double largest = 0;
  for (const double score : word.score) largest = std::max(largest, score);
  scratch.reference = largest > 0 ? std::ilogb(largest) : 0;
  for (std::size_t i = 0; i < word.tag.size(); ++i)
    scratch.below[word.tag[i]] = std::ldexp(word.score[word.start[i]], -scratch.reference);
  finish_cell(last - 1, scratch, out);
  for (std::size_t first = last - 1; first-- > 0;) {
    poll_interrupt();
    combine(before, first, out, scratch);
    finish_cell(first, scratch, out);
  }
  out.first.assign(1, 0);
  int reference = 0;
  bool any = false;
  for (std::size_t first = 0; first < last; ++first) {
    const double* values = scratch.column.data() + first * symbols;
    for (std::uint32_t symbol = 0; symbol < symbols; ++symbol)
      if (values[symbol] > 0) out.items.push_back({symbol, values[symbol]});
    out.first.push_back(static_cast<std::uint32_t>(out.items.size()));
    if (out.first[first] == out.first[first + 1] || before[first]->pairs.empty()) continue;
    const int exponent = out.exponent[first] + before[first]->forward_exponent;
    reference = any ? std::max(reference, exponent) : exponent;
    any = true;
  }
  const auto top = out.cell(0);
  if (!top.empty() && top[0].symbol == 0) out.log_whole = std::log(top[0].inside) + out.exponent[0] * log_2;
  for (std::size_t first = 0; any && first < last; ++first) {
    const Column& earlier = *before[first];
    if (earlier.pairs.empty()) continue;
    const double scale = power_of_two<double>(out.exponent[first] + earlier.forward_exponent - reference);
    if (scale == 0) continue;
    for (const auto& item : out.cell(first)) {
      const std::uint32_t from = grammar_->first_pair(item.symbol), to = grammar_->first_pair(item.symbol + 1);
      const double factor = item.inside * scale;
      for (std::uint32_t pair = from; pair < to; ++pair)
        scratch.begin[grammar_->pair_right(pair)] += factor * earlier.pairs[pair];
      scratch.work += to - from;
    }
  }
  look_ahead(scratch, reference, out);
  out.items.shrink_to_fit();
  return scratch.work;
}

// Sums over all splits of a span, into scratch: first the products of pairs of children over all splits, then
// every rule once.
void PrefixScorer::combine(Columns before, std::size_t first, const Column& out, Scratch& scratch) const {
  const std::size_t last = before.size(), symbols = grammar_->symbols();
  bool any = false;
  for (std::size_t split = first + 1; split < last; ++split) {
    if (before[split]->cell(first).empty() || out.exponent[split] == nothing_here) continue;
    const int exponent = before[split]->exponent[first] + out.exponent[split];
    scratch.reference = any ? std::max(scratch.reference, exponent) : exponent;
    any = true;
  }
  if (!any) return;
  for (std::size_t split = first + 1; split < last; ++split) {
    const Column& left = *before[split];
    if (left.cell(first).empty() || out.exponent[split] == nothing_here) continue;
    const double scale = power_of_two<double>(left.exponent[first] + out.exponent[split] - scratch.reference);
    const double* rights = scratch.column.data() + split * symbols;
    for (const auto& item : left.cell(first)) {
      const std::uint32_t from = grammar_->first_pair(item.symbol), to = grammar_->first_pair(item.symbol + 1);
      const double factor = item.inside * scale;
      if (from == to || factor == 0) continue;
      add_gathered(scratch.pair.data() + from, rights, grammar_->pair_rights() + from, to - from, factor);
      scratch.work += to - from;
    }
  }
  for (std::uint32_t pair = 0; pair < grammar_->pairs(); ++pair) {
    const double value = scratch.pair[pair];
    if (value == 0) continue;
    scratch.pair[pair] = 0;
    for (const ParentRule& rule : grammar_->rules_of_pair(pair))
      scratch.below[rule.parent] += value * *grammar_->binary_block(rule);
  }
}

// Applies unary rules to what is in scratch, and keeps it as the scores of a span of the current column.
void PrefixScorer::finish_cell(std::size_t first, Scratch& scratch, Column& out) const {
  const auto symbols = grammar_->symbols();
  for (std::uint32_t symbol = 0; symbol < symbols; ++symbol) {
    const double value = scratch.below[symbol];
    if (value == 0) continue;
    scratch.above[symbol] += value;
    for (const ParentRule& chain : grammar_->chains(symbol))
      scratch.above[chain.parent] += value * *grammar_->chain_block(chain);
  }
  if (first != 0) scratch.above[0] = 0;
  const double largest = *std::max_element(scratch.above.begin(), scratch.above.end());
  out.exponent[first] = nothing_here;
  if (largest > 0) {
    const int shift = top_exponent - std::ilogb(largest);
    out.exponent[first] = scratch.reference - shift;
    double* column = scratch.column.data() + first * symbols;
    for (std::uint32_t symbol = 0; symbol < symbols; ++symbol) {
      const double value = std::ldexp(scratch.above[symbol], shift);
      if (value >= std::numeric_limits<double>::min()) column[symbol] = value;
    }
  }
  std::fill(scratch.below.begin(), scratch.below.end(), 0.0);
  std::fill(scratch.above.begin(), scratch.above.end(), 0.0);
}

double PrefixScorer::next_sum(const Column& column, const TagScores& word) const {
  if (column.tags.empty()) return 0;
  double sum = 0;
  for (std::size_t t = 0; t < word.tag.size(); ++t)
    sum += column.tags[word.tag[t] - grammar_->phrasal()] * word.score[word.start[t]];
  return sum;
}

void PrefixScorer::look_up(std::uint32_t word, TagScores& out) const {
  if (word >= lexicon_->words()) throw Error(ErrorCode::argument, "a word id is out of range");
  lexicon_->look_up(word, out);
}

void PrefixScorer::check_own(const PrefixChart& chart) const {
  if (chart.grammar_ != grammar_) throw Error(ErrorCode::argument, "the chart belongs to another grammar");
}

PrefixChart PrefixScorer::extend(const PrefixChart& chart, std::uint32_t word) const {
  check_own(chart);
  Scratch scratch(*grammar_);
  look_up(word, scratch.word);
  auto column = std::make_shared<Column>();
  add_column(chart.columns_, scratch.word, scratch, *column);
  PrefixChart longer = chart;
  longer.columns_.push_back(std::move(column));
  return longer;
}

std::vector<double> PrefixScorer::next(const PrefixChart& chart, std::span<const std::uint32_t> words) const {
  check_own(chart);
  const Column& column = *chart.columns_.back();
  TagScores scores;
  std::vector<double> result;
  result.reserve(words.size());
  for (const std::uint32_t word : words) {
    look_up(word, scores);
    const double sum = next_sum(column, scores);
    result.push_back(sum > 0 ? std::log(sum) + column.forward_exponent * log_2 : impossible);
  }
  return result;
}

std::vector<double> PrefixScorer::score(std::span<const std::uint32_t> words, const ChartLimits& limits) const {
  Scratch scratch(*grammar_);
  std::vector<std::shared_ptr<const Column>> columns = start_.columns_;
  std::vector<double> result;
  std::uint64_t work = 0;
  for (const std::uint32_t word : words) {
    look_up(word, scratch.word);
    auto column = std::make_shared<Column>();
    work += add_column(columns, scratch.word, scratch, *column);
    if (work > limits.work) return std::vector<double>(words.size() + 1, std::numeric_limits<double>::quiet_NaN());
    result.push_back(column->log_prefix);
    columns.push_back(std::move(column));
  }
  result.push_back(columns.back()->log_whole);
  return result;
}

std::vector<double> PrefixScorer::score_all(std::span<const std::uint32_t> words, std::span<const std::uint64_t> starts,
                                            const ChartLimits& limits, std::size_t threads) const {
  std::vector<double> scores(words.size() + starts.size() - (starts.empty() ? 0 : 1));
  ThreadPool pool(threads);
  for_each_sentence(words, starts, pool, [&](std::size_t sentence, std::span<const std::uint32_t> own, std::size_t) {
    const std::vector<double> found = score(own, limits);
    std::copy(found.begin(), found.end(), scores.begin() + static_cast<std::ptrdiff_t>(starts[sentence] + sentence));
  });
  return scores;
}

}  // namespace treelm
