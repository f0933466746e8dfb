#include "chart/coarse_to_fine.h"

#include <cmath>
#include <limits>

#include "chart/inside_scorer.h"
#include "chart/prefix_scorer.h"
#include "tests/harness.h"
#include "trees/binary_trees.h"

using namespace treelm;
using treelm::test::default_recipe;
using treelm::test::Random;
using treelm::test::read;

namespace {

// S -> A B (.6) | B A (.4), A -> x (.7) | y (.3), B -> x (.5) | y (.5) below ROOT: `x y` has the
// probability .21 + .06.
struct Example {
  std::uint32_t phrasal = 2;
  std::vector<std::int32_t> substates{1, 1, 1, 1};
  std::vector<std::int32_t> unary{0, 1}, binary{1, 2, 3, 1, 3, 2};
  std::vector<double> unary_weights{1.0}, binary_weights{0.6, 0.4};
  std::vector<std::int64_t> starts{0, 2, 4};
  std::vector<std::int32_t> tags{2, 3, 2, 3};
  std::vector<double> scores{0.7, 0.5, 0.3, 0.5}, openness{0, 0}, open{0, 0};

  GrammarArrays grammar() const { return {phrasal, substates, unary, binary, unary_weights, binary_weights}; }
  LexiconArrays lexicon() const { return {phrasal, substates, starts, tags, scores, openness, open}; }
};

bool close(double a, double b) { return std::abs(a - b) < 1e-6; }

}  // namespace

TEST("chart: sums and finds the best tree") {
  const Example example;
  const auto lexicon = std::make_shared<ChartLexicon>(example.lexicon());
  const InsideScorer scorer(std::make_shared<ChartGrammar<double>>(example.grammar()), lexicon, nullptr, nullptr);
  InsideScorer::Workspace workspace;
  const std::vector<std::uint32_t> words{0, 1};
  CHECK(close(scorer.score(words, {}, workspace), std::log(0.27)));
  CHECK(std::isinf(scorer.score({}, {}, workspace)));
  CHECK(std::isinf(scorer.score(std::vector<std::uint32_t>{0}, {}, workspace)));
  const ChartParser parser({{std::make_shared<ChartGrammar<float>>(example.grammar()), lexicon, {}}});
  ParserOptions options;
  options.thresholds = {-10.0};
  options.decoding = Decoding::viterbi;
  ChartParser::Workspace charts;
  const Parse parse = parser.parse(words, options, charts);
  CHECK(parse.status == ParseStatus::parsed);
  CHECK(close(parse.score, std::log(0.21)));
  CHECK((parse.tree.symbol == std::vector<std::uint32_t>{0, 1, 2, 3}));
  CHECK(parser.parse(std::vector<std::uint32_t>{0, 0, 0}, options, charts).status == ParseStatus::failed);
  CHECK_THROWS_CODE(parser.parse(std::vector<std::uint32_t>{7}, options, charts), ErrorCode::argument);
}

TEST("chart: gives up what takes too long") {
  const Example example;
  const auto lexicon = std::make_shared<ChartLexicon>(example.lexicon());
  const InsideScorer scorer(std::make_shared<ChartGrammar<double>>(example.grammar()), lexicon, nullptr, nullptr);
  InsideScorer::Workspace workspace;
  ChartLimits limits;
  limits.work = 1;
  CHECK(std::isnan(scorer.score(std::vector<std::uint32_t>(50, 0), limits, workspace)));
}

TEST("chart: prefixes of a whole language") {
  const Example example;
  const PrefixScorer scorer(std::make_shared<ChartGrammar<double>>(example.grammar()),
                            std::make_shared<ChartLexicon>(example.lexicon()));
  const std::vector<double> scores = scorer.score(std::vector<std::uint32_t>{0, 1});
  CHECK(close(scores[0], std::log(0.6 * 0.7 + 0.4 * 0.5)));
  CHECK(close(scores[1], std::log(0.27)));
  CHECK(close(scores[2], std::log(0.27)));
}

TEST("chart: prefixes grow word by word") {
  const Example example;
  const auto grammar = std::make_shared<ChartGrammar<double>>(example.grammar());
  const auto lexicon = std::make_shared<ChartLexicon>(example.lexicon());
  const PrefixScorer scorer(grammar, lexicon);
  const std::vector<std::uint32_t> words{0, 1};
  const std::vector<double> all = scorer.score(words);
  const PrefixChart one = scorer.extend(scorer.start(), 0), two = scorer.extend(one, 1);
  CHECK(one.log_prefix() == all[0] && two.log_prefix() == all[1] && two.log_whole() == all[2]);
  CHECK(scorer.next(one, words)[1] == all[1]);
  CHECK(std::isinf(one.log_whole()) && one.words() == 1 && two.bytes() > 0);
  const PrefixChart dead = scorer.extend(two, 0);  // no sentence has three words
  CHECK(std::isinf(dead.log_prefix()) && std::isinf(dead.log_whole()));
  CHECK(std::isinf(scorer.next(dead, words)[0]) && std::isinf(scorer.extend(dead, 1).log_prefix()));
  ChartLimits limits;
  limits.work = 1;
  CHECK(std::isnan(scorer.score(words, limits)[2]));
  const PrefixScorer other(std::make_shared<ChartGrammar<double>>(example.grammar()), lexicon);
  CHECK_THROWS_CODE(other.extend(one, 0), ErrorCode::argument);
  CHECK_THROWS_CODE(other.next(one, words), ErrorCode::argument);
  CHECK_THROWS_CODE(scorer.extend(one, 77), ErrorCode::argument);
}

TEST("chart: refuses forged grammars") {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    Example example;
    const auto any = [&] { return static_cast<std::int32_t>(random.below(8)) - 2; };
    switch (random.below(8)) {
      case 0: example.substates[random.below(4)] = any(); break;
      case 1: example.binary[random.below(6)] = any(); break;
      case 2: example.unary[random.below(2)] = any(); break;
      case 3: example.binary_weights[random.below(2)] = random.below(2) ? -1.0 : std::nan(""); break;
      case 4: example.phrasal = static_cast<std::uint32_t>(any()); break;
      case 5: example.starts[random.below(3)] = any(); break;
      case 6: example.tags[random.below(4)] = any(); break;
      default: example.binary_weights.resize(random.below(5)); break;
    }
    try {
      const auto lexicon = std::make_shared<ChartLexicon>(example.lexicon());
      const auto grammar = std::make_shared<ChartGrammar<double>>(example.grammar());
      const InsideScorer scorer(grammar, lexicon, nullptr, nullptr);
      InsideScorer::Workspace workspace;
      scorer.score(std::vector<std::uint32_t>{0, 1, 0}, {}, workspace);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::argument);
    }
  }
}

TEST("chart: refuses unary cycles without a sum") {
  Example example;
  example.unary = {0, 1, 1, 1};
  example.unary_weights = {1.0, 0.5};
  const ChartGrammar<double> good(example.grammar());
  CHECK(close(*good.chain_block(good.chains(1)[1]), 1.0));  // .5 + .25 + ..
  example.unary_weights = {1.0, 1.0};
  CHECK_THROWS_CODE(ChartGrammar<double>(example.grammar()), ErrorCode::argument);
}

TEST("binary trees: of random trees are whole") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    BinaryTreeBuilder builder(seed % 2 ? Branching::left : Branching::right);
    std::string text;
    for (int i = 0; i < 5; ++i) text += treelm::test::random_tree(random) + "\n";
    builder.add(read(default_recipe(), text));
    const BinaryTrees trees = builder.finish();
    CHECK(trees.start.back() == trees.symbol.size());
    CHECK(trees.source.size() + 1 == trees.start.size());
    for (std::size_t node = 0; node < trees.symbol.size(); ++node) {
      CHECK((trees.word[node] == none) == (trees.symbol[node] < trees.phrasal));
      CHECK((trees.word[node] == none) == (trees.left[node] == node + 1));
    }
  }
}
