// Grammars with arbitrary real weights, and the plain way to find the best tree: a dense chart, every rule at
// every split. It is the yardstick of `WeightedChart`, which is the one to use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace treelm {

// Rules A -> B C with weights that are added up, any sign; above the tree stands ROOT -> X.
struct WeightedGrammar {
  std::uint32_t symbols = 0;
  std::span<const std::int32_t> rules;   // rows (A, B, C); their order decides between equals
  std::span<const double> weights;       // one per rule
  std::span<const double> root_weights;  // per symbol; minus infinity where it may not be the top
};

// Tags of the words with their weights; those of word i begin at starts[i].
struct WeightedTags {
  std::span<const std::int32_t> tags;
  std::span<const double> weights;
  std::span<const std::int64_t> starts;
};

inline constexpr double impossible_weight = -std::numeric_limits<double>::infinity();

// The best tree of a sentence, without ROOT; minus infinity and no nodes if there is none.
struct WeightedTree {
  double score = impossible_weight;
  std::int64_t branching = 0;                 // minus the sum over binary nodes of the lengths of their left children
  std::vector<std::uint32_t> symbols, rules;  // of nodes in preorder; no rule at tags

  void clear();
};

// What a chart knows about a symbol on a span.
struct WeightedItem {
  double score = impossible_weight;
  std::int64_t branching = 0;
  std::uint32_t rule = 0, split = 0, symbol = 0;

  bool is_below(double other, std::int64_t other_branching) const {
    return score != other ? score < other : branching < other_branching;
  }
  // Takes what is offered if it is better: by score, branching, smaller split (offered first), earlier rule.
  void offer(double new_score, std::int64_t new_branching, std::uint32_t new_rule, std::uint32_t new_split) {
    const bool equal = new_score == score && new_branching == branching && new_split == split;
    if (!is_below(new_score, new_branching) && !(equal && new_rule < rule)) return;
    score = new_score;
    branching = new_branching;
    rule = new_rule;
    split = new_split;
  }
};

// Refuse what does not fit together, and weights that are NaN or infinite.
void check_weighted_grammar(const WeightedGrammar& grammar);
void check_weighted_tags(std::size_t symbols, const WeightedTags& words);

// The tree with the largest pair (score, branching); then the smaller split, then the earlier rule, and
// at the top the smaller symbol. Arguments are not checked.
void plain_weighted_tree(const WeightedGrammar& grammar, const WeightedTags& words, WeightedTree& found);

}  // namespace treelm
