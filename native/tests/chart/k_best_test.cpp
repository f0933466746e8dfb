#include "chart/k_best.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "chart/coarse_to_fine.h"
#include "chart/packed_forest.h"
#include "chart/tree_list_text.h"
#include "tests/harness.h"

using namespace treelm;
using treelm::test::Random;

namespace {

// P -> P P | P T | T P | T T below ROOT: every way to bracket a sentence is a tree.
struct Brackets {
  std::uint32_t phrasal = 2;
  std::vector<std::int32_t> substates{1, 1, 1};
  std::vector<std::int32_t> unary{0, 1}, binary{1, 1, 1, 1, 1, 2, 1, 2, 1, 1, 2, 2};
  std::vector<double> unary_weights{1.0}, binary_weights{0.2, 0.1, 0.1, 0.1};
  std::vector<std::int64_t> starts{0, 1};
  std::vector<std::int32_t> tags{2};
  std::vector<double> scores{0.5}, openness{0}, open{0};

  GrammarArrays grammar() const { return {phrasal, substates, unary, binary, unary_weights, binary_weights}; }
  LexiconArrays lexicon() const { return {phrasal, substates, starts, tags, scores, openness, open}; }
};

VisibleLabels all_visible() { return {{0, 1, 2, 3}, {0, 1, 2}}; }

Parse parsed(std::size_t words, std::uint32_t k, Decoding decoding, bool wants_forest) {
  const Brackets example;
  const ChartParser parser({{std::make_shared<ChartGrammar<float>>(example.grammar()),
                             std::make_shared<ChartLexicon>(example.lexicon()),
                             {}}});
  ParserOptions options;
  options.thresholds = {-std::numeric_limits<double>::infinity()};
  options.decoding = decoding;
  options.k = k;
  options.k_max_pops = 20 * k;
  options.visible = all_visible();
  options.wants_forest = wants_forest;
  ChartParser::Workspace workspace;
  return parser.parse(std::vector<std::uint32_t>(words, 0), options, workspace);
}

}  // namespace

TEST("k-best: lists every bracketing once, the best first") {
  for (const Decoding decoding : {Decoding::viterbi, Decoding::max_rule_product, Decoding::max_rule_sum}) {
    const Parse parse = parsed(6, 1000, decoding, false);
    CHECK_EQ(parse.list.trees(), 42u);  // the Catalan number of five pairs
    CHECK(!parse.list.is_limited);
    CHECK(std::is_sorted(parse.list.score.rbegin(), parse.list.score.rend()));
    CHECK_EQ(parse.list.start.back(), parse.list.label.size());
  }
  CHECK_EQ(parsed(6, 5, Decoding::viterbi, false).list.trees(), 5u);
  CHECK_EQ(parsed(200, 50, Decoding::viterbi, false).list.trees(), 50u);
}

TEST("k-best: a packed forest holds the trees of its chart") {
  const Brackets example;
  const Parse parse = parsed(6, 1000, Decoding::max_rule_product, true);
  check_packed_forest(parse.forest, 3, 2);
  const ChartGrammar<double> grammar(example.grammar());
  const ChartLexicon lexicon(example.lexicon());
  const std::vector<std::uint32_t> words(6, 0);
  CHECK(std::abs(forest_log_prob(parse.forest, grammar, lexicon, words) - parse.log_prob) < 1e-5);
  StoredForest source(parse.forest, 2, 4);
  KBestFinder finder;
  TreeList list;
  finder.find(source, all_visible(), {1000, 4, 20000, false}, list);
  CHECK(list.score == parse.list.score);
  CHECK(list.label == parse.list.label);
  CHECK(list.size == parse.list.size);
  CHECK_THROWS_CODE(forest_log_prob(parse.forest, grammar, lexicon, std::vector<std::uint32_t>(5, 0)),
                    ErrorCode::argument);
}

TEST("k-best: forged forests are refused or harmless") {
  const Brackets example;
  const PackedForest good = parsed(5, 1, Decoding::max_rule_product, true).forest;
  const ChartGrammar<double> grammar(example.grammar());
  const ChartLexicon lexicon(example.lexicon());
  Random random(7);
  KBestFinder finder;
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    PackedForest forest = good;
    std::vector<std::uint32_t>* const arrays[] = {&forest.symbol, &forest.first, &forest.last,
                                                  &forest.head,   &forest.left,  &forest.right};
    auto& array = *arrays[random.below(6)];
    const std::uint32_t values[] = {0, 1, 2, 3, 5, 6, 17, 0xFFFFFFFEu, 0xFFFFFFFFu};
    array[random.below(array.size())] = values[random.below(9)];
    if (random.below(20) == 0) array.pop_back();
    try {
      check_packed_forest(forest, 3, 2);
    } catch (const Error&) {
      ++refused;
      continue;
    }
    TreeList list;
    StoredForest source(forest, 2, 4);
    finder.find(source, all_visible(), {20, 4, 400, false}, list);
    forest_log_prob(forest, grammar, lexicon, std::vector<std::uint32_t>(5, 0));
  }
  CHECK(refused > 500);
}

TEST("k-best: forged lists are refused") {
  const std::vector<std::uint32_t> label{0, 1, 2, 2}, size{4, 3, 1, 1};
  const std::vector<std::uint64_t> trees{0, 4}, lists{0, 1}, words{0, 2};
  const std::vector<double> score{-1.5};
  const std::vector<std::string_view> labels{"ROOT", "S", "A"}, text{"x", "y"};
  const TreeLists good{label, size, trees, score, lists, labels, text, words};
  check_tree_lists(good, 3, 2);
  CHECK_EQ(write_tree_lists(good, true), "-1.5\t(ROOT (S (A x) (A y)))\n\n");
  CHECK_EQ(write_tree_lists(good, false), "(ROOT (S (A x) (A y)))\n");
  for (const std::vector<std::uint32_t>& wrong :
       {std::vector<std::uint32_t>{4, 3, 2, 1}, {4, 3, 1, 0}, {4, 4, 1, 1}, {3, 3, 1, 1}, {4, 1, 1, 1}, {4, 3, 1}}) {
    TreeLists forged = good;
    forged.size = wrong;
    CHECK_THROWS_CODE(check_tree_lists(forged, 3, 2), ErrorCode::argument);
  }
  CHECK_THROWS_CODE(check_tree_lists(good, 2, 2), ErrorCode::argument);
  CHECK_THROWS_CODE(check_tree_lists(good, 3, 3), ErrorCode::argument);
  CHECK_THROWS_CODE(check_visible_labels(all_visible(), 4, 2), ErrorCode::argument);
  CHECK_THROWS_CODE(check_visible_labels({{0, 1, 2, 2}, {0, 1}}, 3, 2), ErrorCode::argument);
}
