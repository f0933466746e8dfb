// Right-hand sides that were never seen, spelled out symbol by symbol: a mixture of two 4-gram products,
// one given the parent, with STOP behind the last symbol. Symbols are labels seen as a child, then
// <usym> where there is one, then STOP, then START.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backoff/chain_sampler.h"
#include "backoff/table.h"

namespace treelm {

class YieldModel {
 public:
  static constexpr std::size_t history = 3;

  // `symbol_of`: the symbol of every label, `none` for those never seen as a child. `seen_parents`:
  // whether each label was seen as a parent. `weight`: of the product given the parent.
  YieldModel(std::shared_ptr<const BackoffTable> conditional, std::shared_ptr<const BackoffTable> unconditional,
             std::vector<std::uint32_t> symbol_of, std::uint32_t seen_symbols, bool unknown,
             std::vector<std::uint8_t> seen_parents, double weight);

  std::uint32_t usym() const { return unknown_ ? seen_symbols_ : none; }
  std::uint32_t stop() const { return seen_symbols_ + (unknown_ ? 1u : 0u); }
  std::uint32_t start() const { return stop() + 1; }
  // The symbol of a label, that of <usym> for one never seen as a child, `none` where there is none.
  std::uint32_t symbol(std::uint32_t label) const {
    const std::uint32_t found = label < symbol_of_.size() ? symbol_of_[label] : none;
    return found == none ? usym() : found;
  }
  bool is_parent(std::uint32_t label) const { return label < seen_parents_.size() && seen_parents_[label] != 0; }

  // b(symbols | parent); 0 if one of the symbols is `none`.
  double probability(std::uint32_t parent, std::span<const std::uint32_t> symbols) const;
  // Its logarithm, also where it is smaller than any double.
  double log_probability(std::uint32_t parent, std::span<const std::uint32_t> symbols) const;

 private:
  double log_product(const BackoffTable& table, const std::uint32_t* parent,
                     std::span<const std::uint32_t> symbols) const;

  friend class YieldSampler;
  std::shared_ptr<const BackoffTable> conditional_, unconditional_;
  std::vector<std::uint32_t> symbol_of_;
  std::uint32_t seen_symbols_;
  bool unknown_;
  std::vector<std::uint8_t> seen_parents_;
  double weight_;
};

// Draws right-hand sides; <usym> is never drawn.
class YieldSampler {
 public:
  // A longer draw is taken to be endless.
  static constexpr std::size_t longest = 10000;

  explicit YieldSampler(std::shared_ptr<const YieldModel> model);

  // Appends the labels drawn for a parent to `out`; draws are numbered from `counter` on, which is moved
  // behind the last one. Throws Error(table) for one without an end.
  void draw(std::uint32_t parent, std::uint64_t seed, std::uint64_t stream, std::uint64_t& counter,
            std::vector<std::uint32_t>& out) const;

 private:
  std::shared_ptr<const YieldModel> model_;
  ChainSampler conditional_, unconditional_;
  std::vector<std::uint32_t> label_of_;  // by symbol
};

}  // namespace treelm
