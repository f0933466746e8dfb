#include "chart/max_rule.h"

#include <algorithm>
#include <cmath>

#include "base/interrupt.h"

namespace treelm {

template <class Real>
double MaxRuleDecoder<Real>::rule_weight(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar,
                                         Objective objective, std::uint32_t parent, double expected) {
  if (objective == Objective::variational) expected /= chart.expected(grammar, chart.item(parent));
  // Rounding and unary cycles may lift an expected number above 1; a product must not grow by that.
  return objective == Objective::sum ? expected : std::min(expected, 1.0);
}

template <class Real>
LongScore MaxRuleDecoder<Real>::joined(double weight, const LongScore& a, const LongScore& b) const {
  if (objective_ == Objective::sum) return {weight + a.value + b.value, 0};
  return normalized(weight * (a.value * b.value), a.exponent + b.exponent);
}

template <class Real>
LongScore MaxRuleDecoder<Real>::extended(double weight, const LongScore& a) const {
  if (objective_ == Objective::sum) return {weight + a.value, 0};
  return normalized(weight * a.value, a.exponent);
}

template <class Real>
bool MaxRuleDecoder<Real>::in_chain(const RefinedChart<Real>& chart, std::uint32_t item, std::uint32_t layer,
                                    std::uint32_t symbol) {
  while (true) {
    if (chart.item(item).symbol == symbol) return true;
    if (layer == 0) return false;
    item = best(item, layer).left;
    --layer;
  }
}

template <class Real>
bool MaxRuleDecoder<Real>::decode(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar,
                                  Objective objective, std::uint32_t max_unary, DecodedTree& out) {
  repeats_ = false;
  fill(chart, grammar, objective, max_unary);
  const std::size_t top = chart.first_item(cell_of(0, chart.words()));
  out.clear();
  if (top == chart.items() || chart.item(top).symbol != 0 || top_layer_[top] == none) return false;
  const LongScore& score = best(top, top_layer_[top]).score;
  score_ = objective == Objective::sum ? score.value : score.log();
  build(chart, static_cast<std::uint32_t>(top), out);
  return true;
}

template <class Real>
void MaxRuleDecoder<Real>::bound(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar,
                                 Objective objective, std::uint32_t max_unary) {
  repeats_ = true;
  fill(chart, grammar, objective, max_unary);
}

template <class Real>
void MaxRuleDecoder<Real>::fill(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar, Objective objective,
                                std::uint32_t max_unary) {
  objective_ = objective;
  layers_ = max_unary + 2;
  best_.assign(chart.items() * layers_, Best{});
  top_layer_.assign(chart.items(), none);
  const std::size_t words = chart.words();
  for (std::size_t last = 1; last <= words; ++last) {
    for (std::size_t first = last; first-- > 0;) {
      poll_interrupt();
      const std::size_t cell = cell_of(first, last);
      if (last - first == 1) {
        for (std::size_t i = chart.first_item(cell); i < chart.first_item(cell + 1); ++i) {
          const auto& item = chart.item(i);
          if (item.symbol < grammar.phrasal() || !item.alive) continue;
          const double expected = chart.expected(grammar, item);
          if (!(expected > 0)) continue;
          const double own = weight(grammar, chart, static_cast<std::uint32_t>(i), expected);
          best(i, 0).score = objective == Objective::sum ? LongScore{own, 0} : normalized(own, 0);
        }
      }
      for (const auto& rule : chart.rules(cell)) {
        if (top_layer_[rule.left] == none || top_layer_[rule.right] == none) continue;
        const LongScore score =
            joined(weight(grammar, chart, rule.parent, static_cast<double>(rule.expected)),
                   best(rule.left, top_layer_[rule.left]).score, best(rule.right, top_layer_[rule.right]).score);
        Best& held = best(rule.parent, 0);
        if (held.score < score) held = {score, rule.left, rule.right};
      }
      close_cell(chart, grammar, cell, first == 0 && last == words);
    }
  }
}

// Puts unary rules on top of one another; the rule of the root may always be added.
template <class Real>
void MaxRuleDecoder<Real>::close_cell(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar,
                                      std::size_t cell, bool is_top) {
  for (std::uint32_t layer = 1; layer < layers_; ++layer) {
    for (const auto& rule : chart.unary_rules(cell)) {
      const bool is_root = is_top && chart.item(rule.parent).symbol == 0;
      if (layer + 1 == layers_ && !is_root) continue;
      const Best& below = best(rule.child, layer - 1);
      if (below.score.value == 0) continue;
      if (!repeats_ && in_chain(chart, rule.child, layer - 1, chart.item(rule.parent).symbol)) continue;
      const LongScore score =
          extended(weight(grammar, chart, rule.parent, static_cast<double>(rule.expected)), below.score);
      Best& held = best(rule.parent, layer);
      if (held.score < score) held = {score, rule.child, none};
    }
  }
  for (std::size_t i = chart.first_item(cell); i < chart.first_item(cell + 1); ++i) {
    LongScore highest;
    for (std::uint32_t layer = 0; layer < layers_; ++layer) {
      if (!(highest < best(i, layer).score)) continue;
      highest = best(i, layer).score;
      top_layer_[i] = layer;
    }
  }
}

template <class Real>
void MaxRuleDecoder<Real>::build(const RefinedChart<Real>& chart, std::uint32_t root, DecodedTree& out) {
  struct Piece {
    std::uint32_t item, layer, parent;
    bool is_right;
  };
  std::vector<Piece> todo{{root, top_layer_[root], none, false}};
  while (!todo.empty()) {
    const Piece piece = todo.back();
    todo.pop_back();
    const std::uint32_t node = out.add(chart.item(piece.item).symbol, piece.parent, piece.is_right);
    const Best& way = best(piece.item, piece.layer);
    if (piece.layer > 0) {
      todo.push_back({way.left, piece.layer - 1, node, false});
    } else if (way.left != none) {
      todo.push_back({way.right, top_layer_[way.right], node, true});
      todo.push_back({way.left, top_layer_[way.left], node, false});
    }
  }
}

template class MaxRuleDecoder<float>;
template class MaxRuleDecoder<double>;

}  // namespace treelm
