// Treelet models from trees to probabilities and samples.
#include "treelet/scorer.h"

#include <cmath>
#include <map>
#include <set>

#include "backoff/estimate.h"
#include "tests/harness.h"
#include "treelet/sampler.h"
#include "trees/event_templates.h"

using namespace treelm;
using namespace treelm::test;

namespace {

using Rows = std::vector<std::uint32_t>;

const std::string two_trees = "(ROOT (S (N dogs) (V bark)))\n(ROOT (S (N cats) (V bark)))\n";

// A table with a discount of 1/2 at every level; `base` is asked for each outcome with its first context.
template <class Base>
std::shared_ptr<const BackoffTable> halved(const Rows& rows, std::uint32_t columns, ChainShape chain, TableShape shape,
                                           Base&& base) {
  EventCounter counter(columns, 1, 1024);
  counter.add(rows.data(), rows.size() / columns);
  const auto events = std::make_shared<SortedEvents>(counter.finish());
  const ChainCounts counts(events, chain, false, true, 1);
  EstimatePlan plan;
  plan.shape = std::move(shape);
  plan.shape.widths = chain.widths;
  plan.shape.value_bits = 64;
  for (std::size_t i = 0; i < chain.levels(); ++i) plan.levels.push_back({{0.5, 0.5, 0.5}, {}, false, 1});
  std::vector<double> given;
  if (plan.shape.base_size == 0) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> last;  // outcome and label, as the last level has them
    for (std::size_t i = 0; i < rows.size(); i += columns) last.emplace(rows[i], rows[i + 1]);
    for (const auto& [outcome, label] : last) given.push_back(base(outcome, label));
    plan.base = given;
  }
  return estimate(counts, plan, [](std::uint64_t, std::uint64_t) {});
}

TableShape shape_of(std::uint32_t outcomes, std::uint32_t first_contexts, std::uint32_t base_size) {
  TableShape shape;
  shape.outcomes = outcomes;
  shape.first_contexts = first_contexts;
  shape.base_size = base_size;
  return shape;
}

const auto no_base = [](std::uint32_t, std::uint32_t) { return 0.0; };

// The model of the two trees, over symbols without <usym>.
struct Oracle {
  std::shared_ptr<const TreeletModel> model;
  std::vector<std::uint8_t> is_tag;
};

Oracle make_oracle() {
  const auto encoder = std::make_shared<const WordEncoder>(std::vector<std::string>{"<unk>", "dogs", "cats", "bark"},
                                                           std::vector<bool>(4, false),
                                                           std::vector<WordEncoder::LateEntry>{}, std::nullopt);
  EventExtractor extractor(
      {{Site::phrase, {{Attribute::yield}, {Attribute::label}, {Attribute::parent}, {Attribute::parent_rule}}},
       {Site::tag,
        {{Attribute::word},
         {Attribute::label},
         {Attribute::right},
         {Attribute::parent_rule},
         {Attribute::word, 1},
         {Attribute::word, 2}}}},
      encoder, false);
  std::vector<Rows> rows(2);
  extractor.extract(read(verbatim_recipe(), two_trees), rows);
  CHECK_EQ(rows[0].size(), 4 * 4);  // ROOT and S of two trees
  CHECK_EQ(rows[1].size(), 4 * 6);  // four words

  // Right-hand sides, symbol by symbol.
  const std::uint32_t labels = extractor.labels().size();
  std::vector<std::uint32_t> symbol_of(labels, none);
  std::vector<std::uint8_t> parents(labels, 0), is_tag(labels, 0);
  std::uint32_t symbols = 0;
  for (const char* label : {"S", "N", "V"}) symbol_of[extractor.labels().find(label)] = symbols++;
  for (const char* label : {"N", "V"}) is_tag[extractor.labels().find(label)] = 1;
  const std::uint32_t stop = symbols, start = symbols + 1;
  Rows bound, free;
  for (std::size_t i = 0; i < rows[0].size(); i += 4) {
    const std::uint32_t parent = rows[0][i + 1];
    parents[parent] = 1;
    std::vector<std::uint32_t> sequence;
    for (const std::uint32_t label : extractor.yields()[rows[0][i]]) sequence.push_back(symbol_of[label]);
    sequence.push_back(stop);
    std::uint32_t before[] = {start, start, start};
    for (const std::uint32_t symbol : sequence) {
      for (const std::uint32_t value : {symbol, parent, before[0], before[1], before[2]}) bound.push_back(value);
      for (const std::uint32_t value : {symbol, before[0], before[1], before[2]}) free.push_back(value);
      before[2] = before[1], before[1] = before[0], before[0] = symbol;
    }
  }
  const auto conditional =
      halved(bound, 5, {{4, 3, 2, 1}, {none, start, start, start}}, shape_of(start + 1, labels, 4), no_base);
  const auto unconditional =
      halved(free, 4, {{3, 2, 1, 0}, {start, start, start}}, shape_of(start + 1, start + 1, 4), no_base);
  const auto base =
      std::make_shared<const YieldModel>(conditional, unconditional, symbol_of, symbols, false, parents, 0.9);

  const std::uint32_t begin = extractor.sentence_start();
  const auto yields = extractor.yields();
  const auto nonterminal = halved(rows[0], 4, {{3, 2, 1}, {none, none, none}}, shape_of(yields.size(), labels, 0),
                                  [&](std::uint32_t yield, std::uint32_t label) {
                                    std::vector<std::uint32_t> sequence;
                                    for (const std::uint32_t child : yields[yield])
                                      sequence.push_back(symbol_of[child]);
                                    return base->probability(label, sequence);
                                  });
  const auto terminal = halved(rows[1], 6, {{5, 4, 3, 2, 1, 0}, {none, none, none, begin, begin}},
                               shape_of(encoder->size(), labels, encoder->size()), no_base);
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < labels; ++i) names.emplace_back(extractor.labels()[i]);
  Rows rules{none, none};
  for (std::uint32_t i = 1; i < extractor.rules().size(); ++i)
    rules.insert(rules.end(), extractor.rules()[i].begin(), extractor.rules()[i].end());
  return {std::make_shared<const TreeletModel>(names, yields.data(), yields.starts(), rules, nonterminal, terminal,
                                               base, encoder, std::make_shared<const TreeRecipe>(verbatim_recipe()),
                                               std::vector<std::string>{}),
          is_tag};
}

bool near(double a, double b, double tolerance = 1e-12) { return std::fabs(a - b) < tolerance; }

}  // namespace

TEST("treelet model: the two trees of the specification") {
  const Oracle oracle = make_oracle();
  const PackedTrees trees = read(verbatim_recipe(), two_trees);
  const std::vector<std::uint64_t> starts{0, 1, 2};
  const double expected = std::log(40310304924443508647.0 / 86091760454860800000.0);
  for (const std::size_t threads : {1u, 3u})
    for (const bool transform : {false, true}) {
      const ListScores scores = score_treelets(*oracle.model, trees, starts, transform, threads);
      CHECK_EQ(scores.log_probability.size(), 2);
      for (const double value : scores.log_probability) CHECK(near(value, expected));
    }
  const std::uint32_t word[] = {
      3,
      oracle.model->label("V"),
      EventExtractor::no_sibling,
      oracle.model->rule(oracle.model->label("S"),
                         oracle.model->yield(std::vector{oracle.model->label("N"), oracle.model->label("V")})),
      1,
      oracle.model->sentence_start()};
  CHECK(near(oracle.model->word_probability(word), 1519.0 / 1536));
}

TEST("treelet model: equal trees of a list have one form, each subtree is scored once") {
  const Oracle oracle = make_oracle();
  const std::string tree = "(ROOT (S (N dogs) (V bark)))\n", other = "(ROOT (S (V dogs) (V bark)))\n";
  const PackedTrees trees = read(verbatim_recipe(), tree + other + tree + tree);
  const ListScores scores = score_treelets(*oracle.model, trees, std::vector<std::uint64_t>{0, 4}, true, 1);
  CHECK_EQ(scores.form[0], scores.form[2]);
  CHECK_EQ(scores.form[0], scores.form[3]);
  CHECK(scores.form[0] != scores.form[1]);
  CHECK_EQ(scores.log_probability[0], scores.log_probability[3]);
  CHECK(scores.log_probability[1] < scores.log_probability[0]);
  CHECK_EQ(scores.nodes, 16);
  CHECK(scores.scored < scores.nodes);
}

TEST("treelet model: lists that do not fit, and labels that transforms write, are refused") {
  const Oracle oracle = make_oracle();
  const PackedTrees trees = read(verbatim_recipe(), two_trees);
  for (const std::vector<std::uint64_t>& starts : {std::vector<std::uint64_t>{}, {0, 1}, {1, 2}, {0, 2, 1, 2}, {0, 3}})
    CHECK_THROWS_CODE(score_treelets(*oracle.model, trees, starts, true, 1), ErrorCode::argument);
  // A label that was never seen has no symbol here, as there is no <usym>.
  const PackedTrees strange = read(verbatim_recipe(), "(ROOT (X (N dogs) (V bark)))\n");
  const ListScores scores = score_treelets(*oracle.model, strange, std::vector<std::uint64_t>{0, 1}, false, 1);
  CHECK(std::isinf(scores.log_probability[0]) && scores.log_probability[0] < 0);
}

TEST("treelet model: a phrase of a thousand words has a probability, though no double holds it") {
  const Oracle oracle = make_oracle();
  std::string text = "(ROOT (S";
  for (int i = 0; i < 1000; ++i) text += " (N dogs)";
  const PackedTrees trees = read(verbatim_recipe(), text + "))\n");
  const ListScores scores = score_treelets(*oracle.model, trees, std::vector<std::uint64_t>{0, 1}, false, 1);
  CHECK(std::isfinite(scores.log_probability[0]) && scores.log_probability[0] < -1000);
  // One of the two products that are mixed is all that counts by then, and every word adds the same.
  const auto log_p = [&](int words) {
    std::string shorter = "(ROOT (S";
    for (int i = 0; i < words; ++i) shorter += " (N dogs)";
    return score_treelets(*oracle.model, read(verbatim_recipe(), shorter + "))\n"), std::vector<std::uint64_t>{0, 1},
                          false, 1)
        .log_probability[0];
  };
  CHECK(near(scores.log_probability[0], log_p(800) + 200 * (log_p(801) - log_p(800)), 1e-6));
}

TEST("treelet sampler: the seed and the number decide, and frequencies are the probabilities") {
  const Oracle oracle = make_oracle();
  const TreeletSampler sampler(oracle.model, oracle.is_tag);
  constexpr std::size_t count = 20000;
  const SampledTrees one = sampler.draw(7, 0, count, 50, 50, 1), many = sampler.draw(7, 0, count, 50, 50, 3);
  CHECK(one.outcome == many.outcome);
  CHECK(one.log_probability == many.log_probability);
  CHECK(one.trees.label == many.trees.label);
  const SampledTrees late = sampler.draw(7, 100, 1, 50, 50, 1);
  CHECK_EQ(late.outcome[0], one.outcome[100]);
  const double p = 40310304924443508647.0 / 86091760454860800000.0;
  const ListScores scores = [&] {
    std::vector<std::uint64_t> starts(one.trees.tree_count() + 1);
    for (std::size_t i = 0; i < starts.size(); ++i) starts[i] = i;
    return score_treelets(*oracle.model, one.trees, starts, false, 1);
  }();
  std::size_t dogs = 0;
  for (std::size_t i = 0; i < one.log_probability.size(); ++i) {
    CHECK(near(one.log_probability[i], scores.log_probability[i], 1e-9));
    const bool likely = near(scores.log_probability[i], std::log(p));
    if (!likely) continue;
    const std::uint32_t first = one.trees.word[one.trees.start[i] + 2];
    dogs += one.trees.words[first] == "dogs";
  }
  const double share = static_cast<double>(dogs) / count, deviation = std::sqrt(p * (1 - p) / count);
  CHECK(std::fabs(share - p) < 4 * deviation);
}

TEST("treelet sampler: trees too long or too deep are given up, and said so") {
  const Oracle oracle = make_oracle();
  const TreeletSampler sampler(oracle.model, oracle.is_tag);
  const SampledTrees shallow = sampler.draw(7, 0, 50, 50, 1, 1);
  for (const std::uint8_t outcome : shallow.outcome) CHECK_EQ(outcome, SampledTrees::too_deep);
  const SampledTrees brief = sampler.draw(7, 0, 50, 1, 50, 1);
  std::size_t long_ones = 0;
  for (const std::uint8_t outcome : brief.outcome) long_ones += outcome == SampledTrees::too_long;
  CHECK(long_ones > 40);
  CHECK_EQ(brief.trees.tree_count() + long_ones, 50);
  std::vector<std::uint8_t> no_tags(oracle.is_tag.size(), 0);
  CHECK_THROWS_CODE(TreeletSampler(oracle.model, no_tags), ErrorCode::table);
}
