// Parsing with a hierarchy of grammars, each pruning the chart of the next.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "chart/cky.h"
#include "chart/forest.h"
#include "chart/grammar.h"
#include "chart/lexicon.h"
#include "chart/max_rule.h"
#include "chart/packed_forest.h"
#include "chart/refined_chart.h"
#include "chart/viterbi.h"

namespace treelm {

// `none` gives no tree, only the probability of the words.
enum class Decoding : std::uint8_t { max_rule_product, max_rule_sum, variational, viterbi, none };

struct ParserLevel {
  std::shared_ptr<const ChartGrammar<float>> grammar;
  std::shared_ptr<const ChartLexicon> lexicon;
  std::vector<std::uint32_t> parent;  // of every subcategory at the level before; empty for the first
};

struct ParserOptions {
  std::vector<double> thresholds;  // per level, natural logarithms of expected numbers
  // Natural logarithm of the share of the best item of a cell below which the coarsest chart drops others.
  double beam = -std::numeric_limits<double>::infinity();
  // Natural logarithm of the share of the first threshold that the expected number of a pair of children in the
  // coarsest chart needs for finer charts to look at it.
  double edges = -std::numeric_limits<double>::infinity();
  Decoding decoding = Decoding::max_rule_product;
  std::uint32_t max_unary = 4;
  ChartLimits limits;
  // With `visible` also a list of the k best trees without hidden nodes.
  std::uint32_t k = 1;
  std::uint64_t k_max_pops = 20;
  VisibleLabels visible;
  // Also the packed forest of rules that are expected at least so often; not with `viterbi`.
  bool wants_forest = false;
  double forest_least = 0;
};

// How a tree was found: as planned, after looser pruning, without pruning, or not at all.
enum class ParseStatus : std::uint8_t { parsed, loosened, unpruned, failed, too_long };

struct Parse {
  ParseStatus status = ParseStatus::failed;
  double log_prob = 0;  // of the words, in the last chart; a lower bound where it was pruned
  double score = 0;     // what the decoding makes as large as it can
  DecodedTree tree;
  TreeList list;  // of the best trees, where they were asked for
  PackedForest forest;
};

class ChartParser {
 public:
  // Throws Error(argument) unless the levels fit together and the first has no subcategories.
  explicit ChartParser(std::vector<ParserLevel> levels);

  struct Workspace {
    PlainChart<float> plain;
    RefinedChart<float> refined;
    MaxRuleDecoder<float> decoder;
    ViterbiDecoder<float> viterbi;
    MaxRuleForest max_rule_forest;
    ViterbiForest viterbi_forest;
    KBestFinder finder;
    Survivors survivors, next;
    std::vector<std::vector<TagScores>> words;  // per level
  };
  Parse parse(std::span<const std::uint32_t> words, const ParserOptions& options, Workspace& workspace) const;
  // Many sentences, in order; `starts` has one more entry than there are.
  std::vector<Parse> parse_all(std::span<const std::uint32_t> words, std::span<const std::uint64_t> starts,
                               const ParserOptions& options, std::size_t threads) const;
  std::uint32_t symbols() const { return levels_[0].grammar->symbols(); }
  std::uint32_t phrasal() const { return levels_[0].grammar->phrasal(); }

 private:
  ChartOutcome attempt(const ParserOptions& options, double shift, Workspace& workspace, Parse& out) const;
  bool decode(const ParserOptions& options, Workspace& workspace, Parse& out) const;
  bool list_trees(const ParserOptions& options, std::uint32_t max_unary, Workspace& workspace, Parse& out) const;

  std::vector<ParserLevel> levels_;
};

}  // namespace treelm
