// Left corners of a grammar: what may begin where a symbol begins, summed over all chains.
#pragma once

#include <cstdint>
#include <vector>

#include "chart/grammar.h"

namespace treelm {

class LeftCorners {
 public:
  // For grammars without subcategories. Throws Error(argument) if chains of left corners have no sum, that is if
  // the grammar recurses to the left for ever, or if too many phrases lie on one cycle.
  explicit LeftCorners(const ChartGrammar<double>& grammar);
  // Given the weights with which symbols begin, adds those with which they begin as left corners of others; gives
  // the multiplications it took.
  std::uint64_t add(std::vector<double>& weights) const;

 private:
  struct Edge {
    std::uint32_t child;
    double weight;
  };
  // Phrases that are left corners of each other.
  struct Component {
    std::vector<std::uint32_t> members;
    std::vector<double> sums;  // over all ways from member to member, row by row; empty if there is none
  };
  std::vector<Component> components_;       // parents before children
  std::vector<std::vector<Edge>> leaving_;  // per symbol, left corners in other components
};

}  // namespace treelm
