// Exact probabilities of sentences: nothing pruned, in double precision.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "chart/cky.h"
#include "chart/grammar.h"
#include "chart/kept_cells.h"
#include "chart/lexicon.h"
#include "chart/refined_chart.h"

namespace treelm {

class InsideScorer {
 public:
  // The grammar, and the same without subcategories, which finds out what can stand where; a plain
  // grammar needs no second one. Throws Error(argument) unless they fit together.
  InsideScorer(std::shared_ptr<const ChartGrammar<double>> grammar, std::shared_ptr<const ChartLexicon> lexicon,
               std::shared_ptr<const ChartGrammar<double>> plain, std::shared_ptr<const ChartLexicon> plain_lexicon);

  struct Workspace {
    PlainChart<double> plain;
    RefinedChart<double> refined;
    Survivors survivors;
    std::vector<TagScores> words, plain_words;
    ChartMemory<double> memory;
  };
  // Natural logarithm of the probability; minus infinity without a parse, not a number beyond the limits. With
  // `remember` spans that had the same words in an earlier sentence of this workspace are not filled again.
  double score(std::span<const std::uint32_t> words, const ChartLimits& limits, Workspace& workspace,
               bool remember = false) const;
  // A whole chart with outside scores, subcategories and all; gives the log probability.
  double fill(std::span<const std::uint32_t> words, const ChartLimits& limits, Workspace& workspace) const;
  // Its items: rows (first word, word after the last, symbol, subcategory), natural logarithms of the
  // inside scores, and expected numbers.
  void list_items(const Workspace& workspace, std::vector<std::uint32_t>& rows, std::vector<double>& inside,
                  std::vector<double>& expected) const;
  // Sentences that share most of their words, such as those of an n-best list, are scored faster side by side.
  std::vector<double> score_all(std::span<const std::uint32_t> words, std::span<const std::uint64_t> starts,
                                const ChartLimits& limits, std::size_t threads) const;

 private:
  void look_up(const ChartLexicon& lexicon, std::span<const std::uint32_t> words, std::vector<TagScores>& out) const;

  std::shared_ptr<const ChartGrammar<double>> grammar_, plain_;
  std::shared_ptr<const ChartLexicon> lexicon_, plain_lexicon_;
};

}  // namespace treelm
