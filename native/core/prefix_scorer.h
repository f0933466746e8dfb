// Probabilities of prefixes under a probabilistic context-free grammar, exact (Jelinek and Lafferty 1991):
// chains of left corners are summed once, so no derivation is cut off.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "chart_lexicon.h"
#include "cky.h"
#include "grammar.h"

namespace treelm {

class PrefixScorer {
 public:
  // For grammars without subcategories. Throws Error(argument) if left corners have no sum, that is if
  // the grammar goes on to the left for ever.
  PrefixScorer(std::shared_ptr<const ChartGrammar<double>> grammar, std::shared_ptr<const ChartLexicon> lexicon);

  // Natural logarithms of the probabilities that a sentence begins with the first 1, 2, .. words; the last
  // entry of the result is that of the words as a whole sentence.
  std::vector<double> score(std::span<const std::uint32_t> words) const;

 private:
  std::shared_ptr<const ChartGrammar<double>> grammar_;
  std::shared_ptr<const ChartLexicon> lexicon_;
  // Expected number of C as the left corner of A, over all chains, C = A included: rows by A.
  struct Corner {
    std::uint32_t below;
    double weight;
  };
  std::vector<std::vector<Corner>> corners_;
};

}  // namespace treelm
