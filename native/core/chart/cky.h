// The chart of a grammar without subcategories: inside and outside scores of every symbol on every span.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chart/cells.h"
#include "chart/grammar.h"
#include "chart/kept_cells.h"
#include "chart/lexicon.h"
#include "chart/loops.h"

namespace treelm {

// Scores are kept as numbers times a power of two, one power a cell; the largest of a cell is about
// 2^40, so that products of two stay far from overflow and small ones have room below.
inline constexpr int top_exponent = 40;

// What a chart may cost at most, so that no sentence takes a minute.
struct ChartLimits {
  std::uint64_t work = std::uint64_t{20} << 30;  // multiplications
  std::uint64_t items = std::uint64_t{48} << 20;
};

// Why a chart has no result.
enum class ChartOutcome : std::uint8_t { parsed, no_parse, too_much_work };

// A pair of children at one split, by their items; the pairs of a cell lie together.
struct ChartEdge {
  std::uint32_t pair, left, right, split;
};

// All arrays live as long as the chart, which one thread uses for one sentence after the other.
template <class Real>
class PlainChart {
 public:
  // Words are given by their tags and scores.
  // Items whose inside score times how often their symbol occurs is below `beam` of the largest such
  // number of their cell are dropped; 0 drops none. Kept cells must come from the same grammar, lexicon and beam;
  // the result is the same without them.
  ChartOutcome inside(const ChartGrammar<Real>& grammar, const std::vector<TagScores>& words, const ChartLimits& limits,
                      Real beam = 0, SentenceCells<Real> cells = {});
  // Natural logarithm of the probability of the words, after `inside`.
  double log_prob() const;
  // Fills outside scores such that inside times outside is the expected number of an item; items whose
  // expected number is below `floor` hand nothing down. Also lists the pairs of children that are expected at least
  // `least_edge` times.
  ChartOutcome outside(const ChartGrammar<Real>& grammar, Real floor, Real least_edge, const ChartLimits& limits);

  struct Item {
    std::uint32_t symbol;
    Real inside, outside;
  };
  std::size_t words() const { return words_; }
  // The items of a cell, by symbol.
  std::span<const Item> items(std::size_t cell) const {
    return std::span(items_).subspan(first_[cell], last_[cell] - first_[cell]);
  }
  // Where the items of a cell begin among all.
  std::size_t first_item(std::size_t cell) const { return first_[cell]; }
  std::size_t items() const { return items_.size(); }
  std::span<const ChartEdge> edges(std::size_t cell) const {
    return std::span(edges_).subspan(edge_first_[cell], edge_last_[cell] - edge_first_[cell]);
  }
  int exponent(std::size_t cell) const { return exponent_[cell]; }
  std::uint64_t work() const { return work_; }

 private:
  void reset(const ChartGrammar<Real>& grammar, std::size_t words);
  void read_word(const TagScores& word);
  void combine(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last);
  void finish_cell(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last, Real beam);
  bool take_kept(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last, SentenceCells<Real> cells);
  void keep(std::size_t cell, std::uint64_t work, SentenceCells<Real> cells) const;
  void open_cell(std::size_t cell);
  void add_item(const PairBlocks<Real>& blocks, std::size_t first, std::uint32_t symbol, Real value);
  void close_cell(std::size_t cell);
  void hand_down(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last, Real floor, Real least_edge);
  void list_edges(const PairBlocks<Real>& blocks, const LeftChild<Real>& left, std::size_t split, Real factor,
                  Real least);
  void clear_pairs(const PairBlocks<Real>& blocks, std::uint32_t left);
  std::span<const LeftChild<Real>> left_children(std::size_t cell) const {
    return std::span(lefts_).subspan(left_first_[cell], left_last_[cell] - left_first_[cell]);
  }

  std::size_t words_ = 0;
  std::uint64_t work_ = 0;
  std::vector<Item> items_;
  std::vector<std::size_t> first_, last_;
  std::vector<int> exponent_;
  // The items of every cell that may be left children.
  std::vector<LeftChild<Real>> lefts_;
  std::vector<std::size_t> left_first_, left_last_;
  std::vector<ChartEdge> edges_;
  std::vector<std::size_t> edge_first_, edge_last_;
  // Scratch: values by symbol (before and after unary rules), by place of a pair of children, by parent and lane, and
  // by slot of a right child for every cell of the current column.
  std::vector<Real> below_, above_, sums_;
  BlockVector<Real> pair_, made_, column_, column_outside_;
  std::vector<std::uint32_t> column_item_, places_;
  std::vector<char> left_seen_;
  int reference_ = 0;
};

extern template class PlainChart<float>;
extern template class PlainChart<double>;

}  // namespace treelm
