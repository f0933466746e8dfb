// Parsed charts as forests to find trees in: of symbols with max-rule weights, or of subcategories with
// the weights of the grammar.
#pragma once

#include <cstdint>
#include <vector>

#include "chart/k_best.h"
#include "chart/max_rule.h"
#include "chart/refined_chart.h"
#include "chart/viterbi.h"

namespace treelm {

// Slots are the items of the chart.
class MaxRuleForest final : public ForestSource {
 public:
  // The chart has kept its rules; the decoder has found a tree in it, or bounds.
  void open(const RefinedChart<float>& chart, const ChartGrammar<float>& grammar, const MaxRuleDecoder<float>& decoder,
            Objective objective);

  std::uint32_t slots() const override { return static_cast<std::uint32_t>(chart_->items()); }
  std::uint32_t root() const override { return root_; }
  std::uint32_t symbol(std::uint32_t slot) const override { return chart_->item(slot).symbol; }
  bool is_leaf(std::uint32_t slot) const override { return symbol(slot) >= grammar_->phrasal(); }
  LongScore highest(std::uint32_t slot) const override { return decoder_->highest(slot); }
  LongScore highest_without_unary(std::uint32_t slot) const override { return decoder_->highest_without_unary(slot); }
  void list_binary(std::uint32_t slot, std::vector<ForestEdge>& out) override;
  void list_unary(std::uint32_t slot, std::vector<ForestEdge>& out) override;

 private:
  double weight(std::uint32_t parent, float expected) const {
    return MaxRuleDecoder<float>::rule_weight(*chart_, *grammar_, objective_, parent, static_cast<double>(expected));
  }
  void sort_cell(std::size_t cell);

  const RefinedChart<float>* chart_ = nullptr;
  const ChartGrammar<float>* grammar_ = nullptr;
  const MaxRuleDecoder<float>* decoder_ = nullptr;
  Objective objective_ = Objective::product;
  std::uint32_t root_ = none;
  std::vector<std::uint32_t> cell_;          // per item
  std::vector<std::uint32_t> first_, last_;  // per item: its rules in sorted_
  std::vector<char> is_sorted_;              // per cell
  std::vector<ForestEdge> sorted_;
};

// Slots are the places of subcategories in the chart.
class ViterbiForest final : public ForestSource {
 public:
  // The decoder has gone through the chart.
  void open(const RefinedChart<float>& chart, const ChartGrammar<float>& grammar, const ViterbiDecoder<float>& decoder);

  std::uint32_t slots() const override { return static_cast<std::uint32_t>(item_.size()); }
  std::uint32_t root() const override { return root_; }
  std::uint32_t symbol(std::uint32_t slot) const override { return chart_->item(item_[slot]).symbol; }
  bool is_leaf(std::uint32_t slot) const override { return symbol(slot) >= grammar_->phrasal(); }
  LongScore highest(std::uint32_t slot) const override { return decoder_->highest(slot, cell_[item_[slot]]); }
  LongScore highest_without_unary(std::uint32_t slot) const override {
    return decoder_->highest_without_unary(slot, cell_[item_[slot]]);
  }
  void list_binary(std::uint32_t slot, std::vector<ForestEdge>& out) override;
  void list_unary(std::uint32_t slot, std::vector<ForestEdge>& out) override;

 private:
  const RefinedChart<float>* chart_ = nullptr;
  const ChartGrammar<float>* grammar_ = nullptr;
  const ViterbiDecoder<float>* decoder_ = nullptr;
  std::uint32_t root_ = none;
  std::vector<std::uint32_t> cell_, item_;  // per item; per place
};

}  // namespace treelm
