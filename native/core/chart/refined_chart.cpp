#include "chart/refined_chart.h"

#include <algorithm>
#include <cmath>

#include "base/interrupt.h"
#include "base/symbols.h"
#include "chart/loops.h"

namespace treelm {

namespace {

void sort_edges(std::vector<ChartEdge>& edges, std::size_t begin) {
  std::sort(
      edges.begin() + static_cast<std::ptrdiff_t>(begin), edges.end(),
      [](const ChartEdge& a, const ChartEdge& b) { return a.pair != b.pair ? a.pair < b.pair : a.split < b.split; });
}

}  // namespace

template <class Real>
void survivors_of(const PlainChart<Real>& chart, const ChartGrammar<Real>& grammar, Real least,
                  const ChartGrammar<Real>& next, Survivors& out) {
  out.clear();
  const std::size_t cells = cells_of(chart.words());
  std::vector<std::uint32_t> heir(chart.items(), none);
  for (std::size_t cell = 0; cell < cells; ++cell) {
    std::size_t i = chart.first_item(cell);
    for (const auto& item : chart.items(cell)) {
      const std::size_t own = i++;
      if (least > 0 && !(item.inside * item.outside >= least)) continue;
      heir[own] = static_cast<std::uint32_t>(out.symbol.size());
      out.alive.insert(out.alive.end(), next.count(item.symbol), 1);
      out.end_item(item.symbol);
    }
    out.end_cell();
  }
  if (!(least > 0) || !grammar.has_pairs_of(next)) return;
  out.first_edge.push_back(0);
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const std::size_t begin = out.edges.size();
    for (const ChartEdge& edge : chart.edges(cell))
      if (heir[edge.left] != none && heir[edge.right] != none)
        out.edges.push_back({edge.pair, heir[edge.left], heir[edge.right], edge.split});
    sort_edges(out.edges, begin);
    out.first_edge.push_back(static_cast<std::uint32_t>(out.edges.size()));
  }
}
template void survivors_of(const PlainChart<float>&, const ChartGrammar<float>&, float, const ChartGrammar<float>&,
                           Survivors&);
template void survivors_of(const PlainChart<double>&, const ChartGrammar<double>&, double, const ChartGrammar<double>&,
                           Survivors&);

template <class Real>
void RefinedChart<Real>::reset(const ChartGrammar<Real>& grammar, std::size_t words, const Survivors& survivors) {
  words_ = words;
  work_ = kept_edges_ = 0;
  const std::size_t cells = cells_of(words);
  items_.clear();
  living_.clear();
  edges_.clear();
  rules_.clear();
  unaries_.clear();
  first_.assign(survivors.first.begin(), survivors.first.end());
  std::uint32_t place = 0;
  for (const std::uint32_t symbol : survivors.symbol) {
    items_.push_back({symbol, place, 0, 0});
    place += grammar.width(symbol);
  }
  inside_.assign(place, 0);
  outside_.assign(place, 0);
  allowed_.assign(place, 0);
  for (std::size_t i = 0; i < items_.size(); ++i)
    for (std::uint32_t x = survivors.start[i]; x < survivors.start[i + 1]; ++x)
      allowed_[items_[i].place + x - survivors.start[i]] = survivors.alive[x] ? Real{1} : Real{0};
  exponent_.assign(cells, 0);
  for (auto* range : {&edge_first_, &edge_last_, &rule_first_, &rule_last_, &unary_first_, &unary_last_})
    range->assign(cells, 0);
  slot_.assign(grammar.symbols(), 0);
  below_.assign(grammar.places(), 0);
  above_.assign(grammar.places(), 0);
}

template <class Real>
void RefinedChart<Real>::set_slots(std::size_t cell, bool on) {
  for (std::size_t i = first_[cell]; i < first_[cell + 1]; ++i)
    slot_[items_[i].symbol] = on ? static_cast<std::uint32_t>(i) + 1 : 0;
}

template <class Real>
ChartOutcome RefinedChart<Real>::inside(const ChartGrammar<Real>& grammar, const std::vector<TagScores>& words,
                                        const Survivors& survivors, const ChartLimits& limits,
                                        SentenceCells<Real> cells) {
  reset(grammar, words.size(), survivors);
  for (std::size_t last = 1; last <= words_; ++last) {
    for (std::size_t first = last; first-- > 0;) {
      const std::size_t cell = cell_of(first, last);
      if (first_[cell] == first_[cell + 1]) continue;
      poll_interrupt();
      const bool may_keep = cells.kept && (first > 0 || last < words_);
      const std::uint64_t work = work_;
      const std::size_t begin = edges_.size();
      if (may_keep && take_kept(grammar, cell, cells)) {
        if (work_ > limits.work || edges_.size() + kept_edges_ > limits.items) return ChartOutcome::too_much_work;
        continue;
      }
      set_slots(cell, true);
      if (last - first == 1) {
        const TagScores& word = words[first];
        double largest = 0;
        for (const double score : word.score) largest = std::max(largest, score);
        reference_ = largest > 0 ? std::ilogb(largest) : 0;
        for (std::size_t i = 0; i < word.tag.size(); ++i) {
          if (slot_[word.tag[i]] == 0) continue;
          Real* values = below_.data() + grammar.place(word.tag[i]);
          for (std::uint32_t x = 0; x < word.start[i + 1] - word.start[i]; ++x)
            values[x] = static_cast<Real>(std::ldexp(word.score[word.start[i] + x], -reference_));
        }
        finish_cell(grammar, first, last);
      } else if (survivors.first_edge.empty() ? find_edges(grammar, first, last)
                                              : inherit_edges(grammar, first, last, survivors)) {
        combine(grammar, first, last);
        finish_cell(grammar, first, last);
      }
      set_slots(cell, false);
      if (may_keep) keep_cell(cell, work_ - work, edges_.size() - begin, cells);
      if (work_ > limits.work || edges_.size() + kept_edges_ > limits.items) return ChartOutcome::too_much_work;
    }
  }
  const std::size_t top = cell_of(0, words_);
  return first_[top] < first_[top + 1] && items_[first_[top]].symbol == 0 && items_[first_[top]].alive
             ? ChartOutcome::parsed
             : ChartOutcome::no_parse;
}

// Lists the pairs of living children of a cell that make one of its symbols.
template <class Real>
bool RefinedChart<Real>::find_edges(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last) {
  const std::size_t cell = cell_of(first, last), begin = edges_.size();
  bool any = false;
  for (std::size_t split = first + 1; split < last; ++split) {
    const std::size_t left = cell_of(first, split), right = cell_of(split, last);
    const std::size_t right_first = first_[right], right_last = first_[right + 1];
    if (right_first == right_last) continue;
    for (std::size_t l = first_[left]; l < first_[left + 1]; ++l) {
      if (!items_[l].alive || grammar.first_pair(items_[l].symbol) == grammar.first_pair(items_[l].symbol + 1))
        continue;
      for (std::size_t r = right_first; r < right_last; ++r) {
        if (!items_[r].alive) continue;
        const std::uint32_t pair = grammar.find_pair(items_[l].symbol, items_[r].symbol);
        if (pair == none || !is_wanted(grammar, pair)) continue;
        edges_.push_back(
            {pair, static_cast<std::uint32_t>(l), static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(split)});
        const int exponent = exponent_[left] + exponent_[right];
        reference_ = any ? std::max(reference_, exponent) : exponent;
        any = true;
      }
    }
  }
  sort_edges(edges_, begin);
  edge_first_[cell] = begin;
  edge_last_[cell] = edges_.size();
  return any;
}

// The same from the edges that a coarser chart has left, whose grammar has the same pairs.
template <class Real>
bool RefinedChart<Real>::inherit_edges(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last,
                                       const Survivors& survivors) {
  const std::size_t cell = cell_of(first, last);
  edge_first_[cell] = edges_.size();
  bool any = false;
  for (std::size_t e = survivors.first_edge[cell]; e < survivors.first_edge[cell + 1]; ++e) {
    const Edge& edge = survivors.edges[e];
    if (!items_[edge.left].alive || !items_[edge.right].alive || !is_wanted(grammar, edge.pair)) continue;
    edges_.push_back(edge);
    const int exponent = exponent_[cell_of(first, edge.split)] + exponent_[cell_of(edge.split, last)];
    reference_ = any ? std::max(reference_, exponent) : exponent;
    any = true;
  }
  edge_last_[cell] = edges_.size();
  return any;
}

// Prepares the edges of one pair that begin at `begin`: the left subcategories that live in any of them,
// and for these the products of inside scores of left and right subcategories, summed over the edges.
// Gives the end of the edges.
template <class Real>
std::size_t RefinedChart<Real>::multiply(const ChartGrammar<Real>& grammar, std::span<const Edge> all,
                                         std::size_t begin, std::size_t first, std::size_t last, int reference) {
  const std::uint32_t pair = all[begin].pair;
  std::size_t end = begin + 1;
  while (end < all.size() && all[end].pair == pair) ++end;
  const std::uint32_t left_symbol = grammar.pair_left(pair);
  columns_ = grammar.width(grammar.pair_right(pair));
  products_.resize(std::size_t{grammar.count(left_symbol)} * columns_);
  scales_.resize(end - begin);
  lefts_.clear();
  if (end - begin > 1) mark_.assign(grammar.count(left_symbol), 0);
  for (std::size_t e = begin; e < end; ++e) {
    const Edge& edge = all[e];
    const Item &left = items_[edge.left], &right = items_[edge.right];
    const Real scale =
        power_of_two<Real>(exponent_[cell_of(first, edge.split)] + exponent_[cell_of(edge.split, last)] - reference);
    scales_[e - begin] = scale;
    const Real* right_values = inside_.data() + right.place;
    for (std::uint32_t t = 0; t < left.alive; ++t) {
      const std::uint32_t y = living_[left.list + t];
      const Real factor = inside_[left.place + y] * scale;
      Real* row = products_.data() + std::size_t{y} * columns_;
      if (end - begin == 1 || !mark_[y]) {
        for (std::size_t z = 0; z < columns_; ++z) row[z] = factor * right_values[z];
        lefts_.push_back(y);
        if (end - begin > 1) mark_[y] = 1;
      } else {
        for (std::size_t z = 0; z < columns_; ++z) row[z] += factor * right_values[z];
      }
    }
  }
  return end;
}

// Lists the rows of a rule whose children have a product: numbers, and the products.
template <class Real>
void RefinedChart<Real>::pick_rows(const ChartGrammar<Real>& grammar, const ParentRule& rule, std::uint32_t left) {
  const std::uint32_t *starts = grammar.row_starts(rule), *rights = grammar.row_rights(rule, left);
  const std::size_t most = starts[grammar.count(left)];
  if (index_.size() < most) {
    index_.resize(most);
    values_.resize(most);
    picked_.resize(most);
  }
  std::size_t count = 0;
  for (const std::uint32_t y : lefts_) {
    const std::size_t row = std::size_t{y} * columns_;
    for (std::uint32_t t = starts[y]; t < starts[y + 1]; ++t) {
      const std::size_t product = row + rights[t];
      const Real value = products_[product];
      index_[count] = t;
      values_[count] = value;
      picked_[count] = static_cast<std::uint32_t>(product);
      count += value != 0;
    }
  }
  rows_ = count;
}

// Sums over all splits: the products of a pair of children first, then every rule of the pair once.
template <class Real>
void RefinedChart<Real>::combine(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last) {
  const std::span<const Edge> all = edges(cell_of(first, last));
  for (std::size_t begin = 0, end; begin < all.size(); begin = end) {
    const std::uint32_t pair = all[begin].pair;
    end = multiply(grammar, all, begin, first, last, reference_);
    for (const ParentRule& rule : grammar.rules_of_pair(pair)) {
      if (slot_[rule.parent] == 0) continue;
      pick_rows(grammar, rule, grammar.pair_left(pair));
      const std::uint32_t width = grammar.width(rule.parent);
      add_rows(below_.data() + grammar.place(rule.parent), grammar.binary_block(rule), index_.data(), values_.data(),
               rows_, width);
      work_ += rows_ * width;
    }
    work_ += lefts_.size() * columns_ * (end - begin);
  }
}

// Applies unary chains to `below_` and keeps the inside scores of the cell's items.
template <class Real>
void RefinedChart<Real>::finish_cell(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last) {
  const std::size_t cell = cell_of(first, last);
  for (std::size_t i = first_[cell]; i < first_[cell + 1]; ++i) {
    const Item& item = items_[i];
    const std::uint32_t count = grammar.count(item.symbol);
    Real* below = below_.data() + grammar.place(item.symbol);
    Real* above = above_.data() + grammar.place(item.symbol);
    if (index_.size() < count) {
      index_.resize(count);
      values_.resize(count);
      picked_.resize(count);
    }
    std::size_t found = 0;
    for (std::uint32_t x = 0; x < count; ++x) {
      below[x] *= allowed_[item.place + x];
      if (below[x] == 0) continue;
      above[x] += below[x];
      index_[found] = x;
      values_[found++] = below[x];
    }
    if (found == 0) continue;
    for (const ParentRule& chain : grammar.chains(item.symbol)) {
      if (slot_[chain.parent] == 0) continue;
      add_rows(above_.data() + grammar.place(chain.parent), grammar.chain_block(chain), index_.data(), values_.data(),
               found, grammar.width(chain.parent));
    }
  }
  Real largest = 0;
  for (std::size_t i = first_[cell]; i < first_[cell + 1]; ++i) {
    const Item& item = items_[i];
    const std::uint32_t width = grammar.width(item.symbol);
    const Real* above = above_.data() + grammar.place(item.symbol);
    for (std::uint32_t x = 0; x < width; ++x) largest = std::max(largest, above[x] * allowed_[item.place + x]);
  }
  const int shift = largest > 0 ? top_exponent - std::ilogb(largest) : 0;
  exponent_[cell] = reference_ - shift;
  const Real half = power_of_two<Real>(shift / 2), rest = power_of_two<Real>(shift - shift / 2);
  for (std::size_t i = first_[cell]; i < first_[cell + 1]; ++i) {
    Item& item = items_[i];
    const std::uint32_t width = grammar.width(item.symbol);
    Real* above = above_.data() + grammar.place(item.symbol);
    Real* below = below_.data() + grammar.place(item.symbol);
    for (std::uint32_t x = 0; x < width; ++x) {
      Real value = above[x] * allowed_[item.place + x] * half * rest;
      if (!(value >= std::numeric_limits<Real>::min())) value = 0;
      inside_[item.place + x] = value;
      above[x] = below[x] = 0;
    }
    list_living(item, width);
  }
}

template <class Real>
void RefinedChart<Real>::list_living(Item& item, std::uint32_t width) {
  item.list = static_cast<std::uint32_t>(living_.size());
  for (std::uint32_t x = 0; x < width; ++x) {
    if (!(inside_[item.place + x] > 0)) continue;
    living_.push_back(x);
    ++item.alive;
  }
}

// Fills a cell as one over the same words was filled before, if there was one.
template <class Real>
bool RefinedChart<Real>::take_kept(const ChartGrammar<Real>& grammar, std::size_t cell, SentenceCells<Real> cells) {
  const auto* kept = cells.kept->find(cells.spans[cell]);
  if (!kept) return false;
  const std::size_t count = kept->items;
  const Real* from = cells.kept->values.data() + kept->values;
  std::copy(from, from + count, inside_.data() + items_[first_[cell]].place);
  for (std::size_t i = first_[cell]; i < first_[cell + 1]; ++i) list_living(items_[i], grammar.width(items_[i].symbol));
  exponent_[cell] = kept->exponent;
  work_ += kept->work;
  kept_edges_ += kept->edges;
  return true;
}

template <class Real>
void RefinedChart<Real>::keep_cell(std::size_t cell, std::uint64_t work, std::size_t edges,
                                   SentenceCells<Real> cells) const {
  auto& made = cells.kept->add(cells.spans[cell]);
  const std::size_t begin = items_[first_[cell]].place;
  const std::size_t end = first_[cell + 1] < items_.size() ? items_[first_[cell + 1]].place : inside_.size();
  made.items = end - begin;
  made.exponent = exponent_[cell];
  made.work = work;
  made.edges = edges;
  cells.kept->values.insert(cells.kept->values.end(), inside_.begin() + static_cast<std::ptrdiff_t>(begin),
                            inside_.begin() + static_cast<std::ptrdiff_t>(end));
}

template <class Real>
double RefinedChart<Real>::log_prob() const {
  const std::size_t top = cell_of(0, words_);
  constexpr double log_2 = 0.693147180559945309417232121458;
  return std::log(static_cast<double>(inside_[items_[first_[top]].place])) + exponent_[top] * log_2;
}

template class RefinedChart<float>;
template class RefinedChart<double>;

}  // namespace treelm
