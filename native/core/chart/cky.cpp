#include "chart/cky.h"

#include <algorithm>
#include <cmath>

#include "base/interrupt.h"
#include "base/symbols.h"

namespace treelm {

template <class Real>
void PlainChart<Real>::reset(const ChartGrammar<Real>& grammar, std::size_t words) {
  const std::size_t symbols = grammar.symbols();
  words_ = words;
  work_ = 0;
  items_.clear();
  lefts_.clear();
  for (auto* range : {&first_, &last_, &left_first_, &left_last_, &edge_first_, &edge_last_})
    range->assign(cells_of(words), 0);
  edges_.clear();
  exponent_.assign(cells_of(words), 0);
  below_.assign(symbols, 0);
  above_.assign(symbols, 0);
  pair_.assign(grammar.pair_blocks().places(), 0);
  made_.assign(grammar.phrasal() * PairBlocks<Real>::lanes, 0);
  column_.assign(grammar.pair_blocks().slots() * words, 0);
  left_seen_.assign(symbols, 0);
}

template <class Real>
ChartOutcome PlainChart<Real>::inside(const ChartGrammar<Real>& grammar, const std::vector<TagScores>& words,
                                      const ChartLimits& limits, Real beam, SentenceCells<Real> cells) {
  reset(grammar, words.size());
  for (std::size_t last = 1; last <= words_; ++last) {
    for (std::size_t first = last; first-- > 0;) {
      poll_interrupt();
      // The cell of the whole sentence is filled in its own way.
      const bool may_keep = cells.kept && (first > 0 || last < words_);
      if (!may_keep || !take_kept(grammar, first, last, cells)) {
        const std::uint64_t before = work_;
        if (last - first == 1) {
          read_word(words[first]);
        } else {
          combine(grammar, first, last);
        }
        finish_cell(grammar, first, last, beam);
        if (may_keep) keep(cell_of(first, last), work_ - before, cells);
      }
      if (work_ > limits.work || items_.size() > limits.items) return ChartOutcome::too_much_work;
    }
    std::fill_n(column_.begin(), last * grammar.pair_blocks().slots(), Real{0});
  }
  const auto top = items(cell_of(0, words_));
  return !top.empty() && top[0].symbol == 0 ? ChartOutcome::parsed : ChartOutcome::no_parse;
}

template <class Real>
void PlainChart<Real>::read_word(const TagScores& word) {
  // The largest score of a word becomes 1: lexicons may score far below what a float can hold.
  double largest = 0;
  for (const double score : word.score) largest = std::max(largest, score);
  reference_ = largest > 0 ? std::ilogb(largest) : 0;
  for (std::size_t i = 0; i < word.tag.size(); ++i)
    below_[word.tag[i]] = static_cast<Real>(std::ldexp(word.score[word.start[i]], -reference_));
}

// Sums over all splits of a span, into `below_`: first the products of pairs of children over all
// splits, then every rule once.
template <class Real>
void PlainChart<Real>::combine(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last) {
  const PairBlocks<Real>& blocks = grammar.pair_blocks();
  bool any = false;
  for (std::size_t split = first + 1; split < last; ++split) {
    const std::size_t left = cell_of(first, split), right = cell_of(split, last);
    if (first_[left] == last_[left] || first_[right] == last_[right]) continue;
    const int exponent = exponent_[left] + exponent_[right];
    reference_ = any ? std::max(reference_, exponent) : exponent;
    any = true;
  }
  if (!any) return;
  for (std::size_t split = first + 1; split < last; ++split) {
    const std::size_t left = cell_of(first, split), right = cell_of(split, last);
    if (left_first_[left] == left_last_[left] || first_[right] == last_[right]) continue;
    const Real scale = power_of_two<Real>(exponent_[left] + exponent_[right] - reference_);
    if (scale == 0) continue;
    const std::span<const LeftChild<Real>> lefts = left_children(left);
    add_products(pair_.data(), column_.data() + split * blocks.slots(), lefts.data(), lefts.size(),
                 blocks.block_slots(), scale);
    for (const LeftChild<Real>& child : lefts) {
      left_seen_[child.symbol] = 1;
      work_ += grammar.first_pair(child.symbol + 1) - grammar.first_pair(child.symbol);
    }
  }
  apply_rows(made_.data(), pair_.data(), blocks, left_seen_.data(), grammar.symbols());
  fold_blocks(below_.data(), made_.data(), grammar.phrasal());
  std::fill(left_seen_.begin(), left_seen_.end(), 0);
}

// Applies unary rules to `below_` and keeps what is not zero as the items of a cell.
template <class Real>
void PlainChart<Real>::finish_cell(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last, Real beam) {
  const auto symbols = grammar.symbols();
  const bool is_top = first == 0 && last == words_;
  for (std::uint32_t symbol = 0; symbol < symbols; ++symbol) {
    const Real value = below_[symbol];
    if (value == 0) continue;
    above_[symbol] += value;
    for (const ParentRule& chain : grammar.chains(symbol)) above_[chain.parent] += value * *grammar.chain_block(chain);
  }
  if (!is_top) above_[0] = 0;
  Real largest = 0, likeliest = 0;
  for (std::uint32_t symbol = 0; symbol < symbols; ++symbol) {
    largest = std::max(largest, above_[symbol]);
    likeliest = std::max(likeliest, above_[symbol] * grammar.frequency(symbol));
  }
  const Real least = is_top ? Real{0} : likeliest * beam;
  const std::size_t cell = cell_of(first, last);
  open_cell(cell);
  if (largest > 0) {
    const int shift = top_exponent - std::ilogb(largest);
    exponent_[cell] = reference_ - shift;
    const Real half = power_of_two<Real>(shift / 2), rest = power_of_two<Real>(shift - shift / 2);
    for (std::uint32_t symbol = 0; symbol < symbols; ++symbol) {
      const Real value = above_[symbol] * half * rest;
      if (!(value >= std::numeric_limits<Real>::min()) || above_[symbol] * grammar.frequency(symbol) < least) continue;
      add_item(grammar.pair_blocks(), first, symbol, value);
    }
  }
  close_cell(cell);
  std::fill(below_.begin(), below_.end(), Real{0});
  std::fill(above_.begin(), above_.end(), Real{0});
}

template <class Real>
void PlainChart<Real>::open_cell(std::size_t cell) {
  first_[cell] = items_.size();
  left_first_[cell] = lefts_.size();
}

template <class Real>
void PlainChart<Real>::add_item(const PairBlocks<Real>& blocks, std::size_t first, std::uint32_t symbol, Real value) {
  if (blocks.slot(symbol) != none) column_[first * blocks.slots() + blocks.slot(symbol)] = value;
  const std::uint32_t block = blocks.first_block(symbol), end = blocks.first_block(symbol + 1);
  if (block < end) lefts_.push_back({symbol, static_cast<std::uint32_t>(items_.size()), block, end - block, value});
  items_.push_back({symbol, value, 0});
}

template <class Real>
void PlainChart<Real>::close_cell(std::size_t cell) {
  last_[cell] = items_.size();
  left_last_[cell] = lefts_.size();
}

// Fills a cell as one over the same words was filled before, if there was one.
template <class Real>
bool PlainChart<Real>::take_kept(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last,
                                 SentenceCells<Real> cells) {
  const std::size_t cell = cell_of(first, last);
  const auto* kept = cells.kept->find(cells.spans[cell]);
  if (!kept) return false;
  open_cell(cell);
  for (std::size_t i = 0; i < kept->items; ++i)
    add_item(grammar.pair_blocks(), first, cells.kept->symbols[kept->symbols + i],
             cells.kept->values[kept->values + i]);
  close_cell(cell);
  exponent_[cell] = kept->exponent;
  work_ += kept->work;
  return true;
}

template <class Real>
void PlainChart<Real>::keep(std::size_t cell, std::uint64_t work, SentenceCells<Real> cells) const {
  auto& made = cells.kept->add(cells.spans[cell]);
  made.items = last_[cell] - first_[cell];
  made.exponent = exponent_[cell];
  made.work = work;
  for (const Item& item : items(cell)) {
    cells.kept->symbols.push_back(item.symbol);
    cells.kept->values.push_back(item.inside);
  }
}

template <class Real>
double PlainChart<Real>::log_prob() const {
  const std::size_t top = cell_of(0, words_);
  constexpr double log_2 = 0.693147180559945309417232121458;
  return std::log(static_cast<double>(items_[first_[top]].inside)) + exponent_[top] * log_2;
}

template <class Real>
void PlainChart<Real>::clear_pairs(const PairBlocks<Real>& blocks, std::uint32_t left) {
  constexpr std::size_t lanes = PairBlocks<Real>::lanes;
  const std::size_t from = blocks.first_block(left), to = blocks.first_block(left + 1);
  std::fill(pair_.begin() + static_cast<std::ptrdiff_t>(from * lanes),
            pair_.begin() + static_cast<std::ptrdiff_t>(to * lanes), Real{0});
}

template <class Real>
ChartOutcome PlainChart<Real>::outside(const ChartGrammar<Real>& grammar, Real floor, Real least_edge,
                                       const ChartLimits& limits) {
  const PairBlocks<Real>& blocks = grammar.pair_blocks();
  const std::size_t slots = blocks.slots();
  column_outside_.assign(slots * words_, 0);
  column_item_.resize(slots * words_);
  Item& root = items_[first_[cell_of(0, words_)]];
  root.outside = 1 / root.inside;
  for (std::size_t last = words_; last > 0; --last) {
    for (std::size_t first = 0; first < last; ++first) {
      const std::size_t cell = cell_of(first, last);
      for (std::size_t i = first_[cell]; i < last_[cell]; ++i) {
        const std::uint32_t slot = blocks.slot(items_[i].symbol);
        if (slot == none) continue;
        column_[first * slots + slot] = items_[i].inside;
        column_item_[first * slots + slot] = static_cast<std::uint32_t>(i);
      }
    }
    for (std::size_t first = 0; first < last; ++first) {
      poll_interrupt();
      hand_down(grammar, first, last, floor, least_edge);
      if (edges_.size() > limits.items) return ChartOutcome::too_much_work;
    }
    std::fill_n(column_.begin(), last * slots, Real{0});
    std::fill_n(column_outside_.begin(), last * slots, Real{0});
  }
  return ChartOutcome::parsed;
}

// Passes the outside scores of a cell through its unary rules, then to all pairs of children.
template <class Real>
void PlainChart<Real>::hand_down(const ChartGrammar<Real>& grammar, std::size_t first, std::size_t last, Real floor,
                                 Real least_edge) {
  const PairBlocks<Real>& blocks = grammar.pair_blocks();
  const std::size_t slots = blocks.slots(), cell = cell_of(first, last);
  const std::span<Item> own = std::span(items_).subspan(first_[cell], last_[cell] - first_[cell]);
  bool any = false;
  for (Item& item : own) {
    const std::uint32_t slot = blocks.slot(item.symbol);
    above_[item.symbol] = item.outside + (slot == none ? Real{0} : column_outside_[first * slots + slot]);
    any = any || above_[item.symbol] > 0;
  }
  if (!any) return;
  any = false;
  for (Item& item : own) {
    Real value = above_[item.symbol];
    for (const ParentRule& chain : grammar.chains(item.symbol))
      value += above_[chain.parent] * *grammar.chain_block(chain);
    item.outside = value;
  }
  for (const Item& item : own) {
    above_[item.symbol] = 0;
    if (item.outside == 0 || item.outside * item.inside < floor || last - first == 1) continue;
    add_weights(pair_.data(), blocks, item.symbol, item.outside);
    for (const std::uint32_t row : blocks.rows_of_parent(item.symbol)) left_seen_[blocks.rows()[row].left] = 1;
    any = true;
  }
  if (!any) return;
  edge_first_[cell] = edges_.size();
  for (std::size_t split = first + 1; split < last; ++split) {
    const std::size_t left = cell_of(first, split), right = cell_of(split, last);
    if (left_first_[left] == left_last_[left] || first_[right] == last_[right]) continue;
    const Real scale = power_of_two<Real>(exponent_[left] + exponent_[right] - exponent_[cell]);
    if (scale == 0) continue;
    const std::span<const LeftChild<Real>> lefts = left_children(left);
    if (sums_.size() < lefts.size()) sums_.resize(lefts.size());
    hand_products(column_outside_.data() + split * slots, sums_.data(), pair_.data(), column_.data() + split * slots,
                  left_seen_.data(), lefts.data(), lefts.size(), blocks.block_slots(), scale);
    for (std::size_t i = 0; i < lefts.size(); ++i) {
      const Real sum = scale * sums_[i];
      items_[lefts[i].item].outside += sum;
      if (sum * lefts[i].inside >= least_edge) list_edges(blocks, lefts[i], split, scale, least_edge);
    }
  }
  edge_last_[cell] = edges_.size();
  for (std::uint32_t left = 0; left < grammar.symbols(); ++left) {
    if (!left_seen_[left]) continue;
    left_seen_[left] = 0;
    clear_pairs(blocks, left);
  }
}

// Lists the pairs of one left child that are expected often enough.
template <class Real>
void PlainChart<Real>::list_edges(const PairBlocks<Real>& blocks, const LeftChild<Real>& left, std::size_t split,
                                  Real scale, Real least) {
  const std::size_t most = left.blocks * PairBlocks<Real>::lanes, first = split * blocks.slots();
  if (places_.size() < most) places_.resize(most);
  const std::size_t count = find_products(places_.data(), pair_.data(), column_.data() + first, left,
                                          blocks.block_slots(), scale * left.inside, least);
  for (std::size_t i = 0; i < count; ++i)
    edges_.push_back({blocks.pair(places_[i]), left.item, column_item_[first + blocks.slot_of_place(places_[i])],
                      static_cast<std::uint32_t>(split)});
}

template class PlainChart<float>;
template class PlainChart<double>;

}  // namespace treelm
