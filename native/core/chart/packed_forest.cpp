#include "chart/packed_forest.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "base/error.h"

namespace treelm {

namespace {

// Rounds in which chains of unary rules are summed, and the change that ends them.
constexpr int rounds = 10000;
constexpr double smallest_change = 1e-16;

// Edges by the cell of their heads would be enough; by head is as simple.
void sort_by_head(const PackedForest& forest, std::vector<std::uint32_t>& start, std::vector<std::uint32_t>& order) {
  start.assign(forest.symbol.size() + 1, 0);
  for (const std::uint32_t head : forest.head) ++start[head + 1];
  for (std::size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
  order.resize(forest.head.size());
  std::vector<std::uint32_t> next(start.begin(), start.end() - 1);
  for (std::uint32_t e = 0; e < forest.head.size(); ++e) order[next[forest.head[e]]++] = e;
}

// Nodes of one span lie together: calls with the first of them and the first of the next, small spans that
// others need first.
template <class Body>
void for_each_span(const PackedForest& forest, const Body& body) {
  // Within the nodes that end at one word those that begin later come first.
  const std::size_t nodes = forest.symbol.size();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> spans;
  for (std::uint32_t begin = 0, end; begin < nodes; begin = end) {
    end = begin;
    while (end < nodes && forest.last[end] == forest.last[begin] && forest.first[end] == forest.first[begin]) ++end;
    spans.emplace_back(begin, end);
  }
  for (std::size_t i = 0, j; i < spans.size(); i = j) {
    j = i;
    while (j < spans.size() && forest.last[spans[j].first] == forest.last[spans[i].first]) ++j;
    for (std::size_t s = j; s-- > i;) body(spans[s].first, spans[s].second);
  }
}

}  // namespace

void check_packed_forest(const PackedForest& forest, std::uint32_t symbols, std::uint32_t phrasal) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw Error(ErrorCode::argument, std::string("packed forest: ") + what);
  };
  const std::size_t nodes = forest.symbol.size(), edges = forest.head.size();
  require(nodes < none && edges < none, "too many nodes or edges");
  require(forest.first.size() == nodes && forest.last.size() == nodes && forest.expected.size() == nodes,
          "node arrays differ in length");
  require(forest.left.size() == edges && forest.right.size() == edges && forest.weight.size() == edges,
          "edge arrays differ in length");
  const auto key = [&](std::size_t n) { return std::tuple(forest.last[n], forest.first[n], forest.symbol[n]); };
  bool has_root = false;
  for (std::size_t n = 0; n < nodes; ++n) {
    require(forest.first[n] < forest.last[n] && forest.last[n] <= forest.words, "a span is out of range");
    require(forest.symbol[n] < symbols, "a symbol is out of range");
    require(forest.symbol[n] < phrasal || forest.last[n] - forest.first[n] == 1, "a tag spans several words");
    require(n == 0 || key(n - 1) < key(n), "nodes are not in order");
    require(forest.expected[n] > 0 && std::isfinite(forest.expected[n]), "a node has no expected number");
    has_root = has_root || (forest.symbol[n] == 0 && forest.first[n] == 0 && forest.last[n] == forest.words);
  }
  require(has_root, "no node spans all words");
  for (std::size_t e = 0; e < edges; ++e) {
    const std::uint32_t head = forest.head[e], left = forest.left[e], right = forest.right[e];
    require(head < nodes && left < nodes && (right < nodes || right == none), "an edge is out of range");
    require(forest.symbol[head] < phrasal, "a tag has children");
    require(forest.weight[e] > 0 && std::isfinite(forest.weight[e]), "an edge has no weight");
    const std::uint32_t end = right == none ? left : right;
    require(forest.first[left] == forest.first[head] && forest.last[end] == forest.last[head] && left != head &&
                (right == none || forest.last[left] == forest.first[right]),
            "an edge does not join its spans");
  }
}

void pack_forest(const RefinedChart<float>& chart, const ChartGrammar<float>& grammar, double least,
                 PackedForest& out) {
  out = {};
  out.words = static_cast<std::uint32_t>(chart.words());
  const std::size_t words = chart.words(), items = chart.items();
  const auto is_kept = [&](float weight) { return weight > 0 && static_cast<double>(weight) >= least; };
  // What can be made of kept rules, from below; then what a tree needs, from above.
  std::vector<char> made(items, 0), needed(items, 0);
  const auto climb = [&](std::size_t cell) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& rule : chart.unary_rules(cell)) {
        if (made[rule.parent] || !made[rule.child] || !is_kept(rule.expected)) continue;
        made[rule.parent] = 1;
        changed = true;
      }
    }
  };
  for (std::size_t last = 1; last <= words; ++last) {
    for (std::size_t first = last; first-- > 0;) {
      const std::size_t cell = cell_of(first, last);
      for (std::size_t i = chart.first_item(cell); i < chart.first_item(cell + 1); ++i)
        if (chart.item(i).symbol >= grammar.phrasal()) made[i] = chart.expected(grammar, chart.item(i)) > 0;
      for (const auto& rule : chart.rules(cell))
        if (made[rule.left] && made[rule.right] && is_kept(rule.expected)) made[rule.parent] = 1;
      climb(cell);
    }
  }
  const std::size_t top = chart.first_item(cell_of(0, words));
  if (top >= items || chart.item(top).symbol != 0 || !made[top]) return;
  needed[top] = 1;
  for (std::size_t last = words; last > 0; --last) {
    for (std::size_t first = 0; first < last; ++first) {
      const std::size_t cell = cell_of(first, last);
      for (bool changed = true; changed;) {
        changed = false;
        for (const auto& rule : chart.unary_rules(cell)) {
          if (!needed[rule.parent] || needed[rule.child] || !made[rule.child] || !is_kept(rule.expected)) continue;
          needed[rule.child] = 1;
          changed = true;
        }
      }
      for (const auto& rule : chart.rules(cell))
        if (needed[rule.parent] && made[rule.left] && made[rule.right] && is_kept(rule.expected))
          needed[rule.left] = needed[rule.right] = 1;
    }
  }
  std::vector<std::uint32_t> number(items, none);
  for (std::size_t last = 1; last <= words; ++last) {
    for (std::size_t first = 0; first < last; ++first) {
      const std::size_t cell = cell_of(first, last);
      for (std::size_t i = chart.first_item(cell); i < chart.first_item(cell + 1); ++i) {
        const double expected = needed[i] ? chart.expected(grammar, chart.item(i)) : 0;
        if (!(expected > 0)) continue;
        number[i] = static_cast<std::uint32_t>(out.symbol.size());
        out.symbol.push_back(chart.item(i).symbol);
        out.first.push_back(static_cast<std::uint32_t>(first));
        out.last.push_back(static_cast<std::uint32_t>(last));
        out.expected.push_back(expected);
      }
    }
  }
  const auto add = [&](std::uint32_t head, std::uint32_t left, std::uint32_t right, float weight) {
    if (!is_kept(weight) || number[head] == none || number[left] == none) return;
    if (right != none && number[right] == none) return;
    out.head.push_back(number[head]);
    out.left.push_back(number[left]);
    out.right.push_back(right == none ? none : number[right]);
    out.weight.push_back(weight);
  };
  for (std::size_t cell = 0; cell < cells_of(words); ++cell) {
    for (const auto& rule : chart.rules(cell)) add(rule.parent, rule.left, rule.right, rule.expected);
    for (const auto& rule : chart.unary_rules(cell))
      if (rule.parent != rule.child) add(rule.parent, rule.child, none, rule.expected);
  }
}

double forest_log_prob(const PackedForest& forest, const ChartGrammar<double>& grammar, const ChartLexicon& lexicon,
                       std::span<const std::uint32_t> words) {
  if (words.size() != forest.words || words.empty())
    throw Error(ErrorCode::argument, "packed forest: it is of a sentence of another length");
  const std::size_t nodes = forest.symbol.size();
  std::vector<std::uint32_t> place(nodes + 1, 0), start, order;
  for (std::size_t n = 0; n < nodes; ++n) place[n + 1] = place[n] + grammar.width(forest.symbol[n]);
  sort_by_head(forest, start, order);
  // Scores of a span are numbers times a power of two, one for all its nodes.
  std::vector<double> inside(place[nodes], 0), base, before;
  std::vector<int> exponent(nodes, 0);
  TagScores tags;
  const auto rule_of = [&](std::span<const ParentRule> rules, std::uint32_t parent) {
    return std::find_if(rules.begin(), rules.end(), [&](const ParentRule& rule) { return rule.parent == parent; });
  };
  for_each_span(forest, [&](std::uint32_t begin, std::uint32_t end) {
    int reference = std::numeric_limits<int>::min();
    for (std::uint32_t at = start[begin]; at < start[end]; ++at)
      if (const std::uint32_t e = order[at]; forest.right[e] != none)
        reference = std::max(reference, exponent[forest.left[e]] + exponent[forest.right[e]]);
    if (reference == std::numeric_limits<int>::min()) reference = 0;
    if (forest.last[begin] - forest.first[begin] == 1) {
      if (words[forest.first[begin]] >= lexicon.words()) throw Error(ErrorCode::argument, "a word id is not known");
      lexicon.look_up(words[forest.first[begin]], tags);
      for (std::size_t t = 0; t < tags.tag.size(); ++t)
        for (std::uint32_t n = begin; n < end; ++n)
          if (forest.symbol[n] == tags.tag[t])
            std::copy(tags.score.begin() + tags.start[t], tags.score.begin() + tags.start[t + 1],
                      inside.begin() + place[n]);
    }
    for (std::uint32_t at = start[begin]; at < start[end]; ++at) {
      const std::uint32_t e = order[at], left = forest.left[e], right = forest.right[e], head = forest.head[e];
      if (right == none) continue;
      const std::uint32_t pair = grammar.find_pair(forest.symbol[left], forest.symbol[right]);
      if (pair == none) continue;
      const auto rules = grammar.rules_of_pair(pair);
      const auto rule = rule_of(rules, forest.symbol[head]);
      if (rule == rules.end()) continue;
      const double scale = power_of_two<double>(exponent[left] + exponent[right] - reference);
      const std::uint32_t width = grammar.width(forest.symbol[head]);
      const std::uint32_t* starts = grammar.row_starts(*rule);
      const std::uint32_t* right_of = grammar.row_rights(*rule, forest.symbol[left]);
      for (std::uint32_t y = 0; y < grammar.count(forest.symbol[left]); ++y) {
        for (std::uint32_t t = starts[y]; t < starts[y + 1]; ++t) {
          const double below = inside[place[left] + y] * inside[place[right] + right_of[t]] * scale;
          const double* row = grammar.binary_block(*rule) + std::size_t{t} * width;
          for (std::uint32_t x = 0; x < width; ++x) inside[place[head] + x] += below * row[x];
        }
      }
    }
    // Chains of unary rules: x = base + U x, by repetition; chains grow less probable.
    base.assign(inside.begin() + place[begin], inside.begin() + place[end]);
    bool has_unary = false;
    for (int round = 0; round < rounds; ++round) {
      before.assign(inside.begin() + place[begin], inside.begin() + place[end]);
      std::copy(base.begin(), base.end(), inside.begin() + place[begin]);
      for (std::uint32_t at = start[begin]; at < start[end]; ++at) {
        const std::uint32_t e = order[at], child = forest.left[e], head = forest.head[e];
        if (forest.right[e] != none) continue;
        const auto rules = grammar.unary_rules(forest.symbol[child]);
        const auto rule = rule_of(rules, forest.symbol[head]);
        if (rule == rules.end()) continue;
        has_unary = true;
        const std::uint32_t width = grammar.width(forest.symbol[head]);
        for (std::uint32_t y = 0; y < grammar.count(forest.symbol[child]); ++y) {
          const double* row = grammar.unary_block(*rule) + std::size_t{y} * width;
          for (std::uint32_t x = 0; x < width; ++x)
            inside[place[head] + x] += before[place[child] - place[begin] + y] * row[x];
        }
      }
      double change = 0, largest = 0;
      for (std::size_t i = 0; i < before.size(); ++i) {
        change = std::max(change, std::abs(inside[place[begin] + i] - before[i]));
        largest = std::max(largest, before[i]);
      }
      if (!has_unary || change <= smallest_change * largest) break;
    }
    double largest = 0;
    for (std::uint32_t i = place[begin]; i < place[end]; ++i) largest = std::max(largest, inside[i]);
    const int shift = largest > 0 ? -std::ilogb(largest) : 0;
    for (std::uint32_t i = place[begin]; i < place[end]; ++i) inside[i] = std::ldexp(inside[i], shift);
    for (std::uint32_t n = begin; n < end; ++n) exponent[n] = reference - shift;
  });
  for (std::size_t n = 0; n < nodes; ++n) {
    if (forest.symbol[n] != 0 || forest.first[n] != 0 || forest.last[n] != forest.words) continue;
    constexpr double log_2 = 0.693147180559945309417232121458;
    return std::log(inside[place[n]]) + exponent[n] * log_2;
  }
  return -std::numeric_limits<double>::infinity();
}

StoredForest::StoredForest(const PackedForest& forest, std::uint32_t phrasal, std::uint32_t max_unary)
    : forest_(forest), phrasal_(phrasal), root_(none) {
  const std::size_t nodes = forest.symbol.size();
  sort_by_head(forest, start_, order_);
  highest_.resize(nodes);
  base_.resize(nodes);
  for (std::uint32_t n = 0; n < nodes; ++n) {
    if (forest.symbol[n] == 0 && forest.first[n] == 0 && forest.last[n] == forest.words) root_ = n;
    if (is_leaf(n)) base_[n] = normalized(std::min(forest.expected[n], 1.0), 0);
  }
  for_each_span(forest, [&](std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t at = start_[begin]; at < start_[end]; ++at) {
      const std::uint32_t e = order_[at];
      if (forest.right[e] == none) continue;
      const LongScore &left = highest_[forest.left[e]], &right = highest_[forest.right[e]];
      if (left.value == 0 || right.value == 0) continue;
      const double weight = std::min(static_cast<double>(forest.weight[e]), 1.0);
      const LongScore score = normalized(weight * (left.value * right.value), left.exponent + right.exponent);
      if (base_[forest.head[e]] < score) base_[forest.head[e]] = score;
    }
    for (std::uint32_t n = begin; n < end; ++n) highest_[n] = base_[n];
    // Weights are at most 1, so repeated improvement ends.
    for (std::uint32_t round = 0; round <= max_unary; ++round) {
      bool changed = false;
      for (std::uint32_t at = start_[begin]; at < start_[end]; ++at) {
        const std::uint32_t e = order_[at];
        if (forest.right[e] != none || highest_[forest.left[e]].value == 0) continue;
        const LongScore& below = highest_[forest.left[e]];
        const double weight = std::min(static_cast<double>(forest.weight[e]), 1.0);
        const LongScore score = normalized(weight * below.value, below.exponent);
        if (!(highest_[forest.head[e]] < score)) continue;
        highest_[forest.head[e]] = score;
        changed = true;
      }
      if (!changed) break;
    }
  });
}

void StoredForest::list(std::uint32_t slot, bool unary, std::vector<ForestEdge>& out) const {
  for (std::uint32_t at = start_[slot]; at < start_[slot + 1]; ++at) {
    const std::uint32_t e = order_[at];
    if ((forest_.right[e] == none) == unary)
      out.push_back({forest_.left[e], forest_.right[e], std::min(static_cast<double>(forest_.weight[e]), 1.0)});
  }
}

}  // namespace treelm
