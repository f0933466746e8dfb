// The chart of a grammar with subcategories over the items that a coarser chart has left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chart/cky.h"
#include "chart/grammar.h"
#include "chart/lexicon.h"

namespace treelm {

// Which symbols, and which of their subcategories, may stand on which span.
struct Survivors {
  std::vector<std::uint32_t> first;   // per cell, and the number of items
  std::vector<std::uint32_t> symbol;  // per item, ascending within a cell
  std::vector<std::uint32_t> start;   // per item: its first mark, and the number of marks
  std::vector<char> alive;            // per subcategory
  // The pairs of children that are left, by pair then split; per cell its first, and their number, or nothing where no
  // chart has listed pairs, so that all may stand.
  std::vector<ChartEdge> edges;
  std::vector<std::uint32_t> first_edge;

  void clear() {
    first.assign(1, 0);
    start.assign(1, 0);
    symbol.clear();
    alive.clear();
    edges.clear();
    first_edge.clear();
  }
  void end_cell() { first.push_back(static_cast<std::uint32_t>(symbol.size())); }
  void end_item(std::uint32_t item_symbol) {
    symbol.push_back(item_symbol);
    start.push_back(static_cast<std::uint32_t>(alive.size()));
  }
};

// Survivors of a plain chart whose expected number is at least `least`, with the subcategories of the
// next grammar; of a chart without outside scores, give 0.
template <class Real>
void survivors_of(const PlainChart<Real>& chart, const ChartGrammar<Real>& grammar, Real least,
                  const ChartGrammar<Real>& next, Survivors& out);

template <class Real>
class RefinedChart {
 public:
  // Kept cells must come from the same grammar and lexicon, and from charts in which the words of a span alone decide
  // what survives on it; such cells have no edges.
  ChartOutcome inside(const ChartGrammar<Real>& grammar, const std::vector<TagScores>& words,
                      const Survivors& survivors, const ChartLimits& limits, SentenceCells<Real> cells = {});
  double log_prob() const;
  // Fills outside scores; with `keep_rules` also the expected number of every rule at every place.
  void outside(const ChartGrammar<Real>& grammar, bool keep_rules);
  // What is left of it for the next grammar, whose subcategory n was subcategory parent[n] here.
  void prune(const ChartGrammar<Real>& grammar, Real least, const ChartGrammar<Real>& next,
             std::span<const std::uint32_t> parent, Survivors& out) const;

  struct Item {
    std::uint32_t symbol;
    std::uint32_t place;  // of its first subcategory in `inside` and `outside`
    std::uint32_t list;   // of its living subcategories, those with an inside score above zero
    std::uint32_t alive;  // how many they are
  };
  // A binary rule at one place, with its expected number.
  struct RuleHere {
    std::uint32_t parent, left, right;  // items
    Real expected;
  };
  struct UnaryHere {
    std::uint32_t parent, child;  // items
    Real expected;
  };
  std::size_t words() const { return words_; }
  std::size_t items() const { return items_.size(); }
  const Item& item(std::size_t index) const { return items_[index]; }
  std::size_t first_item(std::size_t cell) const { return first_[cell]; }
  std::span<const RuleHere> rules(std::size_t cell) const {
    return std::span(rules_).subspan(rule_first_[cell], rule_last_[cell] - rule_first_[cell]);
  }
  std::span<const UnaryHere> unary_rules(std::size_t cell) const {
    return std::span(unaries_).subspan(unary_first_[cell], unary_last_[cell] - unary_first_[cell]);
  }
  const Real* inside_of(const Item& item) const { return inside_.data() + item.place; }
  const Real* outside_of(const Item& item) const { return outside_.data() + item.place; }
  int exponent(std::size_t cell) const { return exponent_[cell]; }
  // Expected number of an item, all subcategories together.
  double expected(const ChartGrammar<Real>& grammar, const Item& item) const;
  std::uint64_t work() const { return work_; }

  // Those of a cell are ordered by pair.
  using Edge = ChartEdge;
  std::span<const Edge> edges(std::size_t cell) const {
    return std::span(edges_).subspan(edge_first_[cell], edge_last_[cell] - edge_first_[cell]);
  }

 private:
  void reset(const ChartGrammar<Real>& grammar, std::size_t words, const Survivors& survivors);
  bool find_edges(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last);
  bool inherit_edges(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last,
                     const Survivors& survivors);
  bool is_wanted(const ChartGrammar<Real>& grammar, std::uint32_t pair) const {
    for (const ParentRule& rule : grammar.rules_of_pair(pair))
      if (slot_[rule.parent] != 0) return true;
    return false;
  }
  void combine(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last);
  void finish_cell(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last);
  bool take_kept(const ChartGrammar<Real>& grammar, std::size_t cell, SentenceCells<Real> cells);
  void keep_cell(std::size_t cell, std::uint64_t work, std::size_t edges, SentenceCells<Real> cells) const;
  void list_living(Item& item, std::uint32_t width);
  void close_outside(const ChartGrammar<Real>& grammar, std::size_t cell, bool keep_rules);
  void hand_down(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last, bool keep_rules);
  void set_slots(std::size_t cell, bool on);
  std::size_t multiply(const ChartGrammar<Real>& grammar, std::span<const Edge> all, std::size_t begin,
                       std::size_t first, std::size_t last, int reference);
  void pick_rows(const ChartGrammar<Real>& grammar, const ParentRule& rule, std::uint32_t left);
  void keep(std::span<const Edge> edges, std::uint32_t parent);

  std::size_t words_ = 0;
  std::uint64_t work_ = 0, kept_edges_ = 0;
  std::vector<Item> items_;
  std::vector<std::size_t> first_;  // per cell, and the number of items
  std::vector<int> exponent_;
  std::vector<Real> inside_, outside_, allowed_;
  std::vector<std::uint32_t> living_;
  std::vector<Edge> edges_;
  std::vector<std::size_t> edge_first_, edge_last_, rule_first_, rule_last_, unary_first_, unary_last_;
  std::vector<RuleHere> rules_;
  std::vector<UnaryHere> unaries_;
  // Scratch: item of every symbol in the current cell, plus 1; values by place of the grammar.
  std::vector<std::uint32_t> slot_;
  std::vector<Real> below_, above_, here_;
  // Of the edges of one pair: living left subcategories; by left and right subcategory the products of
  // inside scores, and the outside weights that reach them; per edge its power of two.
  std::vector<std::uint32_t> lefts_, mark_;
  std::vector<Real> products_, weights_, scales_;
  std::size_t columns_ = 0;  // of these: places of the right child
  // Rows of a rule with a product: number, product, place of the product, sum with outside scores.
  std::size_t rows_ = 0;
  std::vector<std::uint32_t> index_, picked_;
  std::vector<Real> values_, sums_;
  int reference_ = 0;
};

}  // namespace treelm
