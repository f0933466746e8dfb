#include "chart/weighted_cky.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/starts.h"
#include "base/symbols.h"
#include "chart/cky.h"

namespace treelm {

namespace {

void need(bool fits, const char* what) {
  if (!fits) throw Error(ErrorCode::argument, what);
}

}  // namespace

void WeightedTree::clear() {
  score = impossible_weight;
  branching = 0;
  symbols.clear();
  rules.clear();
}

void check_weighted_grammar(const WeightedGrammar& grammar) {
  need(grammar.rules.size() == 3 * grammar.weights.size() && grammar.root_weights.size() == grammar.symbols,
       "every rule and every symbol needs one weight");
  for (const std::int32_t symbol : grammar.rules)
    need(symbol >= 0 && static_cast<std::uint32_t>(symbol) < grammar.symbols, "a symbol of a rule is out of range");
  for (const double weight : grammar.weights) need(std::isfinite(weight), "a weight is NaN or infinite");
  for (const double weight : grammar.root_weights)
    need(!std::isnan(weight) && weight < std::numeric_limits<double>::infinity(), "a weight is NaN or infinite");
}

void check_weighted_tags(std::size_t symbols, const WeightedTags& words) {
  need(starts_fit(words.starts, words.tags.size()) && words.tags.size() == words.weights.size(),
       "the tags of words do not fit together");
  for (const std::int32_t tag : words.tags)
    need(tag >= 0 && static_cast<std::size_t>(tag) < symbols, "a tag is out of range");
  for (const double weight : words.weights) need(std::isfinite(weight), "a weight is NaN or infinite");
}

void plain_weighted_tree(const WeightedGrammar& grammar, const WeightedTags& words, WeightedTree& found) {
  found.clear();
  const std::size_t n = words.starts.size() - 1, symbols = grammar.symbols;
  if (n == 0 || symbols == 0) return;
  std::vector<WeightedItem> chart(cells_of(n) * symbols);
  for (std::size_t last = 1; last <= n; ++last) {
    for (std::size_t start = last; start-- > 0;) {
      poll_interrupt();
      WeightedItem* own = chart.data() + cell_of(start, last) * symbols;
      if (last - start == 1) {
        for (auto t = static_cast<std::size_t>(words.starts[start]); t < static_cast<std::size_t>(words.starts[last]);
             ++t)
          own[words.tags[t]].offer(words.weights[t], 0, none, 0);
      }
      for (std::size_t split = start + 1; split < last; ++split) {
        const WeightedItem* left_items = chart.data() + cell_of(start, split) * symbols;
        const WeightedItem* right_items = chart.data() + cell_of(split, last) * symbols;
        for (std::size_t rule = 0; rule < grammar.weights.size(); ++rule) {
          const WeightedItem& left = left_items[grammar.rules[3 * rule + 1]];
          const WeightedItem& right = right_items[grammar.rules[3 * rule + 2]];
          if (left.score == impossible_weight || right.score == impossible_weight) continue;
          own[grammar.rules[3 * rule]].offer(
              (left.score + right.score) + grammar.weights[rule],
              left.branching + right.branching - static_cast<std::int64_t>(split - start),
              static_cast<std::uint32_t>(rule), static_cast<std::uint32_t>(split));
        }
      }
    }
  }
  WeightedItem top{impossible_weight, 0, none, 0, none};
  for (std::uint32_t symbol = 0; symbol < symbols; ++symbol) {
    const WeightedItem& item = chart[cell_of(0, n) * symbols + symbol];
    const double score = item.score + grammar.root_weights[symbol];
    if (score != impossible_weight && top.is_below(score, item.branching))
      top = {score, item.branching, none, 0, symbol};
  }
  if (top.symbol == none) return;
  found.score = top.score;
  found.branching = top.branching;
  struct Piece {
    std::size_t start, last;
    std::uint32_t symbol;
  };
  std::vector<Piece> todo{{0, n, top.symbol}};
  while (!todo.empty()) {
    const Piece piece = todo.back();
    todo.pop_back();
    const WeightedItem& item = chart[cell_of(piece.start, piece.last) * symbols + piece.symbol];
    found.symbols.push_back(piece.symbol);
    found.rules.push_back(item.rule);
    if (item.rule == none) continue;
    const auto child = [&](std::size_t k) { return static_cast<std::uint32_t>(grammar.rules[3 * item.rule + k]); };
    todo.push_back({item.split, piece.last, child(2)});
    todo.push_back({piece.start, item.split, child(1)});
  }
}

}  // namespace treelm
