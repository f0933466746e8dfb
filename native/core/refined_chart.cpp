#include "refined_chart.h"

#include <algorithm>
#include <cmath>

#include "chart_loops.h"
#include "symbols.h"

namespace treelm {

template <class Real, class Next>
void survivors_of(const PlainChart<Real>& chart, Real least, const ChartGrammar<Next>& next, Survivors& out) {
  out.clear();
  for (std::size_t cell = 0; cell < cells_of(chart.words()); ++cell) {
    for (const auto& item : chart.items(cell)) {
      if (least > 0 && !(item.inside * item.outside >= least)) continue;
      out.alive.insert(out.alive.end(), next.count(item.symbol), 1);
      out.end_item(item.symbol);
    }
    out.end_cell();
  }
}
template void survivors_of(const PlainChart<float>&, float, const ChartGrammar<float>&, Survivors&);
template void survivors_of(const PlainChart<double>&, double, const ChartGrammar<double>&, Survivors&);

template <class Real>
void RefinedChart<Real>::reset(const ChartGrammar<Real>& grammar, std::size_t words, const Survivors& survivors) {
  words_ = words;
  work_ = 0;
  const std::size_t cells = cells_of(words);
  items_.clear();
  living_.clear();
  old_edges_.swap(edges_);
  old_first_.swap(edge_first_);
  old_last_.swap(edge_last_);
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
                                        const Survivors& survivors, const ChartLimits& limits) {
  reset(grammar, words.size(), survivors);
  for (std::size_t last = 1; last <= words_; ++last) {
    for (std::size_t first = last; first-- > 0;) {
      const std::size_t cell = cell_of(first, last);
      if (first_[cell] == first_[cell + 1]) continue;
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
      } else if (survivors.heir.empty() ? find_edges(grammar, first, last)
                                        : inherit_edges(grammar, first, last, survivors.heir)) {
        combine(grammar, first, last);
        finish_cell(grammar, first, last);
      }
      set_slots(cell, false);
      if (work_ > limits.work || edges_.size() > limits.items) return ChartOutcome::too_much_work;
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
  std::sort(edges_.begin() + static_cast<std::ptrdiff_t>(begin), edges_.end(),
            [](const Edge& a, const Edge& b) { return a.pair != b.pair ? a.pair < b.pair : a.split < b.split; });
  edge_first_[cell] = begin;
  edge_last_[cell] = edges_.size();
  return any;
}

// The same from the edges of the coarser chart before, whose grammar has the same pairs.
template <class Real>
bool RefinedChart<Real>::inherit_edges(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last,
                                       const std::vector<std::uint32_t>& heir) {
  const std::size_t cell = cell_of(first, last);
  edge_first_[cell] = edges_.size();
  bool any = false;
  for (std::size_t e = old_first_[cell]; e < old_last_[cell]; ++e) {
    const Edge& old = old_edges_[e];
    const std::uint32_t left = heir[old.left], right = heir[old.right];
    if (left == none || right == none || !items_[left].alive || !items_[right].alive) continue;
    if (!is_wanted(grammar, old.pair)) continue;
    edges_.push_back({old.pair, left, right, old.split});
    const int exponent = exponent_[cell_of(first, old.split)] + exponent_[cell_of(old.split, last)];
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

// Applies unary chains to `below_` and stores the inside scores of the cell's items.
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
    item.list = static_cast<std::uint32_t>(living_.size());
    for (std::uint32_t x = 0; x < width; ++x) {
      Real value = above[x] * allowed_[item.place + x] * half * rest;
      if (!(value >= std::numeric_limits<Real>::min())) value = 0;
      inside_[item.place + x] = value;
      if (value > 0) {
        living_.push_back(x);
        ++item.alive;
      }
      above[x] = below[x] = 0;
    }
  }
}

template <class Real>
double RefinedChart<Real>::log_prob() const {
  const std::size_t top = cell_of(0, words_);
  constexpr double log_2 = 0.693147180559945309417232121458;
  return std::log(static_cast<double>(inside_[items_[first_[top]].place])) + exponent_[top] * log_2;
}

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
  if (grammar.has_pairs_of(next)) out.heir.assign(items_.size(), none);
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
        if (!out.heir.empty()) out.heir[i] = static_cast<std::uint32_t>(out.symbol.size());
        out.end_item(item.symbol);
      } else {
        out.alive.resize(before);
      }
    }
    out.end_cell();
  }
}

template class RefinedChart<float>;
template class RefinedChart<double>;

}  // namespace treelm
