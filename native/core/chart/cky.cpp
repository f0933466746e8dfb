#include "chart/cky.h"

#include <algorithm>
#include <cmath>

#include "base/interrupt.h"
#include "chart/loops.h"

namespace treelm {

template <class Real>
void PlainChart<Real>::reset(const ChartGrammar<Real>& grammar, std::size_t words) {
  const std::size_t symbols = grammar.symbols();
  words_ = words;
  work_ = 0;
  items_.clear();
  first_.assign(cells_of(words), 0);
  last_.assign(cells_of(words), 0);
  exponent_.assign(cells_of(words), 0);
  below_.assign(symbols, 0);
  above_.assign(symbols, 0);
  pair_.assign(grammar.pairs(), 0);
  column_.assign(symbols * words, 0);
  left_seen_.assign(symbols, 0);
}

template <class Real>
ChartOutcome PlainChart<Real>::inside(const ChartGrammar<Real>& grammar, const std::vector<TagScores>& words,
                                      const ChartLimits& limits, Real beam) {
  reset(grammar, words.size());
  const std::size_t symbols = grammar.symbols();
  for (std::size_t last = 1; last <= words_; ++last) {
    const TagScores& word = words[last - 1];
    // The largest score of a word becomes 1: lexicons may score far below what a float can hold.
    double largest = 0;
    for (const double score : word.score) largest = std::max(largest, score);
    reference_ = largest > 0 ? std::ilogb(largest) : 0;
    for (std::size_t i = 0; i < word.tag.size(); ++i)
      below_[word.tag[i]] = static_cast<Real>(std::ldexp(word.score[word.start[i]], -reference_));
    finish_cell(grammar, last - 1, last, beam);
    for (std::size_t first = last - 1; first-- > 0;) {
      poll_interrupt();
      combine(grammar, first, last);
      finish_cell(grammar, first, last, beam);
      if (work_ > limits.work || items_.size() > limits.items) return ChartOutcome::too_much_work;
    }
    for (std::size_t first = 0; first < last; ++first)
      for (const Item& item : items(cell_of(first, last))) column_[first * symbols + item.symbol] = 0;
  }
  const auto top = items(cell_of(0, words_));
  return !top.empty() && top[0].symbol == 0 ? ChartOutcome::parsed : ChartOutcome::no_parse;
}

// Sums over all splits of a span, into `below_`: first the products of pairs of children over all
// splits, then every rule once.
template <class Real>
void PlainChart<Real>::combine(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last) {
  const std::size_t symbols = grammar.symbols();
  bool any = false;
  for (std::size_t split = first + 1; split < last; ++split) {
    const std::size_t left = cell_of(first, split), right = cell_of(split, last);
    if (first_[left] == last_[left] || first_[right] == last_[right]) continue;
    const int exponent = exponent_[left] + exponent_[right];
    reference_ = any ? std::max(reference_, exponent) : exponent;
    any = true;
  }
  if (!any) return;
  lefts_.clear();
  for (std::size_t split = first + 1; split < last; ++split) {
    const std::size_t left = cell_of(first, split), right = cell_of(split, last);
    if (first_[left] == last_[left] || first_[right] == last_[right]) continue;
    const Real scale = power_of_two<Real>(exponent_[left] + exponent_[right] - reference_);
    const Real* rights = column_.data() + split * symbols;
    for (const Item& item : items(left)) {
      const std::uint32_t from = grammar.first_pair(item.symbol), to = grammar.first_pair(item.symbol + 1);
      const Real factor = item.inside * scale;
      if (from == to || factor == 0) continue;
      if (!left_seen_[item.symbol]) {
        left_seen_[item.symbol] = 1;
        lefts_.push_back(item.symbol);
      }
      add_gathered(pair_.data() + from, rights, grammar.pair_rights() + from, to - from, factor);
      work_ += to - from;
    }
  }
  std::sort(lefts_.begin(), lefts_.end());
  for (const std::uint32_t left : lefts_) {
    left_seen_[left] = 0;
    for (std::uint32_t pair = grammar.first_pair(left); pair < grammar.first_pair(left + 1); ++pair) {
      const Real value = pair_[pair];
      if (value == 0) continue;
      pair_[pair] = 0;
      for (const ParentRule& rule : grammar.rules_of_pair(pair))
        below_[rule.parent] += value * *grammar.binary_block(rule);
    }
  }
}

// Applies unary rules to `below_` and keeps what is not zero as the items of a cell.
template <class Real>
void PlainChart<Real>::finish_cell(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last, Real beam) {
  const auto symbols = grammar.symbols();
  const bool is_top = first == 0 && last == words_;
  for (std::uint32_t symbol = 0; symbol < symbols; ++symbol) {
    const Real value = below_[symbol];
    if (value == 0) continue;
    above_[symbol] += value;
    for (const ParentRule& chain : grammar.chains(symbol)) above_[chain.parent] += value * *grammar.chain_block(chain);
  }
  if (!is_top) above_[0] = 0;
  Real largest = 0, likeliest = 0;
  for (std::uint32_t symbol = 0; symbol < symbols; ++symbol) {
    largest = std::max(largest, above_[symbol]);
    likeliest = std::max(likeliest, above_[symbol] * grammar.frequency(symbol));
  }
  const Real least = is_top ? Real{0} : likeliest * beam;
  const std::size_t cell = cell_of(first, last);
  first_[cell] = items_.size();
  if (largest > 0) {
    const int shift = top_exponent - std::ilogb(largest);
    exponent_[cell] = reference_ - shift;
    const Real half = power_of_two<Real>(shift / 2), rest = power_of_two<Real>(shift - shift / 2);
    Real* column = column_.data() + first * symbols;
    for (std::uint32_t symbol = 0; symbol < symbols; ++symbol) {
      const Real value = above_[symbol] * half * rest;
      if (!(value >= std::numeric_limits<Real>::min()) || above_[symbol] * grammar.frequency(symbol) < least) continue;
      items_.push_back({symbol, value, 0});
      column[symbol] = value;
    }
  }
  last_[cell] = items_.size();
  std::fill(below_.begin(), below_.end(), Real{0});
  std::fill(above_.begin(), above_.end(), Real{0});
}

template <class Real>
double PlainChart<Real>::log_prob() const {
  const std::size_t top = cell_of(0, words_);
  constexpr double log_2 = 0.693147180559945309417232121458;
  return std::log(static_cast<double>(items_[first_[top]].inside)) + exponent_[top] * log_2;
}

template <class Real>
void PlainChart<Real>::outside(const ChartGrammar<Real>& grammar, Real floor) {
  const std::size_t symbols = grammar.symbols();
  column_outside_.assign(symbols * words_, 0);
  Item& root = items_[first_[cell_of(0, words_)]];
  root.outside = 1 / root.inside;
  for (std::size_t last = words_; last > 0; --last) {
    for (std::size_t first = 0; first < last; ++first)
      for (const Item& item : items(cell_of(first, last))) column_[first * symbols + item.symbol] = item.inside;
    for (std::size_t first = 0; first < last; ++first) {
      poll_interrupt();
      hand_down(grammar, first, last, floor);
    }
    for (std::size_t first = 0; first < last; ++first)
      for (const Item& item : items(cell_of(first, last))) column_[first * symbols + item.symbol] = 0;
    std::fill_n(column_outside_.begin(), last * symbols, Real{0});
  }
}

// Passes the outside scores of a cell through its unary rules, then to all pairs of children.
template <class Real>
void PlainChart<Real>::hand_down(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last, Real floor) {
  const std::size_t symbols = grammar.symbols(), cell = cell_of(first, last);
  const std::span<Item> own = std::span(items_).subspan(first_[cell], last_[cell] - first_[cell]);
  bool any = false;
  for (Item& item : own) {
    above_[item.symbol] = item.outside + column_outside_[first * symbols + item.symbol];
    any = any || above_[item.symbol] > 0;
  }
  if (!any) return;
  any = false;
  for (Item& item : own) {
    Real value = above_[item.symbol];
    for (const ParentRule& chain : grammar.chains(item.symbol))
      value += above_[chain.parent] * *grammar.chain_block(chain);
    item.outside = value;
  }
  for (const Item& item : own) {
    above_[item.symbol] = 0;
    if (item.outside == 0 || item.outside * item.inside < floor || last - first == 1) continue;
    for (const auto& [pair, weight] : grammar.pairs_of_parent(item.symbol)) {
      pair_[pair] += item.outside * weight;
      left_seen_[grammar.pair_left(pair)] = 1;
    }
    any = true;
  }
  if (!any) return;
  list_pairs(grammar);
  for (std::size_t split = first + 1; split < last; ++split) {
    const std::size_t left = cell_of(first, split), right = cell_of(split, last);
    if (first_[left] == last_[left] || first_[right] == last_[right]) continue;
    const Real scale = power_of_two<Real>(exponent_[left] + exponent_[right] - exponent_[cell]);
    if (scale == 0) continue;
    const Real* rights = column_.data() + split * symbols;
    Real* rights_outside = column_outside_.data() + split * symbols;
    for (std::size_t i = first_[left]; i < last_[left]; ++i) {
      Item& item = items_[i];
      const std::uint32_t from = listed_[item.symbol], to = listed_[item.symbol + 1];
      if (from == to) continue;
      item.outside += scale * scatter_and_sum(rights_outside, rights, listed_weight_.data() + from,
                                              listed_right_.data() + from, to - from, item.inside * scale);
    }
  }
}

// Lists the pairs of children that outside scores reach, by left child, and clears them.
template <class Real>
void PlainChart<Real>::list_pairs(const ChartGrammar<Real>& grammar) {
  listed_.resize(grammar.symbols() + 1);
  listed_right_.resize(grammar.pairs());
  listed_weight_.resize(grammar.pairs());
  std::uint32_t count = 0;
  for (std::uint32_t left = 0; left < grammar.symbols(); ++left) {
    listed_[left] = count;
    if (!left_seen_[left]) continue;
    left_seen_[left] = 0;
    for (std::uint32_t pair = grammar.first_pair(left); pair < grammar.first_pair(left + 1); ++pair) {
      listed_right_[count] = grammar.pair_right(pair);
      listed_weight_[count] = pair_[pair];
      count += pair_[pair] != 0;
      pair_[pair] = 0;
    }
  }
  listed_[grammar.symbols()] = count;
}

template class PlainChart<float>;
template class PlainChart<double>;

}  // namespace treelm
