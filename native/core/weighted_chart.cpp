#include "weighted_chart.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "cky.h"
#include "error.h"
#include "symbols.h"
#include "thread_pool.h"

namespace treelm {

namespace {

constexpr double impossible = -std::numeric_limits<double>::infinity();
// Sentences between two looks at Ctrl-C.
constexpr std::size_t piece_size = 64;

struct Item {
  double score = impossible;
  std::int64_t branching = 0;
  std::uint32_t rule = none, split = 0, symbol = none;
};

bool better(double score, std::int64_t branching, const Item& than) {
  return score != than.score ? score > than.score : branching > than.branching;
}

void set_bit(std::uint64_t* bits, std::size_t place) { bits[place / 64] |= std::uint64_t{1} << (place % 64); }
bool has_bit(const std::uint64_t* bits, std::size_t place) { return (bits[place / 64] >> (place % 64)) & 1; }

// Adds one row of bits to another; true if that changed it.
bool unite(std::uint64_t* into, const std::uint64_t* from, std::size_t blocks) {
  std::uint64_t added = 0;
  for (std::size_t b = 0; b < blocks; ++b) {
    added |= from[b] & ~into[b];
    into[b] |= from[b];
  }
  return added != 0;
}

// Row r, bit c becomes row c, bit r.
std::vector<std::uint64_t> turned(const std::vector<std::uint64_t>& rows, std::size_t count, std::size_t blocks) {
  std::vector<std::uint64_t> columns(rows.size());
  for (std::size_t r = 0; r < count; ++r)
    for (std::size_t c = 0; c < count; ++c)
      if (has_bit(rows.data() + r * blocks, c)) set_bit(columns.data() + c * blocks, r);
  return columns;
}

}  // namespace

struct WeightedChart::Workspace {
  std::vector<Item> items;               // of all cells
  std::vector<std::size_t> first, last;  // by cell: its items
  std::vector<Item> own;                 // by symbol: the cell at work
  std::vector<std::uint32_t> touched;    // its symbols
  std::vector<double> column_scores;     // by start and symbol: the cells that end at the same word
  std::vector<std::int64_t> column_branching;
  Bits begins, ends;  // by place between words: the symbols that may begin there, and end there
  Bits allowed;       // of the cell at work
};

struct WeightedChart::Found {
  double score = impossible;
  std::int64_t branching = 0;
  std::vector<std::uint32_t> symbols, rules;
};

WeightedChart::WeightedChart(const WeightedGrammar& grammar)
    : symbols_(grammar.symbols),
      blocks_((grammar.symbols + 1 + 63) / 64),  // one more for the border
      root_weights_(grammar.root_weights.begin(), grammar.root_weights.end()),
      rule_symbols_(grammar.rules.begin(), grammar.rules.end()) {
  check_weighted_grammar(grammar);
  list_rules(grammar);
  before_ = neighbours(grammar, 1, 2);
  after_ = neighbours(grammar, 2, 1);
}

void WeightedChart::list_rules(const WeightedGrammar& grammar) {
  std::vector<std::uint32_t> order(grammar.weights.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto child = [&](std::uint32_t rule, std::size_t which) {
    return static_cast<std::uint32_t>(grammar.rules[3 * rule + which]);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(child(a, 1), child(a, 2)) < std::pair(child(b, 1), child(b, 2));
  });
  first_pair_.assign(symbols_ + 1, 0);
  rules_.reserve(order.size());
  for (std::size_t r = 0; r < order.size(); ++r) {
    const std::uint32_t rule = order[r];
    const auto place = static_cast<std::uint32_t>(rules_.size());
    if (r == 0 || child(order[r - 1], 1) != child(rule, 1) || child(order[r - 1], 2) != child(rule, 2)) {
      pairs_.push_back({child(rule, 2), place, place});
      ++first_pair_[child(rule, 1) + 1];
    }
    rules_.push_back({child(rule, 0), rule, grammar.weights[rule]});
    pairs_.back().last = place + 1;
  }
  std::partial_sum(first_pair_.begin(), first_pair_.end(), first_pair_.begin());
}

// Per symbol, what may stand at its left (child 1) or right (child 2) edge, itself included.
WeightedChart::Bits WeightedChart::corners(const WeightedGrammar& grammar, int child) const {
  Bits found(symbols_ * blocks_);
  for (std::size_t symbol = 0; symbol < symbols_; ++symbol) set_bit(found.data() + symbol * blocks_, symbol);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t rule = 0; rule < grammar.weights.size(); ++rule) {
      const auto parent = static_cast<std::size_t>(grammar.rules[3 * rule]);
      const auto edge = static_cast<std::size_t>(grammar.rules[3 * rule + static_cast<std::size_t>(child)]);
      changed |= unite(found.data() + parent * blocks_, found.data() + edge * blocks_, blocks_);
    }
  }
  return found;
}

// By symbol and border: the symbols that may stand next to it, on the side of the child `near`.
WeightedChart::Bits WeightedChart::neighbours(const WeightedGrammar& grammar, int near, int far) const {
  const std::size_t border = symbols_;
  const Bits edges = corners(grammar, near);  // the edge of the far child that meets the near one
  const auto row = [&](std::size_t rule, int which) {
    return static_cast<std::size_t>(grammar.rules[3 * rule + static_cast<std::size_t>(which)]) * blocks_;
  };
  Bits found((symbols_ + 1) * blocks_);
  for (std::size_t symbol = 0; symbol < symbols_; ++symbol)
    if (root_weights_[symbol] != impossible) set_bit(found.data() + symbol * blocks_, border);
  const std::size_t rules = grammar.weights.size();
  for (std::size_t rule = 0; rule < rules; ++rule)
    unite(found.data() + row(rule, near), edges.data() + row(rule, far), blocks_);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t rule = 0; rule < rules; ++rule)
      changed |= unite(found.data() + row(rule, far), found.data() + row(rule, 0), blocks_);
  }
  return turned(found, symbols_ + 1, blocks_);
}

WeightedTrees WeightedChart::parse(const WeightedSentences& sentences, std::size_t threads,
                                   const ProgressCallback& progress) const {
  check_weighted_tags(symbols_, sentences.words);
  const auto words = static_cast<std::int64_t>(sentences.words.starts.size()) - 1;
  if (sentences.starts.empty() || sentences.starts.front() != 0 || sentences.starts.back() != words ||
      !std::is_sorted(sentences.starts.begin(), sentences.starts.end()))
    throw Error(ErrorCode::argument, "the words of sentences do not fit together");
  const std::size_t count = sentences.starts.size() - 1;
  WeightedTrees trees;
  ThreadPool pool(threads);
  std::vector<Workspace> spaces(std::max<std::size_t>(pool.size(), 1));
  const std::size_t stride = piece_size * spaces.size();
  std::vector<Found> found(std::min(stride, count));
  for (std::size_t begin = 0; begin < count; begin += stride) {
    progress(begin, count);
    const std::size_t size = std::min(stride, count - begin);
    pool.map(size, [&](std::size_t index, std::size_t worker) {
      const auto first = static_cast<std::size_t>(sentences.starts[begin + index]);
      const auto last = static_cast<std::size_t>(sentences.starts[begin + index + 1]);
      const WeightedTags own{sentences.words.tags, sentences.words.weights,
                             sentences.words.starts.subspan(first, last - first + 1)};
      parse_one(own, spaces[worker], found[index]);
    });
    for (std::size_t index = 0; index < size; ++index) {
      const Found& one = found[index];
      trees.scores.push_back(one.score);
      trees.branching.push_back(one.branching);
      trees.symbols.insert(trees.symbols.end(), one.symbols.begin(), one.symbols.end());
      trees.rules.insert(trees.rules.end(), one.rules.begin(), one.rules.end());
      trees.starts.push_back(static_cast<std::int64_t>(trees.symbols.size()));
    }
  }
  progress(count, count);
  return trees;
}

// For every place between words: the symbols that may end there, and those that may begin there.
void WeightedChart::mark_allowed(const WeightedTags& words, Workspace& work) const {
  const std::size_t n = words.starts.size() - 1;
  work.ends.assign((n + 1) * blocks_, 0);
  work.begins.assign((n + 1) * blocks_, 0);
  unite(work.ends.data() + n * blocks_, before_.data() + symbols_ * blocks_, blocks_);
  unite(work.begins.data(), after_.data() + symbols_ * blocks_, blocks_);
  for (std::size_t word = 0; word < n; ++word) {
    for (auto t = words.starts[word]; t < words.starts[word + 1]; ++t) {
      const std::size_t row = static_cast<std::size_t>(words.tags[static_cast<std::size_t>(t)]) * blocks_;
      unite(work.ends.data() + word * blocks_, before_.data() + row, blocks_);
      unite(work.begins.data() + (word + 1) * blocks_, after_.data() + row, blocks_);
    }
  }
}

void WeightedChart::fill_cell(std::size_t start, std::size_t last, const WeightedTags& words, Workspace& work) const {
  for (std::size_t b = 0; b < blocks_; ++b)
    work.allowed[b] = work.begins[start * blocks_ + b] & work.ends[last * blocks_ + b];
  const auto offer = [&](std::uint32_t symbol, double score, std::int64_t branching, std::uint32_t rule,
                         std::uint32_t split) {
    Item& item = work.own[symbol];
    if (item.score == impossible) work.touched.push_back(symbol);
    const bool equal = score == item.score && branching == item.branching;
    if (better(score, branching, item) || (equal && split == item.split && rule < item.rule))
      item = {score, branching, rule, split, symbol};
  };
  if (last - start == 1) {
    for (auto t = static_cast<std::size_t>(words.starts[start]); t < static_cast<std::size_t>(words.starts[last]); ++t)
      if (has_bit(work.allowed.data(), static_cast<std::size_t>(words.tags[t])))
        offer(static_cast<std::uint32_t>(words.tags[t]), words.weights[t], 0, none, 0);
  }
  for (std::size_t split = start + 1; split < last; ++split) {
    const double* right_scores = work.column_scores.data() + split * symbols_;
    const std::int64_t* right_branching = work.column_branching.data() + split * symbols_;
    const std::size_t cell = cell_of(start, split);
    const auto left_length = static_cast<std::int64_t>(split - start);
    if (work.first[cell_of(split, last)] == work.last[cell_of(split, last)]) continue;
    for (std::size_t at = work.first[cell]; at < work.last[cell]; ++at) {
      const double left_score = work.items[at].score;
      const std::int64_t left_branching = work.items[at].branching - left_length;
      const std::uint32_t symbol = work.items[at].symbol;
      for (std::uint32_t p = first_pair_[symbol]; p < first_pair_[symbol + 1]; ++p) {
        const Pair& pair = pairs_[p];
        const double right_score = right_scores[pair.right];
        if (right_score == impossible) continue;
        const double children = left_score + right_score;
        const std::int64_t branching = left_branching + right_branching[pair.right];
        for (std::uint32_t r = pair.first; r < pair.last; ++r) {
          const Rule& rule = rules_[r];
          if (has_bit(work.allowed.data(), rule.parent))
            offer(rule.parent, children + rule.weight, branching, rule.id, static_cast<std::uint32_t>(split));
        }
      }
    }
  }
  const std::size_t cell = cell_of(start, last);
  double* scores = work.column_scores.data() + start * symbols_;
  std::fill_n(scores, symbols_, impossible);
  work.first[cell] = work.items.size();
  std::sort(work.touched.begin(), work.touched.end());
  for (const std::uint32_t symbol : work.touched) {
    Item& item = work.own[symbol];
    scores[symbol] = item.score;
    work.column_branching[start * symbols_ + symbol] = item.branching;
    work.items.push_back(item);
    item = {};
  }
  work.touched.clear();
  work.last[cell] = work.items.size();
}

void WeightedChart::parse_one(const WeightedTags& words, Workspace& work, Found& found) const {
  found.score = impossible;
  found.branching = 0;
  found.symbols.clear();
  found.rules.clear();
  const std::size_t n = words.starts.size() - 1;
  if (n == 0 || symbols_ == 0) return;
  mark_allowed(words, work);
  work.own.resize(symbols_);
  work.allowed.resize(blocks_);
  work.items.clear();
  work.first.assign(cells_of(n), 0);
  work.last.assign(cells_of(n), 0);
  if (work.column_scores.size() < n * symbols_) {
    work.column_scores.resize(n * symbols_);
    work.column_branching.resize(n * symbols_);
  }
  for (std::size_t last = 1; last <= n; ++last)
    for (std::size_t start = last; start-- > 0;) fill_cell(start, last, words, work);
  std::uint32_t top = none;
  Item held;
  const std::size_t whole = cell_of(0, n);
  for (std::size_t at = work.first[whole]; at < work.last[whole]; ++at) {
    const Item& item = work.items[at];
    const double score = item.score + root_weights_[item.symbol];
    if (score == impossible || !better(score, item.branching, held)) continue;
    held = {score, item.branching, none, 0, item.symbol};
    top = item.symbol;
  }
  if (top == none) return;
  found.score = held.score;
  found.branching = held.branching;
  read_tree(n, top, work, found);
}

void WeightedChart::read_tree(std::size_t words, std::uint32_t top, const Workspace& work, Found& found) const {
  struct Piece {
    std::size_t start, last;
    std::uint32_t symbol;
  };
  std::vector<Piece> todo{{0, words, top}};
  while (!todo.empty()) {
    const Piece piece = todo.back();
    todo.pop_back();
    const std::size_t cell = cell_of(piece.start, piece.last);
    const auto begin = work.items.begin() + static_cast<std::ptrdiff_t>(work.first[cell]);
    const auto end = work.items.begin() + static_cast<std::ptrdiff_t>(work.last[cell]);
    const Item& item = *std::lower_bound(begin, end, piece.symbol, [](const Item& found_item, std::uint32_t symbol) {
      return found_item.symbol < symbol;
    });
    found.symbols.push_back(piece.symbol);
    found.rules.push_back(item.rule);
    if (item.rule == none) continue;
    const auto child = [&](std::size_t k) { return static_cast<std::uint32_t>(rule_symbols_[3 * item.rule + k]); };
    todo.push_back({item.split, piece.last, child(2)});
    todo.push_back({piece.start, item.split, child(1)});
  }
}

}  // namespace treelm
