// Fuzz target: brackets, from bytes to packed trees. Input: a recipe, a length of blocks, the text.
//
// What is read must be sound, must not depend on how the bytes were cut, and must come back the same
// when it is written and read again.
#include <algorithm>

#include "base/error.h"
#include "target.h"
#include "trees/bracket_segmenter.h"
#include "trees/stream.h"

using namespace treelm;

namespace treelm::fuzz {

const char* const target_name = "brackets";

std::vector<std::string> seeds() {
  const std::string texts[] = {
      "(S (NP (PRP We)) (VP (VBD rowed) (PP (IN to) (NP (DT the) (NN island)))) (. .))\n",
      "( (S (NP-SBJ-1 (PRP He)) (VP (VBD was) (VP (VBN paid) (NP (-NONE- *-1)))) (. .)) )\n(TOP (X x))",
      "(ROOT (S (NP (NP (NNP Monday) (POS 's)) (NML (NN ferry) (NN line))) (, ,) (CC and)\n"
      "    (NP-TMP (CD 1989) (NN summer))\n    (SBAR (IN that) (S (VP (TO to) (VP (VB go)))))))\n",
      "*x* a comment (\n(S (A a) (B))\nrubbish )\n(S (A a)\n(S (A \\/ )) (B b c) (C (D d) e)\n",
      "\xEF\xBB\xBF(S|X (A=1 \xC3\xA9) (+ \\*) (-LRB- -LRB-) (CODE x) (WHNP (WP who)))",
  };
  std::vector<std::string> made;
  for (char recipe = 0; recipe < 6; ++recipe)
    for (const std::string& text : texts) made.push_back(std::string{recipe, 7} + text);
  return made;
}

std::vector<std::string> tokens() {
  return {"(",        ")",           "((",       "))",       ")(",           "\n(",
          " ",        "\n",          "\r\n",     "\t",       "*x*",          "\n*x* ",
          "*",        "()",          "( )",      "(S ",      "(NP ",         "(VP ",
          "(NP-TMP",  "(NML ",       "(SBAR ",   "(S1 ",     "(ROOT ",       "(TOP ",
          "(A a)",    "(CC ",        "(CD ",     "1989",     "3.5",          "(VB ",
          "(VBZ is",  "(-NONE- *",   "(-LRB- ",  "(CODE x)", "-TMP",         "=1",
          "|",        "^",           "@",        "+",        "\\/",          "\\*",
          "\\",       "\xC3\x89",    "\xCE\xA3", "\xC4\xB0", "\xEF\xBB\xBF", "\xFF",
          "\xC0\x80", "\xED\xA0\x80"};
}

namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    found.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

HeadRow row(const char* parent, bool from_right, HeadStep::Kind kind, const char* labels) {
  return {parent, from_right, {{kind, from_right, words(labels)}}};
}

std::shared_ptr<const Profile> profile(bool by_word) {
  using Kind = HeadStep::Kind;
  ProfileData data;
  data.root_labels = words("TOP ROOT S1");
  data.empty_tags = {"-NONE-"};
  data.drop_tags = {"CODE"};
  data.flatten = {{"NML", "NP"}};
  data.punctuation_tags = words(", . : -LRB-");
  data.punctuation_by_word = by_word;
  data.head_rows = {row("S", false, Kind::priority, "TO IN VP S SBAR NP"), row("VP", false, Kind::priority, "TO VB VP"),
                    row("NP", true, Kind::any, "NN NNP POS"), row("SBAR", false, Kind::last, "S IN")};
  data.coordinators = words("CC CONJP");
  data.coordination_skips = {"HYPH"};
  data.closed_tags = words("IN DT TO CC POS PRP");
  data.closed_prefixes = {"VB"};
  data.closed_words = words("is was be");
  data.bracket_words = words("-LRB- -RRB-");
  data.temporal_tags = {{"NN", "NNT"}, {"NNP", "NNTP"}};
  data.temporal_phrases = {"NP"};
  data.temporal_function = "TMP";
  data.noun_phrases = {"NP"};
  data.noun_phrase_separators = words("RB PRN");
  data.apposition_marks = words(", :");
  data.number_tags = {"CD"};
  data.clause_flattening = {{"SBAR", "S"}};
  data.verb_phrases = {"VP"};
  data.gapped = words("S SBAR");
  data.parent_annotated = {"VP"};
  return std::make_shared<const Profile>(data);
}

using Recipes = std::vector<std::shared_ptr<const TreeRecipe>>;

const Recipes& recipes() {
  static const Recipes all = [] {
    Recipes made;
    const auto add = [&](const auto& change) {
      TreeRecipe recipe;
      recipe.profile = profile(made.size() % 2 == 1);
      change(recipe);
      made.push_back(std::make_shared<const TreeRecipe>(recipe));
    };
    const auto transform = [](TreeRecipe& recipe) {
      recipe.treelet = 511;
      recipe.temporal_words.intern("monday");
      recipe.temporal_words.intern("summer");
    };
    add([](TreeRecipe&) {});
    add(transform);
    add([&](TreeRecipe& recipe) {
      transform(recipe);
      recipe.lowest_verb_label = false;
    });
    add([](TreeRecipe& recipe) { recipe.strip = recipe.unescape = false; });
    add([](TreeRecipe& recipe) { recipe.simplify = false; });
    add([](TreeRecipe& recipe) { recipe.max_depth = 4; });
    add([](TreeRecipe& recipe) { recipe.normalize_root = false; });
    return made;
  }();
  return all;
}

// Reads what was written: as it stands, and however deep.
std::shared_ptr<const TreeRecipe> plain(bool normalize_root) {
  TreeRecipe recipe;
  recipe.profile = recipes()[0]->profile;
  recipe.strip = recipe.unescape = false;
  recipe.normalize_root = normalize_root;
  recipe.max_depth = 1000000;
  return std::make_shared<const TreeRecipe>(recipe);
}

struct Outcome {
  std::string text, problems;
  std::uint64_t trees = 0, dropped = 0, many_rooted = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

void add_problem(const TreeProblem& problem, std::string& out) {
  out.append(code_name(problem.code)).append(" ").append(std::to_string(problem.tree)).append(" ");
  out.append(std::to_string(problem.line)).append(":").append(std::to_string(problem.column));
  out.append(" ").append(problem.excerpt).append("\n");
}

Outcome read(const std::shared_ptr<const TreeRecipe>& recipe, std::string_view text, std::size_t block) {
  TreeStream stream(recipe, 1, false);
  for (std::size_t at = 0; at < text.size(); at += block) stream.feed(text.substr(at, block), false);
  stream.finish();
  Outcome outcome;
  while (const auto batch = stream.take(true)) {
    const PackedTrees& trees = batch->trees;
    try {
      check_packed(trees);
    } catch (const Error& error) {
      throw BrokenPromise(error.what());
    }
    require(trees.ordinal.size() == trees.tree_count() && trees.line.size() == trees.tree_count(),
            "every tree has its place");
    outcome.text += write_brackets(trees);
    outcome.trees += trees.tree_count();
    outcome.dropped += trees.dropped;
    outcome.many_rooted += trees.many_rooted;
    for (const TreeProblem& problem : trees.problems) add_problem(problem, outcome.problems);
  }
  return outcome;
}

// The segmenter alone, with a cap that inputs reach.
std::string segment(std::string_view text, std::size_t block) {
  BracketSegmenter segmenter(1024);
  Segments found;
  for (std::size_t at = 0; at < text.size(); at += block) segmenter.feed(text.substr(at, block), found);
  segmenter.finish(found);
  std::string out;
  for (const TreeSpan& span : found.spans) {
    require(span.begin < span.end && span.end <= found.text.size(), "a tree lies in its text");
    require(found.text[span.begin] == '(' && found.text[span.end - 1] == ')', "a tree lies between brackets");
    out.append(std::to_string(span.line)).append(":").append(std::to_string(span.column)).append(" ");
    out.append(found.text, span.begin, span.end - span.begin).append("\n");
  }
  for (const TreeProblem& problem : found.problems) add_problem(problem, out);
  return out;
}

}  // namespace

}  // namespace treelm::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace treelm::fuzz;
  if (size < 2) return 0;
  const auto& recipe = recipes()[data[0] % recipes().size()];
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t block = std::max<std::size_t>(data[1], text.size() / 100) + 1;
  const Outcome whole = read(recipe, text, text.size() + 1);
  require(whole == read(recipe, text, block), "blocks of any length give the same trees");
  static const auto rooted = plain(true), bare = plain(false);
  const Outcome again = read(recipe->normalize_root ? rooted : bare, whole.text, whole.text.size() + 1);
  require(again.problems.empty() && again.text == whole.text, "what was written is read again");
  if (text.size() > 1024)
    require(segment(text, text.size()) == segment(text, block), "blocks of any length give the same spans");
  return 0;
}
