#include "chart/sentence_grammar.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/symbols.h"

namespace treelm {

namespace {

// Places of rules by one of their symbols, and where those of each symbol begin.
template <class Symbol>
void list_by(std::size_t symbols, std::size_t rules, Symbol symbol_of, std::vector<std::uint32_t>& first,
             std::vector<std::uint32_t>& places) {
  first.assign(symbols + 1, 0);
  for (std::uint32_t rule = 0; rule < rules; ++rule) ++first[symbol_of(rule) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  places.resize(rules);
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t rule = 0; rule < rules; ++rule) places[next[symbol_of(rule)]++] = rule;
}

}  // namespace

RuleLists::RuleLists(const WeightedGrammar& grammar) {
  const std::size_t count = grammar.weights.size();
  rules_.reserve(count);
  for (std::uint32_t rule = 0; rule < count; ++rule) {
    const auto symbol = [&](std::size_t k) { return static_cast<std::uint32_t>(grammar.rules[3 * rule + k]); };
    rules_.push_back({symbol(0), symbol(1), symbol(2), rule, grammar.weights[rule]});
  }
  std::ranges::sort(rules_, {}, [](const Rule& rule) { return std::tuple(rule.left, rule.right, rule.id); });
  std::vector<std::uint32_t> in_order;
  list_by(grammar.symbols, count, [&](std::uint32_t r) { return rules_[r].left; }, first_left_, in_order);
  list_by(grammar.symbols, count, [&](std::uint32_t r) { return rules_[r].right; }, first_right_, by_right_);
  list_by(grammar.symbols, count, [&](std::uint32_t r) { return rules_[r].parent; }, first_parent_, by_parent_);
}

void SentenceGrammar::mark_made(const RuleLists& lists, std::span<const std::int32_t> tags) {
  const auto mark = [&](std::uint32_t symbol) {
    if (marks_[symbol] != Mark::no) return;
    marks_[symbol] = Mark::made;
    made_.push_back(symbol);
  };
  for (const std::int32_t tag : tags) mark(static_cast<std::uint32_t>(tag));
  for (std::size_t at = 0; at < made_.size(); ++at) {
    const std::uint32_t symbol = made_[at];
    for (const RuleLists::Rule& rule : lists.with_left(symbol))
      if (marks_[rule.right] != Mark::no) mark(rule.parent);
    for (const std::uint32_t place : lists.with_right(symbol))
      if (marks_[lists.at(place).left] != Mark::no) mark(lists.at(place).parent);
  }
}

void SentenceGrammar::mark_reached(const RuleLists& lists, std::span<const double> root_weights) {
  const auto mark = [&](std::uint32_t symbol) {
    if (marks_[symbol] != Mark::made) return;
    marks_[symbol] = Mark::reached;
    todo_.push_back(symbol);
  };
  for (const std::uint32_t symbol : made_)
    if (root_weights[symbol] != impossible_weight) mark(symbol);
  while (!todo_.empty()) {
    const std::uint32_t symbol = todo_.back();
    todo_.pop_back();
    for (const std::uint32_t place : lists.with_parent(symbol)) {
      const RuleLists::Rule& rule = lists.at(place);
      if (marks_[rule.left] == Mark::no || marks_[rule.right] == Mark::no) continue;
      mark(rule.left);
      mark(rule.right);
    }
  }
}

void SentenceGrammar::list_rules(const RuleLists& lists) {
  blocks_ = (symbols_.size() + 63) / 64;
  partners_.clear();
  first_partners_.assign(1, 0);
  pairs_.clear();
  rules_.clear();
  for (const std::uint32_t symbol : symbols_) {
    std::uint32_t last = none;
    for (const RuleLists::Rule& rule : lists.with_left(symbol)) {
      const std::uint32_t right = numbers_[rule.right], parent = numbers_[rule.parent];
      if (right == none || parent == none) continue;
      if (right != last) {
        const auto pair = static_cast<std::uint32_t>(pairs_.size());
        if (partners_.size() == first_partners_.back() || partners_.back().block != right / 64)
          partners_.push_back({0, right / 64, pair});
        partners_.back().bits |= std::uint64_t{1} << (right % 64);
        pairs_.push_back(static_cast<std::uint32_t>(rules_.size()));
        last = right;
      }
      rules_.push_back({parent, rule.id, rule.weight});
    }
    first_partners_.push_back(static_cast<std::uint32_t>(partners_.size()));
  }
  pairs_.push_back(static_cast<std::uint32_t>(rules_.size()));
}

bool SentenceGrammar::choose(const RuleLists& lists, std::span<const double> root_weights,
                             std::span<const std::int32_t> tags) {
  if (marks_.size() != lists.symbols()) {
    marks_.assign(lists.symbols(), Mark::no);
    numbers_.assign(lists.symbols(), none);
  }
  for (const std::uint32_t symbol : made_) {
    marks_[symbol] = Mark::no;
    numbers_[symbol] = none;
  }
  made_.clear();
  mark_made(lists, tags);
  mark_reached(lists, root_weights);
  symbols_.clear();
  for (const std::uint32_t symbol : made_)
    if (marks_[symbol] == Mark::reached) symbols_.push_back(symbol);
  std::ranges::sort(symbols_);
  for (std::uint32_t number = 0; number < symbols_.size(); ++number) numbers_[symbols_[number]] = number;
  if (symbols_.empty()) return false;
  list_rules(lists);
  return true;
}

}  // namespace treelm
