// Cells of charts filled before, found again by the words of their spans: the hypotheses of one list share most spans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hashed_places.h"

namespace treelm {

// Numbers for spans of words, equal for equal words.
class SpanNumbers {
 public:
  static constexpr std::uint32_t none = HashedPlaces::none;

  // The number of a span of one word more than another, or of one word alone after none.
  std::uint32_t number(std::uint32_t before, std::uint32_t last_word);
  std::size_t size() const { return spans_.size(); }
  std::size_t bytes() const { return spans_.capacity() * sizeof(Span) + places_.bytes(); }
  void clear();

 private:
  struct Span {
    std::uint32_t before, last_word;
  };
  std::vector<Span> spans_;
  HashedPlaces places_;
};

// What cells of one kind of chart hold, by the number of the span.
template <class Real>
class KeptCells {
 public:
  struct Cell {
    std::size_t symbols, values;  // where its own begin
    std::size_t items;
    int exponent;
    // What it cost to fill it, which counts again wherever it is used: limits must not depend on what is kept.
    std::uint64_t work, edges;
  };
  const Cell* find(std::uint32_t span) const {
    return span < place_.size() && place_[span] != SpanNumbers::none ? &cells_[place_[span]] : nullptr;
  }
  // Begins a cell, whose symbols and values are then added.
  Cell& add(std::uint32_t span) {
    if (span >= place_.size()) place_.resize(span + 1, SpanNumbers::none);
    place_[span] = static_cast<std::uint32_t>(cells_.size());
    cells_.push_back({symbols.size(), values.size(), 0, 0, 0, 0});
    return cells_.back();
  }
  std::size_t bytes() const {
    return place_.capacity() * sizeof(std::uint32_t) + cells_.capacity() * sizeof(Cell) +
           symbols.capacity() * sizeof(std::uint32_t) + values.capacity() * sizeof(Real);
  }
  void clear() {
    place_.clear();
    cells_.clear();
    symbols.clear();
    values.clear();
  }

  std::vector<std::uint32_t> symbols;
  std::vector<Real> values;

 private:
  std::vector<std::uint32_t> place_;  // of a span among the cells, or none
  std::vector<Cell> cells_;
};

// The kept cells of one kind of chart, with the numbers of the spans of a sentence by cell.
template <class Real>
struct SentenceCells {
  KeptCells<Real>* kept = nullptr;  // none if nothing is kept
  std::span<const std::uint32_t> spans;
};

// The kept cells of a chart without subcategories, and of the one with subcategories above it.
template <class Real>
class ChartMemory {
 public:
  // Numbers the spans of a sentence. What was kept is forgotten once it takes more than `limit` bytes.
  void begin(std::span<const std::uint32_t> words, std::size_t limit);
  SentenceCells<Real> plain() { return {&plain_, spans_}; }
  SentenceCells<Real> refined() { return {&refined_, spans_}; }

 private:
  SpanNumbers numbers_;
  std::vector<std::uint32_t> spans_;  // by cell
  KeptCells<Real> plain_, refined_;
};

extern template class ChartMemory<double>;

// Whether sentences have most of their groups of three words in common, as the hypotheses of a list have.
bool share_spans(std::span<const std::uint32_t> words, std::span<const std::uint64_t> starts);

}  // namespace treelm
