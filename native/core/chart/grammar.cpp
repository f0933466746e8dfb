#include "chart/grammar.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/symbols.h"

namespace treelm {

namespace {

// Up to so many symbols, pairs of children are looked up in a square table.
constexpr std::size_t table_symbols = 1024;

void check_rules(const GrammarArrays& arrays, std::span<const std::int32_t> rules, std::span<const double> weights,
                 std::size_t width) {
  const auto fail = [](const char* what) { throw Error(ErrorCode::argument, std::string("a grammar ") + what); };
  if (rules.size() % width != 0) fail("has rules of the wrong width");
  const auto symbols = static_cast<std::int64_t>(arrays.substates.size());
  std::size_t total = 0;
  for (std::size_t i = 0; i < rules.size(); i += width) {
    std::size_t block = 1;
    for (std::size_t k = 0; k < width; ++k) {
      const std::int32_t symbol = rules[i + k];
      if (symbol < 0 || symbol >= symbols) fail("names a symbol that is out of range");
      if (k > 0 && symbol == 0) fail("has its root on the right side of a rule");
      block *= static_cast<std::size_t>(arrays.substates[static_cast<std::size_t>(symbol)]);
    }
    if (static_cast<std::uint32_t>(rules[i]) >= arrays.phrasal) fail("has a rule whose left side is a tag");
    if (i >= width && !std::lexicographical_compare(rules.begin() + static_cast<std::ptrdiff_t>(i - width),
                                                    rules.begin() + static_cast<std::ptrdiff_t>(i),
                                                    rules.begin() + static_cast<std::ptrdiff_t>(i),
                                                    rules.begin() + static_cast<std::ptrdiff_t>(i + width)))
      fail("has rules that are not in ascending order");
    total += block;
    if (total > weights.size()) break;
  }
  if (total != weights.size()) fail("does not have the number of weights that its rules need");
  for (const double weight : weights)
    if (!(weight >= 0) || !std::isfinite(weight)) fail("has a weight that is negative, NaN or infinite");
}

std::vector<std::uint32_t> starts_of(const std::vector<std::uint32_t>& sorted, std::size_t groups) {
  std::vector<std::uint32_t> first(groups + 1);
  for (const std::uint32_t group : sorted) ++first[group + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  return first;
}

}  // namespace

void check_grammar(const GrammarArrays& arrays) {
  if (arrays.substates.empty() || arrays.substates.size() > (1u << 20) || arrays.phrasal < 1 ||
      arrays.phrasal > arrays.substates.size())
    throw Error(ErrorCode::argument, "a grammar has no symbols, or more phrases than symbols");
  for (const std::int32_t count : arrays.substates)
    if (count < 1 || count > 4096) throw Error(ErrorCode::argument, "a symbol has no subcategories, or too many");
  if (arrays.substates[0] != 1) throw Error(ErrorCode::argument, "the root has more than one subcategory");
  check_rules(arrays, arrays.unary_rules, arrays.unary_weights, 2);
  check_rules(arrays, arrays.binary_rules, arrays.binary_weights, 3);
}

template <class Real>
ChartGrammar<Real>::ChartGrammar(const GrammarArrays& arrays) : phrasal_(arrays.phrasal) {
  check_grammar(arrays);
  place_.push_back(0);
  number_.push_back(0);
  for (const std::int32_t count : arrays.substates) {
    count_.push_back(static_cast<std::uint32_t>(count));
    place_.push_back(place_.back() + padded(count_.back()));
    number_.push_back(number_.back() + count_.back());
  }
  group_binary(arrays);
  group_unary(arrays);
  if (!is_plain()) return;
  count_symbols(arrays);
  std::vector<typename PairBlocks<Real>::Rule> rules;
  for (std::uint32_t pair = 0; pair < pairs(); ++pair)
    for (const ParentRule& rule : rules_of_pair(pair)) rules.push_back({pair, rule.parent, *binary_block(rule)});
  pair_blocks_ = PairBlocks<Real>(symbols(), pair_left_, pair_right_, rules);
}

// Expected numbers in a tree, by going down from the root again and again; a grammar whose trees grow
// for ever has none, and all symbols count alike.
template <class Real>
void ChartGrammar<Real>::count_symbols(const GrammarArrays& arrays) {
  constexpr int rounds = 50;
  constexpr double most = 1e12;
  std::vector<double> counts(symbols(), 0.0), found;
  counts[0] = 1;
  for (int round = 0; round < rounds; ++round) {
    found.assign(symbols(), 0.0);
    found[0] = 1;
    const auto add = [&](std::span<const std::int32_t> rules, std::span<const double> weights, std::size_t width) {
      for (std::size_t rule = 0; rule < weights.size(); ++rule)
        for (std::size_t k = 1; k < width; ++k)
          found[static_cast<std::size_t>(rules[rule * width + k])] +=
              weights[rule] * counts[static_cast<std::size_t>(rules[rule * width])];
    };
    add(arrays.unary_rules, arrays.unary_weights, 2);
    add(arrays.binary_rules, arrays.binary_weights, 3);
    counts.swap(found);
  }
  const bool exist = std::all_of(counts.begin(), counts.end(), [](double count) { return count < most; });
  for (const double count : counts)
    frequency_.push_back(exist ? std::max(static_cast<Real>(count), std::numeric_limits<Real>::min()) : Real{1});
}

template <class Real>
void ChartGrammar<Real>::group_binary(const GrammarArrays& arrays) {
  struct Rule {
    std::uint32_t parent, left, right, number;
    std::size_t source;
  };
  std::vector<Rule> rules;
  std::size_t source = 0;
  for (std::size_t i = 0; i < arrays.binary_rules.size(); i += 3) {
    const auto symbol = [&](std::size_t k) { return static_cast<std::uint32_t>(arrays.binary_rules[i + k]); };
    rules.push_back({symbol(0), symbol(1), symbol(2), static_cast<std::uint32_t>(i / 3), source});
    source += std::size_t{count_[symbol(0)]} * count_[symbol(1)] * count_[symbol(2)];
  }
  std::stable_sort(rules.begin(), rules.end(),
                   [](const Rule& a, const Rule& b) { return a.left != b.left ? a.left < b.left : a.right < b.right; });
  std::vector<std::uint32_t> rule_pair;
  for (const Rule& rule : rules) {
    const std::size_t inner = std::size_t{count_[rule.left]} * count_[rule.right];
    const auto weights = arrays.binary_weights.subspan(rule.source, count_[rule.parent] * inner);
    if (std::all_of(weights.begin(), weights.end(), [](double weight) { return static_cast<Real>(weight) == 0; }))
      continue;
    if (pair_left_.empty() || pair_left_.back() != rule.left || pair_right_.back() != rule.right) {
      pair_left_.push_back(rule.left);
      pair_right_.push_back(rule.right);
    }
    rule_pair.push_back(pairs() - 1);
    pair_rules_.push_back({rule.parent, rule.number, binary_.size(), row_starts_.size()});
    add_rows(count_[rule.parent], count_[rule.left], count_[rule.right], weights);
  }
  left_first_ = starts_of(pair_left_, symbols());
  pair_first_ = starts_of(rule_pair, pairs());
  if (symbols() <= table_symbols) {
    pair_table_.assign(std::size_t{symbols()} * symbols(), none);
    for (std::uint32_t pair = 0; pair < pairs(); ++pair)
      pair_table_[std::size_t{pair_left_[pair]} * symbols() + pair_right_[pair]] = pair;
  }
  parent_first_.assign(symbols() + 1, 0);
  if (!is_plain()) return;
  std::vector<std::uint32_t> order(pair_rules_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return pair_rules_[a].parent < pair_rules_[b].parent; });
  std::vector<std::uint32_t> parents;
  for (const std::uint32_t rule : order) {
    parents.push_back(pair_rules_[rule].parent);
    parent_pairs_.push_back({rule_pair[rule], binary_[pair_rules_[rule].block]});
  }
  parent_first_ = starts_of(parents, symbols());
}

// Appends the rows of a block that are not zero, and where they are.
template <class Real>
void ChartGrammar<Real>::add_rows(std::size_t parents, std::size_t lefts, std::size_t rights,
                                  std::span<const double> weights) {
  const std::size_t width = padded(static_cast<std::uint32_t>(parents)), starts = row_starts_.size();
  row_starts_.resize(starts + lefts + 1);
  std::uint32_t rows = 0;
  for (std::size_t y = 0; y < lefts; ++y) {
    row_starts_[starts + y] = rows;
    for (std::size_t z = 0; z < rights; ++z) {
      const double* first = weights.data() + y * rights + z;
      bool any = false;
      for (std::size_t x = 0; x < parents; ++x) any = any || static_cast<Real>(first[x * lefts * rights]) > 0;
      if (!any) continue;
      const std::size_t row = binary_.size();
      binary_.resize(row + width);
      for (std::size_t x = 0; x < parents; ++x) binary_[row + x] = static_cast<Real>(first[x * lefts * rights]);
      row_starts_.push_back(static_cast<std::uint32_t>(z));
      ++rows;
    }
  }
  row_starts_[starts + lefts] = rows;
}

template <class Real>
std::uint32_t ChartGrammar<Real>::search_pair(std::uint32_t left, std::uint32_t right) const {
  const auto first = pair_right_.begin() + left_first_[left], last = pair_right_.begin() + left_first_[left + 1];
  const auto found = std::lower_bound(first, last, right);
  return found != last && *found == right ? static_cast<std::uint32_t>(found - pair_right_.begin()) : none;
}

template <class Real>
void ChartGrammar<Real>::group_unary(const GrammarArrays& arrays) {
  struct Rule {
    std::uint32_t parent, child, number;
    std::span<const double> weights;
  };
  const auto lay_out = [&](std::vector<Rule> rules, std::vector<ParentRule>& out, std::vector<std::uint32_t>& first,
                           std::vector<Real>& blocks) {
    std::stable_sort(rules.begin(), rules.end(), [](const Rule& a, const Rule& b) { return a.child < b.child; });
    std::vector<std::uint32_t> children;
    for (const Rule& rule : rules) {
      children.push_back(rule.child);
      out.push_back({rule.parent, rule.number, blocks.size(), 0});
      const std::size_t width = padded(count_[rule.parent]), inner = count_[rule.child];
      blocks.resize(blocks.size() + inner * width);
      Real* block = blocks.data() + out.back().block;
      for (std::size_t x = 0; x < count_[rule.parent]; ++x)
        for (std::size_t y = 0; y < inner; ++y) block[y * width + x] = static_cast<Real>(rule.weights[x * inner + y]);
    }
    first = starts_of(children, symbols());
  };
  std::vector<Rule> rules;
  std::size_t source = 0;
  for (std::size_t i = 0; i < arrays.unary_rules.size(); i += 2) {
    const auto parent = static_cast<std::uint32_t>(arrays.unary_rules[i]);
    const auto child = static_cast<std::uint32_t>(arrays.unary_rules[i + 1]);
    const std::size_t size = std::size_t{count_[parent]} * count_[child];
    rules.push_back({parent, child, static_cast<std::uint32_t>(i / 2), arrays.unary_weights.subspan(source, size)});
    source += size;
  }
  lay_out(std::move(rules), unary_rules_, unary_first_, unary_);
  const std::vector<Chain> chains = unary_closure(arrays);
  std::vector<Rule> closed;
  for (const Chain& chain : chains) closed.push_back({chain.parent, chain.child, none, chain.weights});
  lay_out(std::move(closed), chains_, chain_first_, chain_weights_);
}

template class ChartGrammar<float>;
template class ChartGrammar<double>;

}  // namespace treelm
