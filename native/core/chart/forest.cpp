#include "chart/forest.h"

#include <algorithm>

namespace treelm {

namespace {

// The cell of every item.
void list_cells(const RefinedChart<float>& chart, std::vector<std::uint32_t>& out) {
  out.resize(chart.items());
  for (std::size_t cell = 0; cell < cells_of(chart.words()); ++cell)
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(chart.first_item(cell)),
              out.begin() + static_cast<std::ptrdiff_t>(chart.first_item(cell + 1)), static_cast<std::uint32_t>(cell));
}

// The item of the whole sentence, or none.
std::uint32_t top_item(const RefinedChart<float>& chart) {
  if (chart.words() == 0) return none;
  const std::size_t top = cell_of(0, chart.words()), item = chart.first_item(top);
  if (item == chart.first_item(top + 1) || chart.item(item).symbol != 0) return none;
  return static_cast<std::uint32_t>(item);
}

}  // namespace

void MaxRuleForest::open(const RefinedChart<float>& chart, const ChartGrammar<float>& grammar,
                         const MaxRuleDecoder<float>& decoder, Objective objective) {
  chart_ = &chart;
  grammar_ = &grammar;
  decoder_ = &decoder;
  objective_ = objective;
  root_ = top_item(chart);
  list_cells(chart, cell_);
  first_.assign(chart.items(), 0);
  last_.assign(chart.items(), 0);
  is_sorted_.assign(cells_of(chart.words()), 0);
  sorted_.clear();
}

// Puts the rules of a cell together by parent, otherwise in their order.
void MaxRuleForest::sort_cell(std::size_t cell) {
  is_sorted_[cell] = 1;
  for (const auto& rule : chart_->rules(cell)) ++last_[rule.parent];
  auto next = static_cast<std::uint32_t>(sorted_.size());
  for (std::size_t i = chart_->first_item(cell); i < chart_->first_item(cell + 1); ++i) {
    const std::uint32_t count = last_[i];
    first_[i] = last_[i] = next;
    next += count;
  }
  sorted_.resize(next);
  for (const auto& rule : chart_->rules(cell))
    sorted_[last_[rule.parent]++] = {rule.left, rule.right, weight(rule.parent, rule.expected)};
}

void MaxRuleForest::list_binary(std::uint32_t slot, std::vector<ForestEdge>& out) {
  if (!is_sorted_[cell_[slot]]) sort_cell(cell_[slot]);
  out.insert(out.end(), sorted_.begin() + first_[slot], sorted_.begin() + last_[slot]);
}

void MaxRuleForest::list_unary(std::uint32_t slot, std::vector<ForestEdge>& out) {
  for (const auto& rule : chart_->unary_rules(cell_[slot]))
    if (rule.parent == slot) out.push_back({rule.child, none, weight(rule.parent, rule.expected)});
}

void ViterbiForest::open(const RefinedChart<float>& chart, const ChartGrammar<float>& grammar,
                         const ViterbiDecoder<float>& decoder) {
  chart_ = &chart;
  grammar_ = &grammar;
  decoder_ = &decoder;
  list_cells(chart, cell_);
  item_.clear();
  for (std::size_t i = 0; i < chart.items(); ++i)
    item_.resize(chart.item(i).place + grammar.width(chart.item(i).symbol), static_cast<std::uint32_t>(i));
  const std::uint32_t top = top_item(chart);
  root_ = top == none ? none : chart.item(top).place;
}

void ViterbiForest::list_binary(std::uint32_t slot, std::vector<ForestEdge>& out) {
  const std::uint32_t parent = symbol(slot), x = slot - chart_->item(item_[slot]).place;
  for (const auto& edge : chart_->edges(cell_[item_[slot]])) {
    const auto rules = grammar_->rules_of_pair(edge.pair);
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const ParentRule& r) { return r.parent == parent; });
    if (rule == rules.end()) continue;
    const auto &left = chart_->item(edge.left), &right = chart_->item(edge.right);
    const std::uint32_t width = grammar_->width(parent);
    const float* block = grammar_->binary_block(*rule);
    const std::uint32_t *starts = grammar_->row_starts(*rule), *right_of = grammar_->row_rights(*rule, left.symbol);
    for (std::uint32_t y = 0; y < grammar_->count(left.symbol); ++y) {
      if (!(chart_->inside_of(left)[y] > 0)) continue;
      for (std::uint32_t t = starts[y]; t < starts[y + 1]; ++t) {
        const float weight = block[std::size_t{t} * width + x];
        if (weight > 0 && chart_->inside_of(right)[right_of[t]] > 0)
          out.push_back({left.place + y, right.place + right_of[t], static_cast<double>(weight)});
      }
    }
  }
}

void ViterbiForest::list_unary(std::uint32_t slot, std::vector<ForestEdge>& out) {
  const std::uint32_t parent = symbol(slot), x = slot - chart_->item(item_[slot]).place;
  const std::size_t cell = cell_[item_[slot]];
  for (std::size_t i = chart_->first_item(cell); i < chart_->first_item(cell + 1); ++i) {
    const auto& child = chart_->item(i);
    for (const ParentRule& rule : grammar_->unary_rules(child.symbol)) {
      if (rule.parent != parent) continue;
      const float* block = grammar_->unary_block(rule);
      for (std::uint32_t y = 0; y < grammar_->count(child.symbol); ++y) {
        const float weight = block[std::size_t{y} * grammar_->width(parent) + x];
        if (weight > 0 && chart_->inside_of(child)[y] > 0)
          out.push_back({child.place + y, none, static_cast<double>(weight)});
      }
    }
  }
}

}  // namespace treelm
