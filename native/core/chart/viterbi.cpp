#include "chart/viterbi.h"

#include <algorithm>
#include <cmath>

#include "base/interrupt.h"
#include "base/symbols.h"

namespace treelm {

template <class Real>
bool ViterbiDecoder<Real>::decode(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar,
                                  const std::vector<TagScores>& words, DecodedTree& out) {
  std::size_t places = 0;
  if (chart.items() > 0) {
    const auto& last = chart.item(chart.items() - 1);
    places = last.place + grammar.width(last.symbol);
  }
  best_.assign(places, 0);
  base_.assign(places, 0);
  way_.assign(places, {none, none, 0, 0});
  exponent_.assign(cells_of(chart.words()), 0);
  slot_.assign(grammar.symbols(), 0);
  for (std::size_t last = 1; last <= chart.words(); ++last) {
    for (std::size_t first = last; first-- > 0;) {
      poll_interrupt();
      fill_cell(chart, grammar, words, first, last);
    }
  }
  return build(chart, out);
}

template <class Real>
void ViterbiDecoder<Real>::fill_cell(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar,
                                     const std::vector<TagScores>& words, std::size_t first, std::size_t last) {
  const std::size_t cell = cell_of(first, last);
  const std::size_t begin = chart.first_item(cell), end = chart.first_item(cell + 1);
  for (std::size_t i = begin; i < end; ++i) slot_[chart.item(i).symbol] = static_cast<std::uint32_t>(i) + 1;
  int reference = 0;
  if (last - first == 1) {
    const TagScores& word = words[first];
    for (std::size_t t = 0; t < word.tag.size(); ++t) {
      if (slot_[word.tag[t]] == 0) continue;
      const auto& item = chart.item(slot_[word.tag[t]] - 1);
      for (std::uint32_t x = 0; x < grammar.count(item.symbol); ++x)
        if (chart.inside_of(item)[x] > 0) best_[item.place + x] = word.score[word.start[t] + x];
    }
  } else {
    bool any = false;
    for (const auto& edge : chart.edges(cell)) {
      const int exponent = exponent_[cell_of(first, edge.split)] + exponent_[cell_of(edge.split, last)];
      reference = any ? std::max(reference, exponent) : exponent;
      any = true;
    }
    for (const auto& edge : chart.edges(cell)) {
      const auto &left = chart.item(edge.left), &right = chart.item(edge.right);
      const std::uint32_t lefts = grammar.count(left.symbol);
      const double scale = power_of_two<double>(exponent_[cell_of(first, edge.split)] +
                                                exponent_[cell_of(edge.split, last)] - reference);
      for (const ParentRule& rule : grammar.rules_of_pair(edge.pair)) {
        if (slot_[rule.parent] == 0) continue;
        const auto& parent = chart.item(slot_[rule.parent] - 1);
        const std::uint32_t width = grammar.width(rule.parent);
        const Real* block = grammar.binary_block(rule);
        const std::uint32_t *starts = grammar.row_starts(rule), *right_of = grammar.row_rights(rule, left.symbol);
        for (std::uint32_t y = 0; y < lefts; ++y) {
          const double half = best_[left.place + y] * scale;
          if (half == 0) continue;
          for (std::uint32_t t = starts[y]; t < starts[y + 1]; ++t) {
            const std::uint32_t z = right_of[t];
            const double below = half * best_[right.place + z];
            if (below == 0) continue;
            const Real* row = block + std::size_t{t} * width;
            for (std::uint32_t x = 0; x < grammar.count(rule.parent); ++x) {
              const double score = below * static_cast<double>(row[x]);
              if (!(score > best_[parent.place + x]) || !(chart.inside_of(parent)[x] > 0)) continue;
              best_[parent.place + x] = score;
              way_[parent.place + x] = {edge.left, edge.right, static_cast<std::uint16_t>(y),
                                        static_cast<std::uint16_t>(z)};
            }
          }
        }
      }
    }
  }
  for (std::size_t i = begin; i < end; ++i)
    for (std::uint32_t x = 0; x < grammar.count(chart.item(i).symbol); ++x)
      base_[chart.item(i).place + x] = best_[chart.item(i).place + x];
  close_cell(chart, grammar, cell);
  double largest = 0;
  for (std::size_t i = begin; i < end; ++i)
    for (std::uint32_t x = 0; x < grammar.count(chart.item(i).symbol); ++x)
      largest = std::max(largest, best_[chart.item(i).place + x]);
  const int shift = largest > 0 ? -std::ilogb(largest) : 0;
  exponent_[cell] = reference - shift;
  for (std::size_t i = begin; i < end; ++i) {
    for (std::uint32_t x = 0; x < grammar.count(chart.item(i).symbol); ++x) {
      const std::size_t place = chart.item(i).place + x;
      best_[place] = std::ldexp(best_[place], shift);
      base_[place] = std::ldexp(base_[place], shift);
    }
    slot_[chart.item(i).symbol] = 0;
  }
}

// Best chains of unary rules, by repeated improvement; going round a cycle never improves anything,
// because cycles lose probability.
template <class Real>
void ViterbiDecoder<Real>::close_cell(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar,
                                      std::size_t cell) {
  for (std::uint32_t round = 0; round <= grammar.phrasal(); ++round) {
    bool changed = false;
    for (std::size_t i = chart.first_item(cell); i < chart.first_item(cell + 1); ++i) {
      const auto& child = chart.item(i);
      for (const ParentRule& rule : grammar.unary_rules(child.symbol)) {
        if (slot_[rule.parent] == 0) continue;
        const auto& parent = chart.item(slot_[rule.parent] - 1);
        const std::uint32_t width = grammar.width(rule.parent);
        for (std::uint32_t y = 0; y < grammar.count(child.symbol); ++y) {
          const double below = best_[child.place + y];
          if (below == 0) continue;
          const Real* row = grammar.unary_block(rule) + std::size_t{y} * width;
          for (std::uint32_t x = 0; x < grammar.count(rule.parent); ++x) {
            const double score = below * static_cast<double>(row[x]);
            if (!(score > best_[parent.place + x]) || !(chart.inside_of(parent)[x] > 0)) continue;
            best_[parent.place + x] = score;
            way_[parent.place + x] = {static_cast<std::uint32_t>(i), none, static_cast<std::uint16_t>(y), 0};
            changed = true;
          }
        }
      }
    }
    if (!changed) break;
  }
}

template <class Real>
bool ViterbiDecoder<Real>::build(const RefinedChart<Real>& chart, DecodedTree& out) {
  out.clear();
  const std::size_t top = cell_of(0, chart.words());
  const std::size_t root = chart.first_item(top);
  if (root == chart.first_item(top + 1) || chart.item(root).symbol != 0) return false;
  const double value = best_[chart.item(root).place];
  if (value == 0) return false;
  score_ = long_score(value, exponent_[top]).log();
  struct Piece {
    std::uint32_t item, x, parent;
    bool is_right;
  };
  std::vector<Piece> todo{{static_cast<std::uint32_t>(root), 0, none, false}};
  while (!todo.empty()) {
    const Piece piece = todo.back();
    todo.pop_back();
    const std::uint32_t node = out.add(chart.item(piece.item).symbol, piece.parent, piece.is_right);
    const Way& way = way_[chart.item(piece.item).place + piece.x];
    if (way.right != none) todo.push_back({way.right, way.right_x, node, true});
    if (way.left != none) todo.push_back({way.left, way.left_x, node, false});
  }
  return true;
}

template class ViterbiDecoder<float>;
template class ViterbiDecoder<double>;

}  // namespace treelm
