// The pairs of children of a grammar without subcategories, laid out so that loops over them fill whole vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chart/block.h"

namespace treelm {

// Right children have slots, those with many left partners first, so that the partners of one left child lie in few
// blocks of neighbouring slots. Each block of a left child has places for its pairs, some of which stay unused.
template <class Real>
class PairBlocks {
 public:
  static constexpr std::uint32_t lanes = Block<Real>::lanes;

  // The rules of one parent whose pairs lie in one block: lanes weights, 0 where there is no rule.
  struct Row {
    std::uint32_t block, parent, left;
  };

  struct Rule {
    std::uint32_t pair, parent;
    Real weight;
  };

  PairBlocks() = default;
  // Pairs are ordered by left child.
  PairBlocks(std::uint32_t symbols, std::span<const std::uint32_t> pair_left, std::span<const std::uint32_t> pair_right,
             std::span<const Rule> rules);

  // Numbers of slots and of places, both in whole blocks.
  std::uint32_t slots() const { return slots_; }
  std::size_t places() const { return pair_.size(); }
  // The slot of a symbol as a right child, or none.
  std::uint32_t slot(std::uint32_t symbol) const { return slot_[symbol]; }
  // The blocks of a left child; the places of block b begin at b * lanes.
  std::uint32_t first_block(std::uint32_t left) const { return first_block_[left]; }
  // Per block the slot of its first place.
  const std::uint32_t* block_slots() const { return block_slot_.data(); }
  // The pair of a place, or none.
  std::uint32_t pair(std::size_t place) const { return pair_[place]; }
  std::uint32_t slot_of_place(std::uint32_t place) const { return block_slot_[place / lanes] + place % lanes; }
  // Rows of a left child.
  std::uint32_t first_row(std::uint32_t left) const { return first_row_[left]; }
  const Row* rows() const { return rows_.data(); }
  const Real* weights() const { return weights_.data(); }
  // The rows a parent is made of.
  std::span<const std::uint32_t> rows_of_parent(std::uint32_t parent) const {
    return std::span(parent_rows_).subspan(parent_first_[parent], parent_first_[parent + 1] - parent_first_[parent]);
  }

 private:
  std::uint32_t slots_ = 0;
  std::vector<std::uint32_t> slot_, first_block_, block_slot_, pair_, first_row_, parent_first_, parent_rows_;
  std::vector<Row> rows_;
  BlockVector<Real> weights_;
};

extern template class PairBlocks<float>;
extern template class PairBlocks<double>;

}  // namespace treelm
