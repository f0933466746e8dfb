#include "chart/weighted_chart.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/starts.h"
#include "base/symbols.h"
#include "base/thread_pool.h"
#include "chart/cky.h"

// Counting bits is one instruction where the processor has it.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define TREELM_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define TREELM_CLONES
#endif

namespace treelm {

namespace {

// Sentences between two looks at Ctrl-C.
constexpr std::size_t piece_size = 64;

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

// What a right child adds.
struct Right {
  double score;
  std::int64_t branching;
};

constexpr double forbidden = std::numeric_limits<double>::infinity();

// The items of the cell at work, by symbol.
struct OpenCell {
  double* scores;  // minus infinity before anything was offered; `forbidden` for symbols that fit no tree here
  WeightedItem* items;
  std::uint64_t* present;

  // Few offers are better than what is there, and only these need a closer look.
  [[gnu::always_inline]] void offer(std::uint32_t symbol, double score, std::int64_t branching, std::uint32_t rule,
                                    std::uint32_t split) const {
    if (score >= scores[symbol]) [[unlikely]]
      take(symbol, score, branching, rule, split);
  }
  void take(std::uint32_t symbol, double score, std::int64_t branching, std::uint32_t rule, std::uint32_t split) const {
    WeightedItem& item = items[symbol];
    if (scores[symbol] == impossible_weight) {
      set_bit(present, symbol);
      item = {score, branching, rule, split, symbol};
    } else {
      item.offer(score, branching, rule, split);
    }
    scores[symbol] = item.score;
  }
};

// Offers everything that the items on the left of a split and those on its right can be made into.
TREELM_CLONES void combine(const SentenceGrammar& grammar, std::span<const WeightedItem> lefts, const Right* rights,
                           const std::uint64_t* present, std::uint32_t split, std::int64_t left_length,
                           const OpenCell& cell) {
  for (const WeightedItem& left : lefts) {
    const std::int64_t left_branching = left.branching - left_length;
    for (const SentenceGrammar::Partners& partners : grammar.partners(left.symbol)) {
      const Right* own = rights + partners.block * 64;
      for (std::uint64_t both = partners.bits & present[partners.block]; both != 0; both &= both - 1) {
        const Right& right = own[std::countr_zero(both)];
        const double children = left.score + right.score;
        const std::int64_t branching = left_branching + right.branching;
        const auto before = static_cast<std::uint32_t>(std::popcount(partners.bits & ((both & (~both + 1)) - 1)));
        for (const SentenceGrammar::Rule& rule : grammar.rules_of(partners.first_pair + before))
          cell.offer(rule.parent, children + rule.weight, branching, rule.id, split);
      }
    }
  }
}

}  // namespace

void WeightedTrees::add(const WeightedTree& tree) {
  scores.push_back(tree.score);
  branching.push_back(tree.branching);
  symbols.insert(symbols.end(), tree.symbols.begin(), tree.symbols.end());
  rules.insert(rules.end(), tree.rules.begin(), tree.rules.end());
  starts.push_back(static_cast<std::int64_t>(symbols.size()));
}

struct WeightedChart::Workspace {
  SentenceGrammar grammar;
  std::vector<WeightedItem> items;       // of all cells
  std::vector<std::size_t> first, last;  // by cell: its items
  std::vector<WeightedItem> own;         // by symbol: the cell at work
  std::vector<double> scores;            // and their scores
  std::vector<Right> rights;             // by start and symbol: the cells that end at the same word
  Bits present;                          // by start: their symbols
  Bits whole, begins, ends;              // by place between words: the symbols that may begin there, and end there
  Bits allowed;                          // of the cell at work
};

WeightedChart::WeightedChart(const WeightedGrammar& grammar)
    : grammar_((check_weighted_grammar(grammar), grammar)),
      symbols_(grammar.symbols),
      blocks_((grammar.symbols + 1 + 63) / 64),  // one more for the border
      lists_(grammar) {
  before_ = neighbours(1, 2);
  after_ = neighbours(2, 1);
}

// Per symbol, what may stand at its left (child 1) or right (child 2) edge, itself included.
WeightedChart::Bits WeightedChart::corners(int child) const {
  Bits found(symbols_ * blocks_);
  for (std::size_t symbol = 0; symbol < symbols_; ++symbol) set_bit(found.data() + symbol * blocks_, symbol);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t rule = 0; rule < grammar_.weights.size(); ++rule) {
      const auto parent = static_cast<std::size_t>(grammar_.rules[3 * rule]);
      const auto edge = static_cast<std::size_t>(grammar_.rules[3 * rule + static_cast<std::size_t>(child)]);
      changed |= unite(found.data() + parent * blocks_, found.data() + edge * blocks_, blocks_);
    }
  }
  return found;
}

// By symbol and border: the symbols that may stand next to it, on the side of the child `near`.
WeightedChart::Bits WeightedChart::neighbours(int near, int far) const {
  const std::size_t border = symbols_;
  const Bits edges = corners(near);  // the edge of the far child that meets the near one
  const auto row = [&](std::size_t rule, int which) {
    return static_cast<std::size_t>(grammar_.rules[3 * rule + static_cast<std::size_t>(which)]) * blocks_;
  };
  Bits found((symbols_ + 1) * blocks_);
  for (std::size_t symbol = 0; symbol < symbols_; ++symbol)
    if (grammar_.root_weights[symbol] != impossible_weight) set_bit(found.data() + symbol * blocks_, border);
  const std::size_t rules = grammar_.weights.size();
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
                                   const ProgressCallback& progress, bool plain) const {
  check_weighted_tags(symbols_, sentences.words);
  check_starts(sentences.starts, sentences.words.starts.size() - 1, "the starts of sentences do not fit the words");
  const std::size_t count = sentences.starts.size() - 1;
  WeightedTrees trees;
  ThreadPool pool(threads);
  std::vector<Workspace> spaces(std::max<std::size_t>(pool.size(), 1));
  const std::size_t stride = piece_size * spaces.size();
  std::vector<WeightedTree> found(std::min(stride, count));
  for (std::size_t begin = 0; begin < count; begin += stride) {
    progress(begin, count);
    const std::size_t size = std::min(stride, count - begin);
    pool.map(size, [&](std::size_t index, std::size_t worker) {
      const auto first = static_cast<std::size_t>(sentences.starts[begin + index]);
      const auto last = static_cast<std::size_t>(sentences.starts[begin + index + 1]);
      const WeightedTags own{sentences.words.tags, sentences.words.weights,
                             sentences.words.starts.subspan(first, last - first + 1)};
      if (plain)
        plain_weighted_tree(grammar_, own, found[index]);
      else
        parse_one(own, spaces[worker], found[index]);
    });
    for (std::size_t index = 0; index < size; ++index) trees.add(found[index]);
  }
  progress(count, count);
  return trees;
}

// For every place between words: the symbols that may end there, and those that may begin there.
void WeightedChart::mark_allowed(const WeightedTags& words, Workspace& work) const {
  const std::size_t n = words.starts.size() - 1, blocks = work.grammar.blocks();
  const std::span<const std::uint32_t> symbols = work.grammar.symbols();
  work.whole.assign(2 * (n + 1) * blocks_, 0);
  std::uint64_t* ends = work.whole.data();
  std::uint64_t* begins = ends + (n + 1) * blocks_;
  unite(ends + n * blocks_, before_.data() + symbols_ * blocks_, blocks_);
  unite(begins, after_.data() + symbols_ * blocks_, blocks_);
  for (std::size_t word = 0; word < n; ++word) {
    for (auto t = words.starts[word]; t < words.starts[word + 1]; ++t) {
      const auto tag = static_cast<std::uint32_t>(words.tags[static_cast<std::size_t>(t)]);
      if (work.grammar.number_of(tag) == none) continue;
      unite(ends + word * blocks_, before_.data() + tag * blocks_, blocks_);
      unite(begins + (word + 1) * blocks_, after_.data() + tag * blocks_, blocks_);
    }
  }
  work.ends.assign((n + 1) * blocks, 0);
  work.begins.assign((n + 1) * blocks, 0);
  for (std::size_t place = 0; place <= n; ++place) {
    for (std::size_t number = 0; number < symbols.size(); ++number) {
      const auto bit = [&](const std::uint64_t* row) {
        return static_cast<std::uint64_t>(has_bit(row + place * blocks_, symbols[number])) << (number % 64);
      };
      work.ends[place * blocks + number / 64] |= bit(ends);
      work.begins[place * blocks + number / 64] |= bit(begins);
    }
  }
}

void WeightedChart::fill_cell(std::size_t start, std::size_t last, const WeightedTags& words, Workspace& work) const {
  const std::size_t count = work.grammar.symbols().size(), blocks = work.grammar.blocks();
  std::uint64_t* present = work.present.data() + start * blocks;
  std::fill_n(present, blocks, 0);
  for (std::size_t block = 0; block < blocks; ++block) {
    double* scores = work.scores.data() + block * 64;
    std::fill_n(scores, 64, forbidden);
    for (std::uint64_t bits = work.begins[start * blocks + block] & work.ends[last * blocks + block]; bits != 0;
         bits &= bits - 1)
      scores[std::countr_zero(bits)] = impossible_weight;
  }
  const OpenCell cell{work.scores.data(), work.own.data(), present};
  if (last - start == 1) {
    for (auto t = static_cast<std::size_t>(words.starts[start]); t < static_cast<std::size_t>(words.starts[last]);
         ++t) {
      const std::uint32_t tag = work.grammar.number_of(static_cast<std::uint32_t>(words.tags[t]));
      if (tag != none) cell.offer(tag, words.weights[t], 0, none, 0);
    }
  }
  for (std::size_t split = start + 1; split < last; ++split) {
    const std::size_t left = cell_of(start, split);
    const std::span lefts = std::span(work.items).subspan(work.first[left], work.last[left] - work.first[left]);
    combine(work.grammar, lefts, work.rights.data() + split * count, work.present.data() + split * blocks,
            static_cast<std::uint32_t>(split), static_cast<std::int64_t>(split - start), cell);
  }
  Right* rights = work.rights.data() + start * count;
  work.first[cell_of(start, last)] = work.items.size();
  for (std::size_t block = 0; block < blocks; ++block) {
    for (std::uint64_t bits = present[block]; bits != 0; bits &= bits - 1) {
      const std::size_t symbol = block * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      const WeightedItem& item = work.own[symbol];
      rights[symbol] = {item.score, item.branching};
      work.items.push_back(item);
    }
  }
  work.last[cell_of(start, last)] = work.items.size();
}

void WeightedChart::parse_one(const WeightedTags& words, Workspace& work, WeightedTree& found) const {
  found.clear();
  const std::size_t n = words.starts.size() - 1;
  if (n == 0) return;
  const auto first = static_cast<std::size_t>(words.starts.front());
  const auto size = static_cast<std::size_t>(words.starts.back()) - first;
  if (!work.grammar.choose(lists_, grammar_.root_weights, words.tags.subspan(first, size))) return;
  mark_allowed(words, work);
  const std::size_t count = work.grammar.symbols().size(), blocks = work.grammar.blocks();
  work.own.resize(count);
  work.scores.resize(blocks * 64);
  work.items.clear();
  work.first.assign(cells_of(n), 0);
  work.last.assign(cells_of(n), 0);
  if (work.rights.size() < n * count) work.rights.resize(n * count);
  work.present.assign(n * blocks, 0);
  for (std::size_t last = 1; last <= n; ++last) {
    for (std::size_t start = last; start-- > 0;) {
      poll_interrupt();
      fill_cell(start, last, words, work);
    }
  }
  WeightedItem top{impossible_weight, 0, none, 0, none};
  const std::size_t whole = cell_of(0, n);
  for (std::size_t at = work.first[whole]; at < work.last[whole]; ++at) {
    const WeightedItem& item = work.items[at];
    const double score = item.score + grammar_.root_weights[work.grammar.symbols()[item.symbol]];
    if (score != impossible_weight && top.is_below(score, item.branching))
      top = {score, item.branching, none, 0, item.symbol};
  }
  if (top.symbol == none) return;
  found.score = top.score;
  found.branching = top.branching;
  read_tree(n, top.symbol, work, found);
}

void WeightedChart::read_tree(std::size_t words, std::uint32_t top, const Workspace& work, WeightedTree& found) const {
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
    const WeightedItem& item = *std::ranges::lower_bound(begin, end, piece.symbol, {}, &WeightedItem::symbol);
    found.symbols.push_back(work.grammar.symbols()[piece.symbol]);
    found.rules.push_back(item.rule);
    if (item.rule == none) continue;
    const auto child = [&](std::size_t k) {
      return work.grammar.number_of(static_cast<std::uint32_t>(grammar_.rules[3 * item.rule + k]));
    };
    todo.push_back({item.split, piece.last, child(2)});
    todo.push_back({piece.start, item.split, child(1)});
  }
}

}  // namespace treelm
