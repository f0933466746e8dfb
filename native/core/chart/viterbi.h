// The most probable derivation, subcategories and all, over the items and edges of a refined chart.
#pragma once

#include <cstdint>
#include <vector>

#include "chart/max_rule.h"
#include "chart/refined_chart.h"

namespace treelm {

template <class Real>
class ViterbiDecoder {
 public:
  // After `RefinedChart::inside`; false if there is no derivation.
  bool decode(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar, const std::vector<TagScores>& words,
              DecodedTree& out);
  // Natural logarithm of the probability of the derivation.
  double score() const { return score_; }
  // By place of the chart's subcategories: no derivation is more probable, nor is one that ends in no
  // unary rule.
  LongScore highest(std::size_t place, std::size_t cell) const { return long_score(best_[place], exponent_[cell]); }
  LongScore highest_without_unary(std::size_t place, std::size_t cell) const {
    return long_score(base_[place], exponent_[cell]);
  }

 private:
  void fill_cell(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar,
                 const std::vector<TagScores>& words, std::size_t first, std::size_t last);
  void close_cell(const RefinedChart<Real>& chart, const ChartGrammar<Real>& grammar, std::size_t cell);
  bool build(const RefinedChart<Real>& chart, DecodedTree& out);

  // How a subcategory is best made: by a binary rule of two children, by a unary rule of one, by a word.
  struct Way {
    std::uint32_t left, right;      // items; right is none for a unary rule, both for a word
    std::uint16_t left_x, right_x;  // their subcategories
  };
  std::vector<double> best_, base_;  // per place of the chart's items; before unary rules
  std::vector<Way> way_;
  std::vector<int> exponent_;  // per cell
  std::vector<std::uint32_t> slot_;
  double score_ = 0;
};

extern template class ViterbiDecoder<float>;
extern template class ViterbiDecoder<double>;

}  // namespace treelm
