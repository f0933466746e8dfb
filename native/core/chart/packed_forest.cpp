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
    require(forest.expected[n] > 0 && std::isfinite(forest.expected[n]),
            "the expected number of a node is not a positive number");
    has_root = has_root || (forest.symbol[n] == 0 && forest.first[n] == 0 && forest.last[n] == forest.words);
  }
  require(has_root, "no node spans all words");
  for (std::size_t e = 0; e < edges; ++e) {
    const std::uint32_t head = forest.head[e], left = forest.left[e], right = forest.right[e];
    require(head < nodes && left < nodes && (right < nodes || right == none), "an edge is out of range");
    require(forest.symbol[head] < phrasal, "a tag has children");
    require(forest.weight[e] > 0 && std::isfinite(forest.weight[e]), "the weight of an edge is not a positive number");
    const std::uint32_t end = right == none ? left : right;
    require(forest.first[left] == forest.first[head] && forest.last[end] == forest.last[head] && left != head &&
                (right == none || forest.last[left] == forest.first[right]),
            "an edge does not join its spans");
  }
}

namespace {

// Takes out of a chart what is part of some tree of kept rules.
class ForestPacker {
 public:
  ForestPacker(const RefinedChart<float>& chart, const ChartGrammar<float>& grammar, double least)
      : chart_(chart), grammar_(grammar), least_(least), made_(chart.items(), 0), needed_(chart.items(), 0) {}

  void pack(PackedForest& out) {
    out = {};
    out.words = static_cast<std::uint32_t>(chart_.words());
    find_made();
    const std::size_t top = chart_.first_item(cell_of(0, chart_.words()));
    if (top >= chart_.items() || chart_.item(top).symbol != 0 || !made_[top]) return;
    needed_[top] = 1;
    find_needed();
    add_nodes(out);
    add_edges(out);
  }

 private:
  bool is_kept(float weight) const { return weight > 0 && static_cast<double>(weight) >= least_; }

  // What can be made of kept rules, from below.
  void find_made() {
    for (std::size_t last = 1; last <= chart_.words(); ++last) {
      for (std::size_t first = last; first-- > 0;) {
        const std::size_t cell = cell_of(first, last);
        for (std::size_t i = chart_.first_item(cell); i < chart_.first_item(cell + 1); ++i)
          if (chart_.item(i).symbol >= grammar_.phrasal()) made_[i] = chart_.expected(grammar_, chart_.item(i)) > 0;
        for (const auto& rule : chart_.rules(cell))
          if (made_[rule.left] && made_[rule.right] && is_kept(rule.expected)) made_[rule.parent] = 1;
        follow_unary_rules(cell, [this](const auto& rule) {
          if (made_[rule.parent] || !made_[rule.child]) return false;
          made_[rule.parent] = 1;
          return true;
        });
      }
    }
  }

  // What a tree needs of it, from above.
  void find_needed() {
    for (std::size_t last = chart_.words(); last > 0; --last) {
      for (std::size_t first = 0; first < last; ++first) {
        const std::size_t cell = cell_of(first, last);
        follow_unary_rules(cell, [this](const auto& rule) {
          if (!needed_[rule.parent] || needed_[rule.child] || !made_[rule.child]) return false;
          needed_[rule.child] = 1;
          return true;
        });
        for (const auto& rule : chart_.rules(cell))
          if (needed_[rule.parent] && made_[rule.left] && made_[rule.right] && is_kept(rule.expected))
            needed_[rule.left] = needed_[rule.right] = 1;
      }
    }
  }

  // Goes through the kept unary rules of a cell until `mark` changes nothing any more.
  template <class Mark>
  void follow_unary_rules(std::size_t cell, const Mark& mark) const {
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& rule : chart_.unary_rules(cell))
        if (is_kept(rule.expected) && mark(rule)) changed = true;
    }
  }

  void add_nodes(PackedForest& out) {
    number_.assign(chart_.items(), none);
    for (std::size_t last = 1; last <= chart_.words(); ++last) {
      for (std::size_t first = 0; first < last; ++first) {
        const std::size_t cell = cell_of(first, last);
        for (std::size_t i = chart_.first_item(cell); i < chart_.first_item(cell + 1); ++i) {
          const double expected = needed_[i] ? chart_.expected(grammar_, chart_.item(i)) : 0;
          if (!(expected > 0)) continue;
          number_[i] = static_cast<std::uint32_t>(out.symbol.size());
          out.symbol.push_back(chart_.item(i).symbol);
          out.first.push_back(static_cast<std::uint32_t>(first));
          out.last.push_back(static_cast<std::uint32_t>(last));
          out.expected.push_back(expected);
        }
      }
    }
  }

  void add_edges(PackedForest& out) const {
    const auto add = [&](std::uint32_t head, std::uint32_t left, std::uint32_t right, float weight) {
      if (!is_kept(weight) || number_[head] == none || number_[left] == none) return;
      if (right != none && number_[right] == none) return;
      out.head.push_back(number_[head]);
      out.left.push_back(number_[left]);
      out.right.push_back(right == none ? none : number_[right]);
      out.weight.push_back(weight);
    };
    for (std::size_t cell = 0; cell < cells_of(chart_.words()); ++cell) {
      for (const auto& rule : chart_.rules(cell)) add(rule.parent, rule.left, rule.right, rule.expected);
      for (const auto& rule : chart_.unary_rules(cell))
        if (rule.parent != rule.child) add(rule.parent, rule.child, none, rule.expected);
    }
  }

  const RefinedChart<float>& chart_;
  const ChartGrammar<float>& grammar_;
  double least_;
  std::vector<char> made_, needed_;    // per item
  std::vector<std::uint32_t> number_;  // per item: its node, or none
};

// Inside scores of the subcategories of all nodes, from small spans up. Scores of a span are numbers times a power
// of two, one for all its nodes.
class ForestInside {
 public:
  ForestInside(const PackedForest& forest, const ChartGrammar<double>& grammar)
      : forest_(forest), grammar_(grammar), place_(forest.symbol.size() + 1, 0), exponent_(forest.symbol.size(), 0) {
    for (std::size_t n = 0; n < forest.symbol.size(); ++n) place_[n + 1] = place_[n] + grammar.width(forest.symbol[n]);
    sort_by_head(forest, start_, order_);
    inside_.assign(place_.back(), 0);
  }

  double log_prob(const ChartLexicon& lexicon, std::span<const std::uint32_t> words) {
    for_each_span(forest_, [&](std::uint32_t begin, std::uint32_t end) {
      const int reference = largest_exponent(begin, end);
      if (forest_.last[begin] - forest_.first[begin] == 1) add_word(lexicon, words[forest_.first[begin]], begin, end);
      add_binary(begin, end, reference);
      close_unary(begin, end);
      rescale(begin, end, reference);
    });
    for (std::size_t n = 0; n < forest_.symbol.size(); ++n) {
      if (forest_.symbol[n] != 0 || forest_.first[n] != 0 || forest_.last[n] != forest_.words) continue;
      constexpr double log_2 = 0.693147180559945309417232121458;
      return std::log(inside_[place_[n]]) + exponent_[n] * log_2;
    }
    return -std::numeric_limits<double>::infinity();
  }

 private:
  static auto rule_of(std::span<const ParentRule> rules, std::uint32_t parent) {
    return std::find_if(rules.begin(), rules.end(), [&](const ParentRule& rule) { return rule.parent == parent; });
  }

  // The largest exponent of a pair of children in the nodes of a span.
  int largest_exponent(std::uint32_t begin, std::uint32_t end) const {
    int largest = std::numeric_limits<int>::min();
    for (std::uint32_t at = start_[begin]; at < start_[end]; ++at)
      if (const std::uint32_t e = order_[at]; forest_.right[e] != none)
        largest = std::max(largest, exponent_[forest_.left[e]] + exponent_[forest_.right[e]]);
    return largest == std::numeric_limits<int>::min() ? 0 : largest;
  }

  void add_word(const ChartLexicon& lexicon, std::uint32_t word, std::uint32_t begin, std::uint32_t end) {
    if (word >= lexicon.words()) throw Error(ErrorCode::argument, "a word id is out of range");
    lexicon.look_up(word, tags_);
    for (std::size_t t = 0; t < tags_.tag.size(); ++t)
      for (std::uint32_t n = begin; n < end; ++n)
        if (forest_.symbol[n] == tags_.tag[t])
          std::copy(tags_.score.begin() + tags_.start[t], tags_.score.begin() + tags_.start[t + 1],
                    inside_.begin() + place_[n]);
  }

  void add_binary(std::uint32_t begin, std::uint32_t end, int reference) {
    const PackedForest& forest = forest_;
    const ChartGrammar<double>& grammar = grammar_;
    const std::uint32_t* const place = place_.data();
    double* const inside = inside_.data();
    for (std::uint32_t at = start_[begin]; at < start_[end]; ++at) {
      const std::uint32_t e = order_[at], left = forest.left[e], right = forest.right[e], head = forest.head[e];
      if (right == none) continue;
      const std::uint32_t pair = grammar.find_pair(forest.symbol[left], forest.symbol[right]);
      if (pair == none) continue;
      const auto rules = grammar.rules_of_pair(pair);
      const auto rule = rule_of(rules, forest.symbol[head]);
      if (rule == rules.end()) continue;
      const double scale = power_of_two<double>(exponent_[left] + exponent_[right] - reference);
      const std::uint32_t width = grammar.width(forest.symbol[head]);
      const std::uint32_t* starts = grammar.row_starts(*rule);
      const std::uint32_t* right_of = grammar.row_rights(*rule, forest.symbol[left]);
      const double *at_left = inside + place[left], *at_right = inside + place[right];
      double* at_head = inside + place[head];
      for (std::uint32_t y = 0; y < grammar.count(forest.symbol[left]); ++y) {
        for (std::uint32_t t = starts[y]; t < starts[y + 1]; ++t) {
          const double below = at_left[y] * at_right[right_of[t]] * scale;
          const double* row = grammar.binary_block(*rule) + std::size_t{t} * width;
          for (std::uint32_t x = 0; x < width; ++x) at_head[x] += below * row[x];
        }
      }
    }
  }

  // Chains of unary rules: x = base + U x, by repetition; chains grow less probable.
  void close_unary(std::uint32_t begin, std::uint32_t end) {
    base_.assign(inside_.begin() + place_[begin], inside_.begin() + place_[end]);
    for (int round = 0; round < rounds; ++round) {
      before_.assign(inside_.begin() + place_[begin], inside_.begin() + place_[end]);
      std::copy(base_.begin(), base_.end(), inside_.begin() + place_[begin]);
      if (!add_unary(begin, end)) break;
      double change = 0, largest = 0;
      for (std::size_t i = 0; i < before_.size(); ++i) {
        change = std::max(change, std::abs(inside_[place_[begin] + i] - before_[i]));
        largest = std::max(largest, before_[i]);
      }
      if (change <= smallest_change * largest) break;
    }
  }

  // Adds what the scores of the round before give through one unary rule; false if the span has none.
  bool add_unary(std::uint32_t begin, std::uint32_t end) {
    const PackedForest& forest = forest_;
    const ChartGrammar<double>& grammar = grammar_;
    bool has_unary = false;
    for (std::uint32_t at = start_[begin]; at < start_[end]; ++at) {
      const std::uint32_t e = order_[at], child = forest.left[e], head = forest.head[e];
      if (forest.right[e] != none) continue;
      const auto rules = grammar.unary_rules(forest.symbol[child]);
      const auto rule = rule_of(rules, forest.symbol[head]);
      if (rule == rules.end()) continue;
      has_unary = true;
      const std::uint32_t width = grammar.width(forest.symbol[head]);
      const double* at_child = before_.data() + (place_[child] - place_[begin]);
      double* at_head = inside_.data() + place_[head];
      for (std::uint32_t y = 0; y < grammar.count(forest.symbol[child]); ++y) {
        const double* row = grammar.unary_block(*rule) + std::size_t{y} * width;
        for (std::uint32_t x = 0; x < width; ++x) at_head[x] += at_child[y] * row[x];
      }
    }
    return has_unary;
  }

  void rescale(std::uint32_t begin, std::uint32_t end, int reference) {
    double largest = 0;
    for (std::uint32_t i = place_[begin]; i < place_[end]; ++i) largest = std::max(largest, inside_[i]);
    const int shift = largest > 0 ? -std::ilogb(largest) : 0;
    for (std::uint32_t i = place_[begin]; i < place_[end]; ++i) inside_[i] = std::ldexp(inside_[i], shift);
    for (std::uint32_t n = begin; n < end; ++n) exponent_[n] = reference - shift;
  }

  const PackedForest& forest_;
  const ChartGrammar<double>& grammar_;
  std::vector<std::uint32_t> place_, start_, order_;  // where the scores of a node begin; edges by head
  std::vector<int> exponent_;                         // per node
  std::vector<double> inside_, base_, before_;
  TagScores tags_;
};

}  // namespace

void pack_forest(const RefinedChart<float>& chart, const ChartGrammar<float>& grammar, double least,
                 PackedForest& out) {
  ForestPacker(chart, grammar, least).pack(out);
}

double forest_log_prob(const PackedForest& forest, const ChartGrammar<double>& grammar, const ChartLexicon& lexicon,
                       std::span<const std::uint32_t> words) {
  if (words.size() != forest.words || words.empty())
    throw Error(ErrorCode::argument, "packed forest: the sentence has another length");
  return ForestInside(forest, grammar).log_prob(lexicon, words);
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
