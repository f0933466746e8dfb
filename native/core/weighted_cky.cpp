#include "weighted_cky.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cky.h"
#include "error.h"
#include "symbols.h"

namespace treelm {

namespace {

constexpr double impossible = -std::numeric_limits<double>::infinity();

struct Item {
  double score = impossible;
  std::int64_t branching = 0;
  std::uint32_t rule = none, split = 0;
};

bool better(double score, std::int64_t branching, const Item& than) {
  return score != than.score ? score > than.score : branching > than.branching;
}

void need(bool fits, const char* what) {
  if (!fits) throw Error(ErrorCode::argument, what);
}

}  // namespace

void check_weighted_grammar(const WeightedGrammar& grammar) {
  need(grammar.rules.size() == 3 * grammar.weights.size() && grammar.root_weights.size() == grammar.symbols,
       "there is not one weight for each rule and each symbol");
  for (const std::int32_t symbol : grammar.rules)
    need(symbol >= 0 && static_cast<std::uint32_t>(symbol) < grammar.symbols, "a rule names no symbol");
  for (const double weight : grammar.weights) need(std::isfinite(weight), "a weight is no number");
  for (const double weight : grammar.root_weights)
    need(!std::isnan(weight) && weight < std::numeric_limits<double>::infinity(), "a weight is no number");
}

void check_weighted_tags(std::size_t symbols, const WeightedTags& words) {
  need(!words.starts.empty() && words.starts.front() == 0 &&
           words.starts.back() == static_cast<std::int64_t>(words.tags.size()) &&
           std::is_sorted(words.starts.begin(), words.starts.end()) && words.tags.size() == words.weights.size(),
       "the tags of words do not fit together");
  for (const std::int32_t tag : words.tags)
    need(tag >= 0 && static_cast<std::size_t>(tag) < symbols, "a tag is no symbol");
  for (const double weight : words.weights) need(std::isfinite(weight), "a weight is no number");
}

std::optional<WeightedParse> best_weighted_tree(const WeightedGrammar& grammar, const WeightedTags& words) {
  check_weighted_grammar(grammar);
  check_weighted_tags(grammar.symbols, words);
  const std::size_t n = words.starts.size() - 1, symbols = grammar.symbols;
  if (n == 0 || symbols == 0) return std::nullopt;
  // Rules by left child, in their own order.
  std::vector<std::uint32_t> order(grammar.weights.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return grammar.rules[3 * a + 1] < grammar.rules[3 * b + 1];
  });
  std::vector<std::uint32_t> first(symbols + 1);
  for (const std::uint32_t rule : order) ++first[static_cast<std::size_t>(grammar.rules[3 * rule + 1]) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<Item> chart(cells_of(n) * symbols);
  std::vector<std::vector<std::uint32_t>> present(cells_of(n));
  for (std::size_t last = 1; last <= n; ++last) {
    for (std::size_t start = last; start-- > 0;) {
      const std::size_t cell = cell_of(start, last);
      Item* own = chart.data() + cell * symbols;
      if (last - start == 1) {
        for (auto t = static_cast<std::size_t>(words.starts[start]); t < static_cast<std::size_t>(words.starts[last]);
             ++t) {
          Item& item = own[words.tags[t]];
          if (better(words.weights[t], 0, item)) item = {words.weights[t], 0, none, 0};
        }
      }
      for (std::size_t split = start + 1; split < last; ++split) {
        const Item* left_items = chart.data() + cell_of(start, split) * symbols;
        const Item* right_items = chart.data() + cell_of(split, last) * symbols;
        const auto left_length = static_cast<std::int64_t>(split - start);
        for (const std::uint32_t symbol : present[cell_of(start, split)]) {
          const Item& left = left_items[symbol];
          for (std::uint32_t r = first[symbol]; r < first[symbol + 1]; ++r) {
            const std::uint32_t rule = order[r];
            const Item& right = right_items[grammar.rules[3 * rule + 2]];
            if (right.score == impossible) continue;
            const double score = (left.score + right.score) + grammar.weights[rule];
            const std::int64_t branching = left.branching + right.branching - left_length;
            Item& item = own[grammar.rules[3 * rule]];
            const bool equal = score == item.score && branching == item.branching;
            if (better(score, branching, item) || (equal && split == item.split && rule < item.rule))
              item = {score, branching, rule, static_cast<std::uint32_t>(split)};
          }
        }
      }
      for (std::uint32_t symbol = 0; symbol < symbols; ++symbol)
        if (own[symbol].score != impossible) present[cell].push_back(symbol);
    }
  }
  std::optional<WeightedParse> best;
  std::uint32_t top = none;
  Item held;
  const std::size_t whole = cell_of(0, n);
  for (const std::uint32_t symbol : present[whole]) {
    const Item& item = chart[whole * symbols + symbol];
    const double score = item.score + grammar.root_weights[symbol];
    if (score == impossible || !better(score, item.branching, held)) continue;
    held = {score, item.branching, none, 0};
    top = symbol;
  }
  if (top == none) return best;
  best.emplace();
  best->score = held.score;
  best->branching = held.branching;
  struct Piece {
    std::size_t start, last;
    std::uint32_t symbol, parent;
    bool is_right;
  };
  std::vector<Piece> todo{{0, n, top, none, false}};
  while (!todo.empty()) {
    const Piece piece = todo.back();
    todo.pop_back();
    DecodedTree& tree = best->tree;
    const auto node = static_cast<std::uint32_t>(tree.symbol.size());
    const Item& item = chart[cell_of(piece.start, piece.last) * symbols + piece.symbol];
    tree.symbol.push_back(piece.symbol);
    tree.left.push_back(none);
    tree.right.push_back(none);
    best->rules.push_back(item.rule);
    if (piece.parent != none) (piece.is_right ? tree.right : tree.left)[piece.parent] = node;
    if (item.rule == none) continue;
    const auto child = [&](std::size_t k) { return static_cast<std::uint32_t>(grammar.rules[3 * item.rule + k]); };
    todo.push_back({item.split, piece.last, child(2), node, true});
    todo.push_back({piece.start, item.split, child(1), node, false});
  }
  return best;
}

}  // namespace treelm
