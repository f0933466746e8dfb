// Reading one tree: brackets, roots, cleaning, and the place of every error.
#include <set>

#include "tests/harness.h"
#include "trees/bracket_segmenter.h"
#include "trees/worker.h"

using namespace treelm;
using treelm::test::default_recipe;
using treelm::test::echo;
using treelm::test::Random;
using treelm::test::random_tree;
using treelm::test::read;
using treelm::test::verbatim_recipe;

namespace treelm::test {

TreeRecipe default_recipe() {
  TreeRecipe recipe;
  recipe.profile = english();
  return recipe;
}

TreeRecipe verbatim_recipe() {
  TreeRecipe recipe = default_recipe();
  recipe.strip = recipe.unescape = false;
  return recipe;
}

PackedTrees read(const TreeRecipe& recipe, std::string_view text) {
  BracketSegmenter segmenter;
  Segments segments;
  segmenter.feed(text, segments);
  segmenter.finish(segments);
  PackedTrees trees = TreeWorker(std::make_shared<TreeRecipe>(recipe)).process(segments);
  check_packed(trees);
  CHECK_EQ(trees.ordinal.size(), trees.tree_count());
  CHECK_EQ(trees.line.size(), trees.tree_count());
  return trees;
}

std::string echo(const TreeRecipe& recipe, std::string_view text) {
  const PackedTrees trees = read(recipe, text);
  std::string out = write_brackets(trees);
  for (const TreeProblem& problem : trees.problems)
    out += std::string(code_name(problem.code)) + " " + std::to_string(problem.tree) + " " +
           std::to_string(problem.line) + ":" + std::to_string(problem.column) + " " + problem.excerpt + "\n";
  return out;
}

std::string random_tree(Random& random) {
  const char* const phrases[] = {"NP",     "NP",     "VP",       "VP",    "S",    "SBAR", "PP", "NML",
                                 "NP-SBJ", "NP-TMP", "ADVP|PRT", "CONJP", "FRAG", "WHNP", "XX"};
  const char* const tags[] = {"NN", "NNP",    "CC",  "CD",   "VBZ", "VB", "DT",  "IN",    ",",   ".",
                              "RB", "-NONE-", "POS", "CODE", "PRP", "NP", "SYM", "-LRB-", "JJ-1"};
  const char* const words[] = {"dog",     "Monday", "is",    "and", "1989",          "3.5",       "*-1", "\\/",
                               "\u2019s", ",",      "-LRB-", "+",   "\u03A3A\u03A3", "caf\u00E9", "."};
  std::string text = random.chance(2) ? "( (S" : random.chance(2) ? "(TOP (NP" : "(S (VP";
  std::size_t open = 2;
  bool childless = true;
  for (std::size_t left = 1 + random.below(20); left > 0 || childless;) {
    const std::size_t move = random.below(4);
    if (move == 0 && open < 12 && left > 0) {
      text += std::string(" (") + phrases[random.below(std::size(phrases))];
      ++open;
      childless = true;
    } else if (move == 1 && open > 2 && !childless) {
      text += ")";
      --open;
    } else {
      text +=
          std::string(" (") + tags[random.below(std::size(tags))] + " " + words[random.below(std::size(words))] + ")";
      childless = false;
      if (left > 0) --left;
    }
  }
  return text + std::string(open, ')') + "\n";
}

}  // namespace treelm::test

namespace {

struct Example {
  const char* in;
  const char* out;
};

}  // namespace

TEST("errors: every code has its own name and sentence") {
  std::set<std::string_view> names, sentences;
  for (int i = 0; i < error_code_count; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    CHECK(code_name(code).starts_with("E_") && code_name(code) != "E_FAILED");
    CHECK(!code_sentence(code).empty() && code_sentence(code) != "the kernel failed");
    names.insert(code_name(code));
    sentences.insert(code_sentence(code));
  }
  CHECK_EQ(names.size(), error_code_count);
  CHECK_EQ(sentences.size(), error_code_count);
  CHECK_EQ(code_name(static_cast<ErrorCode>(error_code_count)), "E_FAILED");
  CHECK_EQ(code_sentence(static_cast<ErrorCode>(error_code_count)), "the kernel failed");
  const Error error(ErrorCode::depth, "too deep", {3, 4});
  CHECK_EQ(error.code(), ErrorCode::depth);
  CHECK_EQ(error.place().line, 3);
  CHECK_EQ(error.place().column, 4);
  CHECK_EQ(std::string(Error(ErrorCode::forked).what()), code_sentence(ErrorCode::forked));
  CHECK_EQ(Error(ErrorCode::forked).place().line, 0);
}

TEST("reader: the tree of the specification") {
  CHECK_EQ(echo(default_recipe(), "( (S (NP-SBJ-1 (PRP He)) (VP (VBD was) (VP (VBN paid) (NP (-NONE- *-1)))) (. .)) )"),
           "(ROOT (S (NP (PRP He)) (VP (VBD was) (VP (VBN paid))) (. .)))\n");
}

TEST("reader: roots") {
  const Example examples[] = {
      {"( (S (A a)))", "(ROOT (S (A a)))\n"},
      {"(TOP (S (A a)))", "(ROOT (S (A a)))\n"},
      {"(ROOT (S (A a)))", "(ROOT (S (A a)))\n"},
      {"(S1 (S (A a)))", "(ROOT (S (A a)))\n"},
      {"(VROOT (S (A a)))", "(ROOT (S (A a)))\n"},
      {"(S (A a))", "(ROOT (S (A a)))\n"},
      {"(A a)", "(ROOT (A a))\n"},
      {"(TOP a)", "(ROOT (TOP a))\n"},            // a tag is no root
      {"(ROOT a)", "(ROOT (ROOT a))\n"},          // the root stays a phrase
      {"(TOP-1 (A a))", "(ROOT (TOP (A a)))\n"},  // only a whole label names a root
      {"(ROOT-1 (A a))", "(ROOT (A a))\n"},       // X over X
      {"(TOP (ROOT (A a)))", "(ROOT (A a))\n"},
      {"(  \n (A a) (B b))", "(ROOT (A a) (B b))\n"},
  };
  for (const Example& e : examples) CHECK_EQ(echo(default_recipe(), e.in), e.out);
}

TEST("reader: several nodes below an unlabelled root are counted") {
  const PackedTrees trees = read(default_recipe(), "( (A a) (B b)) (TOP (A a) (B b)) ( (A a)) ( (A a) (B b) (C c))");
  CHECK_EQ(trees.many_rooted, 2);
  CHECK_EQ(trees.tree_count(), 4);
}

TEST("reader: roots are left alone on request") {
  TreeRecipe recipe = default_recipe();
  recipe.normalize_root = false;
  CHECK_EQ(echo(recipe, "(S (A a)) (TOP (S (A a))) ( (S (A a))) (A a)"),
           "(S (A a))\n(TOP (S (A a)))\n(ROOT (S (A a)))\n(A a)\n");
}

TEST("reader: white space is ASCII, a no-break space is part of a word") {
  CHECK_EQ(echo(default_recipe(), "(\v S\t\f(\r\nA\n\na ) ( B  b ) )"), "(ROOT (S (A a) (B b)))\n");
  CHECK_EQ(echo(default_recipe(), "(A a\u00A0b) (B c\u2009d)"), "(ROOT (A a\u00A0b))\n(ROOT (B c\u2009d))\n");
}

TEST("reader: labels are cut at the first - = | that is not in front") {
  const Example examples[] = {
      {"(S (NP-SBJ-1 a))", "(ROOT (S (NP a)))\n"},   {"(S (NP=2 a))", "(ROOT (S (NP a)))\n"},
      {"(S (ADVP|PRT a))", "(ROOT (S (ADVP a)))\n"}, {"(S (-LRB- a))", "(ROOT (S (-LRB- a)))\n"},
      {"(S (PRP$ a))", "(ROOT (S (PRP$ a)))\n"},     {"(S (=a- a))", "(ROOT (S (=a a)))\n"},
      {"(S (|x|y a))", "(ROOT (S (|x a)))\n"},       {"(S (- a))", "(ROOT (S (- a)))\n"},
      {"(S (: --))", "(ROOT (S (: --)))\n"},
  };
  for (const Example& e : examples) CHECK_EQ(echo(default_recipe(), e.in), e.out);
}

TEST("reader: empty elements, dropped tags, NML and X over X") {
  const Example examples[] = {
      {"(S (NP (-NONE- *)) (VP (VP (X (-NONE- 0))) (V v)))", "(ROOT (S (VP (V v))))\n"},
      {"(S (CODE c) (SU-1 s) (A a))", "(ROOT (S (A a)))\n"},
      {"(S (CODE (A a)))", "(ROOT (S (CODE (A a))))\n"},  // only tags are dropped
      {"(S (NP (NML (NN a) (NML (NN b) (NN c))) (NN d)))", "(ROOT (S (NP (NN a) (NN b) (NN c) (NN d))))\n"},
      {"(NML (NN a) (NML-1 (NN b)))", "(ROOT (NP (NN a) (NN b)))\n"},
      {"(TOP (NML (NN a)) (NML (NN b)))", "(ROOT (NP (NN a)) (NP (NN b)))\n"},
      {"(S (NML a))", "(ROOT (S (NML a)))\n"},  // a tag is not flattened
      {"(S (NP-SBJ (NP-1 (NP (NN a)))))", "(ROOT (S (NP (NN a))))\n"},
      {"(S (X (X x)))", "(ROOT (S (X x)))\n"},
      {"(S (NP (NP (NN a)) (NP (-NONE- *))))", "(ROOT (S (NP (NN a))))\n"},
      {"(S (X (NML (X (A a)))))", "(ROOT (S (X (A a))))\n"},
  };
  for (const Example& e : examples) CHECK_EQ(echo(default_recipe(), e.in), e.out);
}

TEST("reader: a tree of nothing but empty elements is dropped and counted") {
  const PackedTrees trees = read(default_recipe(), "(-NONE- *) (A a)\n( (S (NP (-NONE- *)) (CODE x)))\n(B b)");
  CHECK_EQ(trees.dropped, 2);
  CHECK_EQ(trees.problems.count(), 0);
  CHECK_EQ(write_brackets(trees), "(ROOT (A a))\n(ROOT (B b))\n");
  CHECK_EQ(trees.ordinal[0], 2);
  CHECK_EQ(trees.ordinal[1], 4);
  CHECK_EQ(trees.line[1], 3);
}

TEST("reader: without simplify empty elements go and every other node is kept") {
  TreeRecipe recipe = default_recipe();
  recipe.simplify = false;
  const Example examples[] = {
      {"(S (X (X x)))", "(ROOT (S (X (X x))))\n"},
      {"(S (NP-SBJ (NP (NN a)) (SBAR (-NONE- 0))))", "(ROOT (S (NP (NP (NN a)))))\n"},
      {"( (NML (NML-1 (A a)) (CODE c)) )", "(ROOT (NML (NML (A a))))\n"},
  };
  for (const Example& e : examples) CHECK_EQ(echo(recipe, e.in), e.out);
}

TEST("reader: without strip every label and node is kept") {
  const char* const text = "(ROOT (S (NP-SBJ=1 (-NONE- *)) (NML (X (X|y x))) (CODE c)))\n";
  CHECK_EQ(echo(verbatim_recipe(), text), text);
}

TEST("reader: backslashes before / and * go, others stay") {
  const char* const text = "(S (A 1\\/2) (A \\*) (A a\\\\\\*b\\/c) (A \\) (A \\a\\) (A \\/\\))";
  CHECK_EQ(echo(default_recipe(), text), "(ROOT (S (A 1/2) (A *) (A a*b/c) (A \\) (A \\a\\) (A /\\)))\n");
  TreeRecipe recipe = default_recipe();
  recipe.unescape = false;
  CHECK_EQ(echo(recipe, "(A 1\\/2)"), "(ROOT (A 1\\/2))\n");
}

TEST("reader: each error has its code, tree, line, byte column and excerpt") {
  const Example examples[] = {
      {"(NP the (NN dog))", "E_MIXED 1 1:9 (NN dog))\n"},
      {"(NP (NN dog) the (X x))", "E_MIXED 1 1:14 the (X x))\n"},
      {"(NP a b (X x) c)", "E_MIXED 1 1:9 (X x) c)\n"},
      {"(NN stock market crash)", "E_MULTI_WORD 1 1:11 market crash)\n"},
      {"(NN )", "E_NO_WORD 1 1:1 (NN )\n"},
      {"()", "E_NO_WORD 1 1:1 ()\n"},
      {"(\n)", "E_NO_WORD 1 1:1 (\n"},
      {"(S (A a)\n   (B))", "E_NO_WORD 1 2:4 (B))\n"},
      {"(S ( (A a)))", "E_EMPTY_LABEL 1 1:4 ( (A a)))\n"},
      {"(( a))", "E_NO_WORD 1 1:2 ( a))\n"},  // a is a label
      {"( ())", "E_EMPTY_LABEL 1 1:3 ())\n"},
      {"(A \xFF)", "E_ENCODING 1 1:4 \xFF)\n"},
      {"(S (A a)\n(\xC3\xA9\xC3 a))", "E_ENCODING 1 2:4 \xC3 a))\n"},
      {"(A \xED\xA0\x80)", "E_ENCODING 1 1:4 \xED\xA0\x80)\n"},
      {"a", "E_TEXT_OUTSIDE 1 1:1 a\n"},
      {")", "E_UNBALANCED 1 1:1 )\n"},
      {"(A a", "E_UNBALANCED 1 1:1 (A a\n"},
      {"\xEF\xBB\xBF(A)", "E_NO_WORD 1 1:1 (A)\n"},
      {"(\xC3\xA9 \xC3\xA9 b)", "E_MULTI_WORD 1 1:8 b)\n"},  // columns count bytes
      {"(S\r\n\r\n  (A))", "E_NO_WORD 1 3:3 (A))\n"},
  };
  for (const Example& e : examples) {
    CHECK_EQ(echo(default_recipe(), e.in), e.out);
    CHECK_EQ(echo(verbatim_recipe(), e.in), e.out);
  }
}

TEST("reader: the first error of a tree wins, and other trees are read") {
  CHECK_EQ(echo(default_recipe(), "(A a) (S (X) (Y a b))\nz (B b)\n  (C c c) (D d)\n(E"),
           "(ROOT (A a))\n(ROOT (B b))\n(ROOT (D d))\n"
           "E_NO_WORD 2 1:10 (X) (Y a b))\nE_TEXT_OUTSIDE 3 2:1 z (B b)\nE_MULTI_WORD 4 3:8 c)\n"
           "E_UNBALANCED 6 4:1 (E\n");
}

TEST("reader: a long excerpt is cut after forty bytes") {
  const PackedTrees trees = read(default_recipe(), "(A a " + std::string(100, 'b') + ")");
  CHECK_EQ(trees.problems.count(), 1);
  CHECK_EQ(trees.problems[0].excerpt, std::string(40, 'b'));
}

TEST("reader: the outermost root does not count towards the depth") {
  TreeRecipe recipe = default_recipe();
  recipe.max_depth = 2;
  const Example examples[] = {
      {"(A (B b))", "(ROOT (A (B b)))\n"},
      {"(ROOT (A (B b)))", "(ROOT (A (B b)))\n"},
      {"( (A (B b)))", "(ROOT (A (B b)))\n"},
      {"(A (B (C c)))", "E_DEPTH 1 1:7 (C c)))\n"},
      {"(TOP (A (B\n (C c))))", "E_DEPTH 1 2:2 (C c))))\n"},
      {"( (A (B (C c))))", "E_DEPTH 1 1:9 (C c))))\n"},
      {"(TOP-1 (A (B b)))", "E_DEPTH 1 1:11 (B b)))\n"},
      {"(A a)", "(ROOT (A a))\n"},
  };
  for (const Example& e : examples) CHECK_EQ(echo(recipe, e.in), e.out);
}

TEST("reader: depth costs no stack") {
  constexpr std::size_t depth = 200000;
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += i % 2 == 0 ? "(A " : "(B ";
  text += "b" + std::string(depth, ')');
  CHECK_EQ(read(default_recipe(), text).problems.count(), 1);
  CHECK_EQ(read(default_recipe(), text).problems[0].column, 3001);
  TreeRecipe recipe = default_recipe();
  recipe.max_depth = depth;
  recipe.treelet = 511;
  CHECK_EQ(read(recipe, text).tree_count(), 1);
}

TEST("reader: what was written reads back unchanged") {
  Random random(11);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = random_tree(random);
    const std::string verbatim = echo(verbatim_recipe(), text);
    CHECK_EQ(echo(verbatim_recipe(), verbatim), verbatim);
    const std::string clean = write_brackets(read(default_recipe(), text));
    CHECK_EQ(echo(default_recipe(), clean), clean);
    TreeRecipe annotating = default_recipe();
    annotating.treelet = 511;
    const std::string annotated = write_brackets(read(annotating, text));
    CHECK_EQ(echo(verbatim_recipe(), annotated), annotated);
  }
}

TEST("reader: cleaning packed trees is the same as cleaning text") {
  Random random(12);
  TreeWorker cleaner(std::make_shared<TreeRecipe>(default_recipe()));
  TreeRecipe kept = verbatim_recipe();
  kept.unescape = true;
  for (int round = 0; round < 1000; ++round) {
    const std::string text = random_tree(random) + random_tree(random);
    const PackedTrees packed = cleaner.process(read(kept, text));
    check_packed(packed);
    const PackedTrees direct = read(default_recipe(), text);
    CHECK_EQ(write_brackets(packed), write_brackets(direct));
    CHECK_EQ(packed.dropped, direct.dropped);
    CHECK(packed.ordinal == direct.ordinal && packed.line == direct.line);
  }
}

TEST("reader: a worker starts every batch afresh") {
  const auto segments_of = [](std::string_view text) {
    Segments segments;
    BracketSegmenter segmenter;
    segmenter.feed(text, segments);
    segmenter.finish(segments);
    return segments;
  };
  TreeWorker worker(std::make_shared<TreeRecipe>(default_recipe()));
  const PackedTrees first = worker.process(segments_of("(S (A a) (B b))"));
  worker.process(segments_of("(S (Z z) (A a) (B)) (X y)"));
  const PackedTrees again = worker.process(segments_of("(S (A a) (B b))"));
  CHECK(first.label == again.label && first.word == again.word && first.labels == again.labels);
  CHECK_EQ(first.atoms.size(), again.atoms.size());
  CHECK_EQ(first.words.size(), again.words.size());
  CHECK_EQ(write_brackets(again), "(ROOT (S (A a) (B b)))\n");
}
