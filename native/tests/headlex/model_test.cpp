#include "headlex/model.h"

#include "tests/harness.h"

using namespace treelm;
using namespace treelm::test;

TEST("headlex: every word of a sentence is drawn exactly once") {
  const auto encoder =
      std::make_shared<const WordEncoder>(std::vector<std::string>{"<unk>", "He", "left"}, std::vector<bool>(3, false),
                                          std::vector<WordEncoder::LateEntry>{}, std::nullopt);
  HeadlexExtractor extractor(english(), encoder, false);
  const PackedTrees trees = read(verbatim_recipe(), "(ROOT (S (NP (PRP He)) (VP (VBD left))))\n");
  const PackedTrees* const batches[] = {&trees};
  for (const std::size_t threads : {1u, 3u}) {
    ThreadPool pool(threads);
    std::vector<std::vector<std::uint32_t>> rows(headlex::kinds);
    HeadlexExtractor fresh(english(), encoder, false);
    fresh.extract(batches, pool, rows);
    const auto number = [&](headlex::Kind kind) { return rows[kind].size() / headlex::columns[kind]; };
    CHECK_EQ(number(headlex::top_label), 1);
    CHECK_EQ(number(headlex::top_word), 1);
    CHECK_EQ(number(headlex::head_label), 3);  // of S, NP, VP
    CHECK_EQ(number(headlex::modifier), 9);    // two STOPs for each of four nodes, and NP
    CHECK_EQ(number(headlex::word), 1);        // He; left is drawn at the top
    CHECK_EQ(rows[headlex::top_word][0], 2);
    CHECK_EQ(rows[headlex::word][0], 1);
  }
}
