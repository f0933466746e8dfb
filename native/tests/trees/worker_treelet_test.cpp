// The nine transforms, against the examples and oracles of the specification.
#include <algorithm>

#include "tests/harness.h"
#include "trees/worker.h"

using namespace treelm;
using treelm::test::default_recipe;
using treelm::test::echo;
using treelm::test::Random;
using treelm::test::random_tree;
using treelm::test::read;
using treelm::test::verbatim_recipe;

namespace {

// The recipe that runs the transforms first..last.
TreeRecipe transforms(int first, int last) {
  TreeRecipe recipe = default_recipe();
  for (int i = first; i <= last; ++i) recipe.treelet |= 1u << (i - 1);
  for (const char* word : {"today", "monday", "months", "week"}) recipe.temporal_words.intern(word);
  return recipe;
}

// The output for one tree given without its root.
std::string run(const TreeRecipe& recipe, const std::string& tree) {
  std::string out = echo(recipe, "(ROOT " + tree + ")");
  if (out.starts_with("(ROOT ")) out = out.substr(6, out.size() - 8);
  return out;
}

std::string words_of(const PackedTrees& trees) {
  std::string out;
  for (const std::uint32_t word : trees.word)
    if (word != none) out += std::string(trees.words[word]) + " ";
  return out;
}

struct Example {
  const char* in;
  const char* out;
};

}  // namespace

TEST("treelet: complete oracles F1, F2, E3-E6") {
  const Example oracles[] = {
      {"(ROOT (S (NP (DT The) (NN index)) (VP (VBD fell) (NP (CD 109.85)) (NP (NNP Monday))) (. .)))",
       "(ROOT (S-VBD^ROOT (NP-NN (DT-the The) (NN index)) (VP-VBD^S (VBD fell) (CD-DC 109.85) (NNTP Monday)) (. .)))"},
      {"(ROOT (S (NP (PRP He)) (VP (VB reset) (NP (JJ opening) (NNS arguments)) (PP (IN for) (NP (NN today)))) (. .)))",
       "(ROOT (S-VB^ROOT (PRP-he He) (VP-VB^S (VB reset) (NP-NNS (JJ opening) (NNS arguments)) (PP-for (IN-for for) "
       "(NNT today))) (. .)))"},
      {"(ROOT (S (NP (NP (NN stock) (NNS sales)) (PP (IN by) (NP (NNS traders)))) (VP (MD will) (VP (VB be) (VP (VBN "
       "reported) (NP (JJ next) (NN week))))) (. .)))",
       "(ROOT (S-MD^ROOT (NP-NNS (NN stock) (NNS sales) (PP-by (IN-by by) (NNS traders))) (VP-VBN^S (MD will) (VB-be "
       "be) (VBN reported) (NP-NNT (JJ next) (NNT week))) (. .)))"},
      {"(ROOT (S (NP (NP (NNP Smith)) (, ,) (NP (NP (DT the) (NN head)) (PP (IN of) (NP (NNP Acme)))) (, ,)) (VP (VBD "
       "said) (SBAR (IN that) (S (NP (PRP she)) (VP (VBD wanted) (S (VP (TO to) (VP (VB leave)))))))) (. .)))",
       "(ROOT (S-VBD^ROOT (NP-NNP (NNP Smith) (, ,) (NP-NN (DT-the the) (NN head) (PP-of (IN-of of) (NNP Acme))) (, "
       ",)) (VP-VBD^S (VBD said) (SBAR-that (IN-that that) (PRP-she she) (VP-VBD^SBAR (VBD wanted) (VP-VB^S (TO-to to) "
       "(VB leave))))) (. .)))"},
      {"(ROOT (S (NP (NP (DT The) (NN man)) (SBAR (WHNP (WP who)) (S (VP (VBZ sings))))) (VP (VP (VBZ eats)) (CC and) "
       "(VP (VBZ is) (VP (VBG drinking)))) (. .)))",
       "(ROOT (S-VBZ^ROOT (NP-NN (DT-the The) (NN man) (SBAR-who-GAP (WP-who who) (VBZ sings))) (VP-VBZ^S (VBZ eats) "
       "(CC-and and) (VP-VBG^VP (VBZ-is is) (VBG drinking))) (. .)))"},
      {"(ROOT (S (VP (VB Stop)) (. .)))", "(ROOT (S-VB-GAP^ROOT (VB Stop) (. .)))"},
  };
  for (const Example& e : oracles) CHECK_EQ(echo(transforms(1, 9), e.in), std::string(e.out) + "\n");
}

TEST("treelet: T1 temporal nouns") {
  CHECK_EQ(run(transforms(1, 1), "(S (NN Today) (NNS MONTHS) (NNP Monday) (NNPS Monday) (RB today) (NN day))"),
           "(S (NNT Today) (NNTS MONTHS) (NNTP Monday) (NNTPS Monday) (RB today) (NN day))");
  CHECK_EQ(run(transforms(1, 1), "(S (NN (NN today) (X x)))"), "(S (NN (NNT today) (X x)))");  // only tags
  TreeRecipe empty = default_recipe();
  empty.treelet = 1;
  CHECK_EQ(run(empty, "(S (NN today))"), "(S (NN today))");
}

TEST("treelet: T2 head annotation") {
  const Example examples[] = {
      {"(NP (DT The) (NN index))", "(NP-NN (DT-the The) (NN index))"},
      {"(PP (IN for) (NP (NN today)))", "(PP-for (IN-for for) (NP-NNT (NNT today)))"},
      {"(VP (VBZ is) (ADJP (JJ red)))", "(VP-is (VBZ-is is) (ADJP-JJ (JJ red)))"},
      {"(VP (TO to) (VP (VB go)))", "(VP-to (TO-to to) (VP-VB (VB go)))"},
      {"(. ?)", "(.-? ?)"},
      {"(S (. .) (, ,) (-LRB- -LRB-) (: --) (VB x))", "(S-VB (. .) (, ,) (-LRB- -LRB-) (:--- --) (VB x))"},
      {"(S (-LRB- -LSB-))", "(S--LSB- (-LRB---LSB- -LSB-))"},  // bracket words keep their case
      {"(VP (VBZ \u2019s) (X x))", "(VP-'s (VBZ-'s \u2019s) (X x))"},
      {"(VP (VBZ \u2018S) (X x))", "(VP-'s (VBZ-'s \u2018S) (X x))"},
      {"(VP (AUXG Being) (X x))", "(VP-being (AUXG-being Being) (X x))"},
      {"(VP (VBZ Isnt) (PRP$ is) (MD is))", "(VP-MD (VBZ Isnt) (PRP$ is) (MD is))"},
      {"(NP (SYM +) (SYM a|b))", "(NP-a\\|b (SYM-\\+ +) (SYM-a\\|b a|b))"},
      {"(NP (DT \u03A3A\u03A3))", "(NP-\u03C3a\u03C2 (DT-\u03C3a\u03C2 \u03A3A\u03A3))"},
  };
  for (const Example& e : examples) CHECK_EQ(run(transforms(1, 2), e.in), e.out);
}

TEST("treelet: T3 noun phrases") {
  const Example examples[] = {
      {"(NP (NP (NN stock) (NNS sales)) (PP (IN by)))", "(NP (NN stock) (NNS sales) (PP (IN by)))"},
      {"(NP (NP (NN dog)) (CC and) (NP (NN cat)))", "(NP (NP (NN dog)) (CC and) (NP (NN cat)))"},
      {"(NP (NP (NNP Smith)) (, ,) (NP (NP (DT the) (NN head)) (PP (IN of))) (, ,))",
       "(NP (NP (NNP Smith)) (, ,) (NP (DT the) (NN head) (PP (IN of))) (, ,))"},
      {"(NP (NP (DT the) (NN company) (POS 's)) (NN profit))", "(NP (DT the) (NN company) (POS 's) (NN profit))"},
      {"(NP (NP (CD 12) (NNS dollars)) (NP (DT a) (NN share)))", "(NP (CD 12) (NNS dollars) (DT a) (NN share))"},
      {"(NP (NP (NN a)) (. .) (NP (NN b)))", "(NP (NN a) (. .) (NN b))"},  // no apposition mark
      {"(NP (NP (NN a)) (RB not) (, ,) (NP (NN b)))", "(NP (NP (NN a)) (RB not) (, ,) (NP (NN b)))"},
      {"(NP (NP (NN a)) (, ,) (UH x) (NP (NN b)))", "(NP (NN a) (, ,) (UH x) (NN b))"},
      {"(NP (NP (NN a)) (, ,) (CC and) (UH x))", "(NP (NP (NN a)) (, ,) (CC and) (UH x))"},  // with a non-NP
      {"(NP (UH x) (CONJP (CC and)) (NP (NN b)))", "(NP (UH x) (CONJP (CC and)) (NP (NN b)))"},
      {"(NP (NP (NN a)) (, ,))", "(NP (NN a) (, ,))"},
      {"(NP (NP (NN a)) (NP (NN b)) (CC and) (NP (NN c)))", "(NP (NN a) (NP (NN b)) (CC and) (NP (NN c)))"},
      {"(NP (NP (NP (NN a) (NN b)) (NN c)) (NN d))", "(NP (NN a) (NN b) (NN c) (NN d))"},
      {"(WHNP (NP (NN a)) (NN b))", "(WHNP (NP (NN a)) (NN b))"},
      {"(NP (NP a) (NN b))", "(NP (NP a) (NN b))"},  // a tag
  };
  for (const Example& e : examples) CHECK_EQ(run(transforms(3, 3), e.in), e.out);
}

TEST("treelet: T4 number classes") {
  const std::pair<const char*, std::vector<const char*>> classes[] = {
      {"YR", {"1989", "0001"}},
      {"MX", {"1980s", "20th", "B-52", "mid-1990s", "3.5m", "\u00E91"}},
      {"DC", {"109.85", ".5", "12,345.67"}},
      {"NM", {"12", "1,200", "3/4", "10:30", "'89", "-1", "12345", "5.", "1.-2", "19\u20AC"}},
      {"AL", {"ten", "million", ".", "\u0663"}},
  };
  for (const auto& [name, words] : classes)
    for (const std::string word : words)
      CHECK_EQ(run(transforms(4, 4), "(NP (CD " + word + ") (NN " + word + "))"),
               "(NP (CD-" + std::string(name) + " " + word + ") (NN " + word + "))");
  CHECK_EQ(run(transforms(2, 4), "(NP (CD 12))"), "(NP-CD (CD-NM 12))");
}

TEST("treelet: T5 clauses, one pass") {
  CHECK_EQ(run(transforms(5, 5), "(SBAR (IN that) (S (NP (X a)) (VP (X b))))"),
           "(SBAR (IN that) (NP (X a)) (VP (X b)))");
  CHECK_EQ(run(transforms(5, 5), "(SBAR (S (X a)) (CC and) (S (X b)))"), "(SBAR (X a) (CC and) (X b))");
  CHECK_EQ(run(transforms(5, 5), "(SBAR (S (S (X a)) (CC and) (S (X b))))"), "(SBAR (S (X a)) (CC and) (S (X b)))");
  CHECK_EQ(run(transforms(5, 5), "(SBAR (SINV (X a)) (S a))"), "(SBAR (SINV (X a)) (S a))");
}

TEST("treelet: T6 verb phrases") {
  const Example examples[] = {
      {"(VP (MD will) (VP (VB be) (VP (VBN reported) (X x))))", "(VP-VBN (MD will) (VB-be be) (VBN reported) (X x))"},
      {"(VP (VP (VBZ eats)) (CC and) (VP (VBZ is) (VP (VBG drinking))))",
       "(VP-VBZ (VP-VBZ (VBZ eats)) (CC-and and) (VP-VBG (VBZ-is is) (VBG drinking)))"},
      {"(VP (MD will) (CC and) (MD must) (VP (VB sleep)))", "(VP-VB (MD will) (CC-and and) (MD must) (VB sleep))"},
      {"(VP (MD will) (CC and) (, ,) (VP (VB sleep)))", "(VP-MD (MD will) (CC-and and) (, ,) (VP-VB (VB sleep)))"},
  };
  TreeRecipe recipe = transforms(2, 2);
  recipe.treelet |= 1u << 5;
  for (const Example& e : examples) CHECK_EQ(run(recipe, e.in), e.out);
  recipe.lowest_verb_label = false;
  CHECK_EQ(run(recipe, examples[0].in), "(VP-MD (MD will) (VB-be be) (VBN reported) (X x))");
}

TEST("treelet: T7 gaps") {
  const Example examples[] = {
      {"(SBAR (WHNP (WP who)) (VP (X x)))", "(SBAR-GAP (WHNP (WP who)) (VP (X x)))"},
      {"(S (VP (X x)) (NP (X y)))", "(S-GAP (VP (X x)) (NP (X y)))"},
      {"(S (NP (X y)) (VP (X x)))", "(S (NP (X y)) (VP (X x)))"},
      {"(S (SBAR (X y)) (VP (X x)))", "(S-GAP (SBAR (X y)) (VP (X x)))"},
      {"(S (X x))", "(S (X x))"},
      {"(SQ (VP (X x)))", "(SQ (VP (X x)))"},
  };
  for (const Example& e : examples) CHECK_EQ(run(transforms(7, 7), e.in), e.out);
}

TEST("treelet: T8 parents") {
  CHECK_EQ(run(transforms(8, 8), "(S (VP (V v) (VP (V w)) (VP u)) (NP (X x)))"),
           "(S^ROOT (VP^S (V v) (VP^VP (V w)) (VP u)) (NP (X x)))");
  CHECK_EQ(echo(transforms(8, 8), "( (UH a) (VP (X x)))"), "(ROOT (UH^ROOT a) (VP^ROOT (X x)))\n");
}

TEST("treelet: T9 unaries") {
  CHECK_EQ(run(transforms(8, 9), "(FRAG (NP (NN Hello)))"), "(NN Hello)");
  CHECK_EQ(run(transforms(9, 9), "(S (A (B (C c) (D d))) (E (F f)))"), "(S (B (C c) (D d)) (F f))");
}

TEST("treelet: categories must not hold reserved characters") {
  for (const char* label : {"A@B", "A+B", "S^ROOT", "A\\"}) {
    const std::string text = "(X x)\n (S (NP (DT a))\n (" + std::string(label) + " a))\n(Y y)";
    CHECK_EQ(echo(transforms(4, 4), text),
             "(ROOT (X x))\n(ROOT (Y y))\nE_RESERVED_CHAR 2 2:2 " + std::string(label) + "\n");
    CHECK_EQ(read(default_recipe(), text).problems.count(), 0);  // without transforms they may
  }
}

TEST("treelet: a single word survives, and the words never change") {
  CHECK_EQ(echo(transforms(1, 9), "(A a)"), "(ROOT (A^ROOT a))\n");
  Random random(41);
  for (int round = 0; round < 1000; ++round) {
    const std::string text = random_tree(random);
    const std::string words = words_of(read(default_recipe(), text));
    for (int i = 1; i <= 9; ++i) CHECK_EQ(words_of(read(transforms(i, i), text)), words);
    const PackedTrees all = read(transforms(1, 9), text);
    CHECK_EQ(words_of(all), words);
    for (std::uint32_t node = 0; node < all.label.size(); ++node)
      if (all.word[node] == none && !std::count(all.start.begin(), all.start.end(), node))
        CHECK(all.size[node + 1] + 1 < all.size[node]);
  }
}

TEST("treelet: T3, T6 and T9 change nothing the second time") {
  Random random(42);
  for (int round = 0; round < 1000; ++round) {
    const std::string text = random_tree(random);
    for (const int transform : {3, 6, 9}) {
      TreeRecipe recipe = transforms(transform, transform);
      const PackedTrees once = read(recipe, text);
      recipe.strip = false;
      const PackedTrees twice = TreeWorker(std::make_shared<TreeRecipe>(recipe)).process(once);
      CHECK_EQ(write_brackets(twice), write_brackets(once));
    }
  }
}

TEST("treelet: packed trees are transformed as text is, in one go or step by step") {
  Random random(43);
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_tree(random) + random_tree(random);
    const std::string expected = echo(transforms(1, 9), text);
    PackedTrees trees = read(default_recipe(), text);
    TreeRecipe recipe = transforms(1, 9);
    recipe.strip = false;
    CHECK_EQ(write_brackets(TreeWorker(std::make_shared<TreeRecipe>(recipe)).process(trees)), expected);
    for (int i = 1; i <= 9; ++i) {
      recipe = transforms(i, i);
      recipe.strip = false;
      trees = TreeWorker(std::make_shared<TreeRecipe>(recipe)).process(trees);
      check_packed(trees);
    }
    CHECK_EQ(write_brackets(trees), expected);
  }
}

TEST("treelet: reserved characters in packed trees are reported with the category") {
  TreeRecipe recipe = transforms(1, 9);
  recipe.strip = false;
  const PackedTrees trees = TreeWorker(std::make_shared<TreeRecipe>(recipe))
                                .process(read(verbatim_recipe(), "(A a)\n(S (B^C b))\n\n(S (D d) (E e))"));
  CHECK_EQ(write_brackets(trees), "(ROOT (A^ROOT a))\n(ROOT (S-D^ROOT (D d) (E e)))\n");
  CHECK_EQ(trees.problems.count(), 1);
  CHECK_EQ(trees.problems[0].code, ErrorCode::reserved_char);
  CHECK_EQ(trees.problems[0].tree, 2);
  CHECK_EQ(trees.problems[0].line, 2);
  CHECK_EQ(trees.problems[0].column, 0);  // unknown
  CHECK_EQ(trees.problems[0].excerpt, "B^C");
  CHECK(trees.ordinal == std::vector<std::uint64_t>({1, 3}));
  CHECK(trees.line == std::vector<std::uint64_t>({1, 4}));
}
