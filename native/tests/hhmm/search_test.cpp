#include "hhmm/search.h"

#include <cmath>
#include <random>

#include "hhmm/cache.h"
#include "hhmm/viterbi.h"
#include "tests/harness.h"

using namespace treelm;

namespace {

// TOP -> S </s>; S -> a a (1/2) | S a (1/2); a emits two words, 0 and 1, with 1/4 and 3/4. A stack of one element
// holds all trees, because S recurs on the left only.
struct LeftRecursive {
  std::uint32_t symbols = 4, phrasal = 2, end = 3, depth = 1;
  std::vector<std::int32_t> rules{0, 1, 3, 1, 2, 2, 1, 1, 2};
  std::vector<double> left{0, 0, 0, 0, 0.5, 0.5}, right{1, 0, 0, 0, 1, 0};
  // Below the top: S twice (once for itself, once as its own left child), a once. Below S on a right branch: a.
  std::vector<std::int32_t> row_of = std::vector<std::int32_t>(12, -1);
  std::vector<std::int64_t> row_start{0, 2, 3};
  std::vector<std::int32_t> row_symbol{1, 2, 2};
  std::vector<double> row_value{2, 1, 1};
  std::vector<std::int64_t> word_start{0, 1, 2};
  std::vector<std::int32_t> word_tag{2, 2};
  std::vector<double> word_value{0.25, 0.75}, unigram{0.25, 0.75};

  LeftRecursive() {
    row_of[4 + 0] = 0;
    row_of[8 + 1] = 1;
  }
  HhmmArrays arrays() const {
    return {symbols,    phrasal,   end,        depth,    rules,      left,    right, row_of, row_start,
            row_symbol, row_value, word_start, word_tag, word_value, unigram, 0.2,   nullptr};
  }
};

bool close(double a, double b) { return std::abs(a - b) < 1e-12; }

HhmmSearch search_of(const LeftRecursive& example, HhmmOptions options) {
  return {std::make_shared<const HhmmGrammar>(example.arrays()), options};
}

}  // namespace

TEST("hhmm: gives the probabilities of a grammar by hand") {
  const LeftRecursive example;
  const HhmmSearch search = search_of(example, {10, 0, 0, false});
  HhmmSearch::Workspace work(search.grammar());
  // Words are independent; a sentence of n words ends with probability 1/2 from the second word on.
  const HhmmStep one = search.advance(*search.initial(), 1, work);
  CHECK(close(std::exp(one.log_prob), 0.75));
  CHECK(std::isinf(search.finish(*one.beam, work)));
  const HhmmStep two = search.advance(*one.beam, 0, work);
  CHECK(close(std::exp(two.log_prob), 0.25));
  CHECK(close(std::exp(search.finish(*two.beam, work)), 0.5));
  const HhmmStep three = search.advance(*two.beam, 0, work);
  CHECK(close(std::exp(three.log_prob), 0.125));
  const std::vector<double> tags = search.next_tags(*two.beam, work);
  CHECK(close(tags[2], 0.5));
  CHECK(close(tags[3], 0.5));
  CHECK(two.beam->same(*three.beam));
  CHECK_THROWS_CODE(search.advance(*two.beam, 2, work), ErrorCode::argument);
}

TEST("hhmm: what is kept about words changes no step") {
  const LeftRecursive example;
  const HhmmSearch search = search_of(example, {10, 0, 0.01, false});
  HhmmSearch::Workspace kept(search.grammar()), small(search.grammar(), 1), none(search.grammar(), 0);
  SharedBeam beam = search.initial();
  for (int word = 0; word < 12; ++word) {
    const HhmmStep step = search.advance(*beam, word % 3 == 0, kept);
    for (HhmmSearch::Workspace* other : {&small, &none}) {
      const HhmmStep again = search.advance(*beam, word % 3 == 0, *other);
      CHECK(again.log_prob == step.log_prob);
      CHECK(again.beam->same(*step.beam));
    }
    beam = step.beam;
  }
  CHECK(kept.words_asked() == 12);
  CHECK(kept.words_found() == 8);  // the first time nothing is known, the second time it is kept
  CHECK(none.words_found() == 0);
}

TEST("hhmm: finds the best tree") {
  const LeftRecursive example;
  const HhmmGrammar grammar(example.arrays());
  StackViterbi viterbi(grammar, 5);
  const std::vector<std::uint32_t> words(3, 0);
  const StackParse parse = viterbi.parse(words);
  CHECK(close(parse.log_prob, std::log(0.25 / 64)));
  CHECK(parse.derivations.size() == 1);
  CHECK(parse.derivations[0].size() == 3);
  CHECK(parse.derivations[0][2].kind == StackMove::Kind::within);
  CHECK(viterbi.parse({}).derivations.empty());
}

TEST("hhmm: restarts, or stays lost") {
  LeftRecursive example;
  const std::vector<Emission> none;
  for (const double epsilon : {0.0, 0.01}) {
    const HhmmSearch search = search_of(example, {10, 0, epsilon, true});
    HhmmSearch::Workspace work(search.grammar());
    const HhmmStep lost = search.advance(*search.initial(), none, 0.5, work);
    CHECK(lost.restarted == (epsilon > 0));
    CHECK(lost.beam->stacks.size() == (epsilon > 0 ? 1u : 0u));
    CHECK(std::isinf(lost.log_prob) == (epsilon == 0));
    CHECK(std::isinf(search.advance(*lost.beam, 0, work).log_prob) == (epsilon == 0));
  }
}

TEST("hhmm: states come back from their bytes, and damaged ones do not crash") {
  const LeftRecursive example;
  const HhmmSearch search = search_of(example, {10, 0, 0.01, true});
  HhmmSearch::Workspace work(search.grammar());
  const SharedBeam beam = search.advance(*search.initial(), 1, work).beam;
  const std::string bytes = beam->to_bytes();
  CHECK(HhmmBeam::from_bytes(bytes).same(*beam));
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::string changed = bytes;
    for (int edit = 0; edit < 2; ++edit) changed[random() % changed.size()] = static_cast<char>(random() % 256);
    changed.resize(random() % 3 == 0 ? random() % (changed.size() + 1) : changed.size());
    try {
      const HhmmBeam read = HhmmBeam::from_bytes(changed);
      if (read.fits(search.grammar())) CHECK(search.advance(read, 0, work).log_prob <= 0);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::table);
    }
  }
}

TEST("hhmm: forged tables are refused") {
  const auto refused = [](auto change) {
    LeftRecursive example;
    change(example);
    CHECK_THROWS_CODE(HhmmGrammar(example.arrays()), ErrorCode::table);
  };
  refused([](LeftRecursive& each) { each.depth = 0; });
  refused([](LeftRecursive& each) { each.depth = 2; });
  refused([](LeftRecursive& each) { each.phrasal = 9; });
  refused([](LeftRecursive& each) { each.rules[1] = 7; });
  refused([](LeftRecursive& each) { each.rules[2] = 2; });
  refused([](LeftRecursive& each) { each.rules.pop_back(); });
  refused([](LeftRecursive& each) { each.left[4] = std::nan(""); });
  refused([](LeftRecursive& each) { each.row_of[4] = 5; });
  refused([](LeftRecursive& each) { each.row_start[1] = -1; });
  refused([](LeftRecursive& each) { each.row_symbol[0] = 40; });
  refused([](LeftRecursive& each) { each.row_value[0] = -1; });
  refused([](LeftRecursive& each) { each.word_tag[0] = 1; });
  refused([](LeftRecursive& each) { each.word_tag[0] = 3; });
  refused([](LeftRecursive& each) { each.word_start[1] = 9; });
  refused([](LeftRecursive& each) { each.unigram[0] = 7; });
}

TEST("hhmm: the cache forgets the oldest steps and keeps one copy of a state") {
  const LeftRecursive example;
  const HhmmSearch search = search_of(example, {10, 0, 0, true});
  HhmmSearch::Workspace work(search.grammar());
  HhmmCache cache(1200);
  const SharedBeam start = search.initial();
  const HhmmStep one = cache.insert(start, 1, search.advance(*start, 1, work), 0);
  const HhmmStep two = cache.insert(start, 0, search.advance(*start, 0, work), 0);
  CHECK(one.beam == two.beam);
  CHECK(cache.find(start, 1).has_value());
  CHECK(cache.counters().unique_states == 1);
  for (int round = 0; round < 20; ++round) cache.insert(one.beam, static_cast<std::uint32_t>(round), one, 0);
  CHECK(!cache.find(start, 1).has_value());
  CHECK(cache.counters().cache_hits == 1);
}
