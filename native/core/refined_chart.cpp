#include "refined_chart.h"

#include <algorithm>
#include <cmath>

#include "chart_loops.h"
#include "symbols.h"

namespace treelm {

namespace {

// Sum over y and z of left[y] * matrix[y][z] * right[z].
template <class Real>
Real bilinear(const Real* matrix, const Real* left, std::size_t rows, const Real* right, std::size_t columns) {
  Real total = 0;
  for (std::size_t y = 0; y < rows; ++y) {
    Real sum = 0;
    for (std::size_t z = 0; z < columns; ++z) sum += matrix[y * columns + z] * right[z];
    total += left[y] * sum;
  }
  return total;
}

}  // namespace

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

// Prepares the edges of one pair that begin at `begin`: the subcategories that live in any of them, the
// places of all combinations in a block, and the inside scores of each edge, the left ones scaled. Gives
// the end of the edges.
template <class Real>
std::size_t RefinedChart<Real>::gather(const ChartGrammar<Real>& grammar, std::span<const Edge> all, std::size_t begin,
                                       std::size_t first, std::size_t last, int reference) {
  const std::uint32_t pair = all[begin].pair;
  std::size_t end = begin;
  while (end < all.size() && all[end].pair == pair) ++end;
  const auto unite = [&](std::uint32_t symbol, std::uint32_t Edge::* side, std::vector<std::uint32_t>& out) {
    out.clear();
    if (end - begin == 1) {
      const Item& item = items_[all[begin].*side];
      out.assign(living_.begin() + item.list, living_.begin() + item.list + item.alive);
      return;
    }
    mark_.assign(grammar.count(symbol), 0);
    for (std::size_t e = begin; e < end; ++e) {
      const Item& item = items_[all[e].*side];
      for (std::uint32_t t = 0; t < item.alive; ++t) mark_[living_[item.list + t]] = 1;
    }
    for (std::uint32_t x = 0; x < mark_.size(); ++x)
      if (mark_[x]) out.push_back(x);
  };
  unite(grammar.pair_left(pair), &Edge::left, lefts_);
  unite(grammar.pair_right(pair), &Edge::right, rights_);
  const std::uint32_t columns = grammar.count(grammar.pair_right(pair));
  index_.resize(lefts_.size() * rights_.size());
  std::uint32_t* index = index_.data();
  for (const std::uint32_t y : lefts_)
    for (const std::uint32_t z : rights_) *index++ = y * columns + z;
  left_values_.resize((end - begin) * lefts_.size());
  right_values_.resize((end - begin) * rights_.size());
  scales_.resize(end - begin);
  Real *left_value = left_values_.data(), *right_value = right_values_.data();
  for (std::size_t e = begin; e < end; ++e) {
    const Edge& edge = all[e];
    const Real scale =
        power_of_two<Real>(exponent_[cell_of(first, edge.split)] + exponent_[cell_of(edge.split, last)] - reference);
    scales_[e - begin] = scale;
    const Real* left = inside_.data() + items_[edge.left].place;
    const Real* right = inside_.data() + items_[edge.right].place;
    for (const std::uint32_t y : lefts_) *left_value++ = left[y] * scale;
    for (const std::uint32_t z : rights_) *right_value++ = right[z];
  }
  return end;
}

// Sums over all splits: the products of a pair of children first, then every rule of the pair once.
template <class Real>
void RefinedChart<Real>::combine(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last) {
  const std::span<const Edge> all = edges(cell_of(first, last));
  for (std::size_t begin = 0, end; begin < all.size(); begin = end) {
    const std::uint32_t pair = all[begin].pair;
    end = gather(grammar, all, begin, first, last, reference_);
    values_.resize(index_.size());
    const std::size_t rows = lefts_.size(), columns = rights_.size();
    for (std::size_t e = 0; e < end - begin; ++e) {
      const Real* right = right_values_.data() + e * columns;
      for (std::size_t y = 0; y < rows; ++y) {
        const Real factor = left_values_[e * rows + y];
        Real* row = values_.data() + y * columns;
        if (e == 0) {
          for (std::size_t z = 0; z < columns; ++z) row[z] = factor * right[z];
        } else {
          for (std::size_t z = 0; z < columns; ++z) row[z] += factor * right[z];
        }
      }
    }
    for (const ParentRule& rule : grammar.rules_of_pair(pair)) {
      if (slot_[rule.parent] == 0) continue;
      const std::uint32_t width = grammar.width(rule.parent);
      add_rows(below_.data() + grammar.place(rule.parent), grammar.binary_block(rule), index_.data(), values_.data(),
               index_.size(), width);
      work_ += index_.size() * width;
    }
    work_ += index_.size() * (end - begin);
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
    index_.clear();
    values_.clear();
    for (std::uint32_t x = 0; x < count; ++x) {
      below[x] *= allowed_[item.place + x];
      if (below[x] == 0) continue;
      above[x] += below[x];
      index_.push_back(x);
      values_.push_back(below[x]);
    }
    if (index_.empty()) continue;
    for (const ParentRule& chain : grammar.chains(item.symbol)) {
      if (slot_[chain.parent] == 0) continue;
      add_rows(above_.data() + grammar.place(chain.parent), grammar.chain_block(chain), index_.data(), values_.data(),
               index_.size(), grammar.width(chain.parent));
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
    const std::uint32_t pair = all[begin].pair;
    end = gather(grammar, all, begin, first, last, exponent_[cell]);
    const std::size_t rows = lefts_.size(), columns = rights_.size();
    values_.resize(index_.size());
    sums_.resize(index_.size());
    bool any = false;
    for (const ParentRule& rule : grammar.rules_of_pair(pair)) {
      if (slot_[rule.parent] == 0) continue;
      const Item& parent = items_[slot_[rule.parent] - 1];
      const Real* above = outside_.data() + parent.place;
      const std::uint32_t width = grammar.width(rule.parent);
      if (std::all_of(above, above + width, [](Real value) { return value == 0; })) continue;
      dot_rows(sums_.data(), grammar.binary_block(rule), index_.data(), index_.size(), above, width);
      if (any) {
        for (std::size_t t = 0; t < index_.size(); ++t) values_[t] += sums_[t];
      } else {
        std::copy(sums_.begin(), sums_.end(), values_.begin());
      }
      any = true;
      for (std::size_t e = begin; keep_rules && e < end; ++e) {
        const Real sum = bilinear(sums_.data(), left_values_.data() + (e - begin) * rows, rows,
                                  right_values_.data() + (e - begin) * columns, columns);
        if (sum > 0) rules_.push_back({slot_[rule.parent] - 1, all[e].left, all[e].right, sum});
      }
    }
    if (!any) continue;
    for (std::size_t e = begin; e < end; ++e) {
      Real* left_outside = outside_.data() + items_[all[e].left].place;
      Real* right_outside = outside_.data() + items_[all[e].right].place;
      const Real* right = right_values_.data() + (e - begin) * columns;
      here_.resize(columns);
      for (std::size_t y = 0; y < rows; ++y) {
        const Real* row = values_.data() + y * columns;
        const Real factor = left_values_[(e - begin) * rows + y];
        Real sum = 0;
        for (std::size_t z = 0; z < columns; ++z) {
          sum += row[z] * right[z];
          here_[z] = (y == 0 ? Real{0} : here_[z]) + factor * row[z];
        }
        left_outside[lefts_[y]] += scales_[e - begin] * sum;
      }
      for (std::size_t z = 0; z < columns; ++z) right_outside[rights_[z]] += here_[z];
    }
  }
  rule_last_[cell] = rules_.size();
}

template <class Real>
void RefinedChart<Real>::prune(const ChartGrammar<Real>& grammar, Real least, const ChartGrammar<Real>& next,
                               std::span<const std::uint32_t> parent, Survivors& out) const {
  out.clear();
  if (grammar.pairs() == next.pairs()) out.heir.assign(items_.size(), none);
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
