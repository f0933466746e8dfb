// The best tree of a grammar with arbitrary real weights; ties go to right-branching trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "max_rule.h"

namespace treelm {

// Rules A -> B C with weights that are added up, any sign; above the tree stands ROOT -> X.
struct WeightedGrammar {
  std::uint32_t symbols = 0;
  std::span<const std::int32_t> rules;   // rows (A, B, C); their order decides between equals
  std::span<const double> weights;       // one a rule
  std::span<const double> root_weights;  // per symbol; minus infinity where it may not be the top
};

// Tags of the words with their weights; those of word i begin at starts[i].
struct WeightedTags {
  std::span<const std::int32_t> tags;
  std::span<const double> weights;
  std::span<const std::int64_t> starts;
};

struct WeightedParse {
  double score = 0;
  std::int64_t branching = 0;        // minus the sum over binary nodes of the lengths of their left children
  DecodedTree tree;                  // without ROOT; symbols are those of the grammar
  std::vector<std::uint32_t> rules;  // per node: its rule, or none at tags
};

// Refuse what does not fit together, and weights that are no numbers.
void check_weighted_grammar(const WeightedGrammar& grammar);
void check_weighted_tags(std::size_t symbols, const WeightedTags& words);

// The tree with the largest pair (score, branching); then the smaller split, then the earlier rule, and
// at the top the smaller symbol. Nothing if there is none.
std::optional<WeightedParse> best_weighted_tree(const WeightedGrammar& grammar, const WeightedTags& words);

}  // namespace treelm
