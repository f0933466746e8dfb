// The way down through a refined chart: outside scores, expected numbers, and what they leave for the next grammar.
#include <algorithm>

#include "base/interrupt.h"
#include "base/symbols.h"
#include "chart/loops.h"
#include "chart/refined_chart.h"

namespace treelm {

template <class Real>
double RefinedChart<Real>::expected(const ChartGrammar<Real>& grammar, const Item& item) const {
  double sum = 0;
  for (std::uint32_t x = 0; x < grammar.count(item.symbol); ++x)
    sum += static_cast<double>(inside_[item.place + x]) * static_cast<double>(outside_[item.place + x]);
  return sum;
}

template <class Real>
void RefinedChart<Real>::outside(const ChartGrammar<Real>& grammar, bool keep_rules) {
  const Item& root = items_[first_[cell_of(0, words_)]];
  outside_[root.place] = 1 / inside_[root.place];
  for (std::size_t last = words_; last > 0; --last) {
    for (std::size_t first = 0; first < last; ++first) {
      const std::size_t cell = cell_of(first, last);
      if (first_[cell] == first_[cell + 1]) continue;
      poll_interrupt();
      set_slots(cell, true);
      close_outside(grammar, cell, keep_rules);
      hand_down(grammar, first, last, keep_rules);
      set_slots(cell, false);
    }
  }
}

// Passes outside scores down through the unary rules of a cell.
template <class Real>
void RefinedChart<Real>::close_outside(const ChartGrammar<Real>& grammar, std::size_t cell, bool keep_rules) {
  here_.clear();
  for (std::size_t i = first_[cell]; i < first_[cell + 1]; ++i) {
    const Item& item = items_[i];
    const std::uint32_t count = grammar.count(item.symbol);
    const std::size_t at = here_.size();
    here_.insert(here_.end(), outside_.begin() + item.place, outside_.begin() + item.place + count);
    if (!item.alive) continue;
    const std::uint32_t* living = living_.data() + item.list;
    sums_.resize(item.alive);
    for (const ParentRule& chain : grammar.chains(item.symbol)) {
      if (slot_[chain.parent] == 0 || !items_[slot_[chain.parent] - 1].alive) continue;
      dot_rows(sums_.data(), grammar.chain_block(chain), living, item.alive,
               outside_.data() + items_[slot_[chain.parent] - 1].place, grammar.width(chain.parent));
      for (std::size_t t = 0; t < item.alive; ++t) here_[at + living[t]] += sums_[t];
    }
  }
  std::size_t at = 0;
  for (std::size_t i = first_[cell]; i < first_[cell + 1]; ++i) {
    const Item& item = items_[i];
    for (std::uint32_t x = 0; x < grammar.count(item.symbol); ++x, ++at)
      outside_[item.place + x] = here_[at] * allowed_[item.place + x];
  }
  if (!keep_rules) return;
  unary_first_[cell] = unaries_.size();
  for (std::size_t i = first_[cell]; i < first_[cell + 1]; ++i) {
    const Item& child = items_[i];
    if (!child.alive) continue;
    const std::uint32_t* living = living_.data() + child.list;
    sums_.resize(child.alive);
    for (const ParentRule& rule : grammar.unary_rules(child.symbol)) {
      if (slot_[rule.parent] == 0) continue;
      const Item& parent = items_[slot_[rule.parent] - 1];
      dot_rows(sums_.data(), grammar.unary_block(rule), living, child.alive, outside_.data() + parent.place,
               grammar.width(rule.parent));
      Real sum = 0;
      for (std::size_t t = 0; t < child.alive; ++t) sum += sums_[t] * inside_[child.place + living[t]];
      if (sum > 0) unaries_.push_back({slot_[rule.parent] - 1, static_cast<std::uint32_t>(i), sum});
    }
  }
  unary_last_[cell] = unaries_.size();
}

template <class Real>
void RefinedChart<Real>::hand_down(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last,
                                   bool keep_rules) {
  const std::size_t cell = cell_of(first, last);
  const std::span<const Edge> all = edges(cell);
  rule_first_[cell] = rules_.size();
  for (std::size_t begin = 0, end; begin < all.size(); begin = end) {
    const std::uint32_t pair = all[begin].pair, left_symbol = grammar.pair_left(pair);
    end = multiply(grammar, all, begin, first, last, exponent_[cell]);
    weights_.resize(products_.size());
    bool any = false;
    for (const ParentRule& rule : grammar.rules_of_pair(pair)) {
      if (slot_[rule.parent] == 0) continue;
      const Item& parent = items_[slot_[rule.parent] - 1];
      const Real* above = outside_.data() + parent.place;
      const std::uint32_t width = grammar.width(rule.parent);
      if (std::all_of(above, above + width, [](Real value) { return value == 0; })) continue;
      pick_rows(grammar, rule, left_symbol);
      if (rows_ == 0) continue;
      if (sums_.size() < rows_) sums_.resize(rows_);
      dot_rows(sums_.data(), grammar.binary_block(rule), index_.data(), rows_, above, width);
      if (!any)
        for (const std::uint32_t y : lefts_)
          std::fill_n(weights_.data() + std::size_t{y} * columns_, columns_, Real{0});
      any = true;
      for (std::size_t t = 0; t < rows_; ++t) weights_[picked_[t]] += sums_[t];
      if (keep_rules) keep(all.subspan(begin, end - begin), slot_[rule.parent] - 1);
    }
    if (!any) continue;
    for (std::size_t e = begin; e < end; ++e) {
      const Item &left = items_[all[e].left], &right = items_[all[e].right];
      const Real* right_values = inside_.data() + right.place;
      Real* right_outside = outside_.data() + right.place;
      for (std::uint32_t t = 0; t < left.alive; ++t) {
        const std::uint32_t y = living_[left.list + t];
        const Real* row = weights_.data() + std::size_t{y} * columns_;
        const Real factor = inside_[left.place + y] * scales_[e - begin];
        Real sum = 0;
        for (std::size_t z = 0; z < columns_; ++z) {
          sum += row[z] * right_values[z];
          right_outside[z] += factor * row[z];
        }
        outside_[left.place + y] += scales_[e - begin] * sum;
      }
    }
  }
  rule_last_[cell] = rules_.size();
}

// Keeps the expected number of a rule at every edge, after the sums of its rows.
template <class Real>
void RefinedChart<Real>::keep(std::span<const Edge> edges, std::uint32_t parent) {
  for (std::size_t e = 0; e < edges.size(); ++e) {
    Real expected = 0;
    if (edges.size() == 1) {
      for (std::size_t t = 0; t < rows_; ++t) expected += sums_[t] * values_[t];
    } else {
      const Real *left = inside_.data() + items_[edges[e].left].place,
                 *right = inside_.data() + items_[edges[e].right].place;
      for (std::size_t t = 0; t < rows_; ++t)
        expected += sums_[t] * left[picked_[t] / columns_] * right[picked_[t] % columns_];
      expected *= scales_[e];
    }
    if (expected > 0) rules_.push_back({parent, edges[e].left, edges[e].right, expected});
  }
}

template <class Real>
void RefinedChart<Real>::prune(const ChartGrammar<Real>& grammar, Real least, const ChartGrammar<Real>& next,
                               std::span<const std::uint32_t> parent, Survivors& out) const {
  out.clear();
  std::vector<std::uint32_t> heir(items_.size(), none);
  for (std::size_t cell = 0; cell < cells_of(words_); ++cell) {
    for (std::size_t i = first_[cell]; i < first_[cell + 1]; ++i) {
      const Item& item = items_[i];
      const std::uint32_t base = grammar.number(item.symbol), below = next.number(item.symbol);
      bool any = false;
      const std::size_t before = out.alive.size();
      for (std::uint32_t x = 0; x < next.count(item.symbol); ++x) {
        const std::uint32_t old = parent[below + x] - base;
        const Real value = inside_[item.place + old] * outside_[item.place + old];
        const bool alive = least > 0 ? value >= least : inside_[item.place + old] > 0;
        out.alive.push_back(alive);
        any = any || alive;
      }
      if (any) {
        heir[i] = static_cast<std::uint32_t>(out.symbol.size());
        out.end_item(item.symbol);
      } else {
        out.alive.resize(before);
      }
    }
    out.end_cell();
  }
  if (!grammar.has_pairs_of(next)) return;
  out.first_edge.push_back(0);
  for (std::size_t cell = 0; cell < cells_of(words_); ++cell) {
    for (std::size_t e = edge_first_[cell]; e < edge_last_[cell]; ++e) {
      const Edge& edge = edges_[e];
      if (heir[edge.left] != none && heir[edge.right] != none)
        out.edges.push_back({edge.pair, heir[edge.left], heir[edge.right], edge.split});
    }
    out.first_edge.push_back(static_cast<std::uint32_t>(out.edges.size()));
  }
}

template double RefinedChart<float>::expected(const ChartGrammar<float>&, const Item&) const;
template void RefinedChart<float>::outside(const ChartGrammar<float>&, bool);
template void RefinedChart<float>::prune(const ChartGrammar<float>&, float, const ChartGrammar<float>&,
                                         std::span<const std::uint32_t>, Survivors&) const;
template double RefinedChart<double>::expected(const ChartGrammar<double>&, const Item&) const;
template void RefinedChart<double>::outside(const ChartGrammar<double>&, bool);
template void RefinedChart<double>::prune(const ChartGrammar<double>&, double, const ChartGrammar<double>&,
                                          std::span<const std::uint32_t>, Survivors&) const;

}  // namespace treelm
