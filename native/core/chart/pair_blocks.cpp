#include "chart/pair_blocks.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "base/symbols.h"

namespace treelm {

template <class Real>
PairBlocks<Real>::PairBlocks(std::uint32_t symbols, std::span<const std::uint32_t> pair_left,
                             std::span<const std::uint32_t> pair_right, std::span<const Rule> rules) {
  std::vector<std::uint32_t> partners(symbols, 0), rights;
  for (const std::uint32_t right : pair_right) ++partners[right];
  for (std::uint32_t symbol = 0; symbol < symbols; ++symbol)
    if (partners[symbol] > 0) rights.push_back(symbol);
  std::stable_sort(rights.begin(), rights.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return partners[a] > partners[b]; });
  slot_.assign(symbols, none);
  for (std::uint32_t i = 0; i < rights.size(); ++i) slot_[rights[i]] = i;
  slots_ = (static_cast<std::uint32_t>(rights.size()) + lanes - 1) / lanes * lanes;

  std::vector<std::uint32_t> block_of(slots_ / lanes), used;
  first_block_.assign(1, 0);
  first_row_.assign(1, 0);
  std::vector<std::vector<Rule>> rules_of(pair_right.size());
  for (const Rule& rule : rules) rules_of[rule.pair].push_back(rule);
  for (std::uint32_t left = 0, first = 0, end; left < symbols; ++left, first = end) {
    for (end = first; end < pair_left.size() && pair_left[end] == left;) ++end;
    used.clear();
    for (std::uint32_t pair = first; pair < end; ++pair) used.push_back(slot_[pair_right[pair]] / lanes);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (const std::uint32_t block : used) {
      block_of[block] = static_cast<std::uint32_t>(block_slot_.size());
      block_slot_.push_back(block * lanes);
    }
    pair_.resize(block_slot_.size() * lanes, none);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::array<Real, lanes>> weights;  // by block and parent
    for (std::uint32_t pair = first; pair < end; ++pair) {
      const std::uint32_t slot = slot_[pair_right[pair]], block = block_of[slot / lanes];
      pair_[block * lanes + slot % lanes] = pair;
      for (const Rule& rule : rules_of[pair]) weights[{block, rule.parent}][slot % lanes] = rule.weight;
    }
    for (const auto& [place, row] : weights) {
      rows_.push_back({place.first, place.second, left});
      weights_.insert(weights_.end(), row.begin(), row.end());
    }
    first_block_.push_back(static_cast<std::uint32_t>(block_slot_.size()));
    first_row_.push_back(static_cast<std::uint32_t>(rows_.size()));
  }
  parent_first_.assign(symbols + 1, 0);
  for (const Row& row : rows_) ++parent_first_[row.parent + 1];
  std::partial_sum(parent_first_.begin(), parent_first_.end(), parent_first_.begin());
  std::vector<std::uint32_t> next(parent_first_.begin(), parent_first_.end() - 1);
  parent_rows_.resize(rows_.size());
  for (std::uint32_t row = 0; row < rows_.size(); ++row) parent_rows_[next[rows_[row].parent]++] = row;
}

template class PairBlocks<float>;
template class PairBlocks<double>;

}  // namespace treelm
