#include "trees/stream.h"

#include <algorithm>

#include "tests/harness.h"

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

using namespace treelm;
using treelm::test::default_recipe;
using treelm::test::Random;
using treelm::test::random_tree;
using treelm::test::verbatim_recipe;

namespace {

std::shared_ptr<const TreeRecipe> transforming_recipe() {
  TreeRecipe recipe = default_recipe();
  recipe.treelet = 511;
  recipe.temporal_words.intern("monday");
  return std::make_shared<TreeRecipe>(recipe);
}

// Good and bad trees, enough for many batches.
std::string corpus(std::size_t bytes) {
  Random random(51);
  std::string text;
  while (text.size() < bytes) {
    text += random_tree(random);
    if (random.chance(50)) text += "(S (A a) (B))\n";
    if (random.chance(50)) text += "rubbish )\n";
    if (random.chance(50)) text += "*x* a comment (\n";
    if (random.chance(200)) text += "(S (A\xFF a))\n";
  }
  return text + "(S (A\n(S (A a))\n";
}

void append_numbers(std::string& out, const auto& numbers) {
  for (const auto number : numbers) out += std::to_string(number) + ",";
  out += "\n";
}

// Everything a batch holds, as text.
std::string dump(const TreeBatch& batch) {
  const PackedTrees& trees = batch.trees;
  std::string out = batch.text + std::to_string(batch.written) + "\n";
  for (std::size_t i = 0; i < trees.atoms.size(); ++i) out += std::string(trees.atoms[i]) + " ";
  for (std::size_t i = 0; i < trees.words.size(); ++i) out += std::string(trees.words[i]) + " ";
  for (const LabelParts& parts : trees.labels)
    append_numbers(out, std::vector<std::uint32_t>{parts.base, parts.head, parts.parent, parts.gap});
  append_numbers(out, trees.label);
  append_numbers(out, trees.size);
  append_numbers(out, trees.word);
  append_numbers(out, trees.start);
  append_numbers(out, trees.ordinal);
  append_numbers(out, trees.line);
  for (const TreeProblem& problem : trees.problems) {
    append_numbers(out, std::vector<std::uint64_t>{problem.tree, problem.line, problem.column});
    out += std::string(code_name(problem.code)) + problem.excerpt + "\n";
  }
  append_numbers(out, std::vector<std::uint64_t>{trees.dropped, trees.many_rooted});
  return out;
}

std::vector<TreeBatch> stream(std::shared_ptr<const TreeRecipe> recipe, std::size_t threads, bool as_text,
                              std::string_view text, std::size_t block, bool flush = false) {
  TreeStream stream(std::move(recipe), threads, as_text);
  std::vector<TreeBatch> batches;
  for (std::size_t at = 0; at < text.size(); at += block) {
    stream.feed(text.substr(at, block), flush);
    while (auto batch = stream.take(false)) batches.push_back(std::move(*batch));
  }
  stream.finish();
  while (auto batch = stream.take(true)) batches.push_back(std::move(*batch));
  CHECK_EQ(stream.in_flight(), 0);
  return batches;
}

std::string text_of(const std::vector<TreeBatch>& batches) {
  std::string text;
  for (const TreeBatch& batch : batches) text += batch.text;
  return text;
}

// Problems without excerpts, and the counts.
std::string reports_of(const std::vector<TreeBatch>& batches) {
  std::string out;
  std::uint64_t dropped = 0, many_rooted = 0;
  for (const TreeBatch& batch : batches) {
    for (const TreeProblem& problem : batch.trees.problems) {
      out += code_name(problem.code);
      append_numbers(out, std::vector<std::uint64_t>{problem.tree, problem.line, problem.column});
    }
    dropped += batch.trees.dropped;
    many_rooted += batch.trees.many_rooted;
  }
  append_numbers(out, std::vector<std::uint64_t>{dropped, many_rooted});
  return out;
}

}  // namespace

TEST("stream: the same batches in the same order for any number of threads") {
  const std::string text = corpus(test::load_bytes / 4);
  for (const bool as_text : {false, true}) {
    std::vector<std::string> expected;
    for (const std::size_t threads : {1, 2, 3, 8}) {
      const std::vector<TreeBatch> batches = stream(transforming_recipe(), threads, as_text, text, 100000);
      CHECK(batches.size() >= 2);
      std::vector<std::string> dumps;
      for (const TreeBatch& batch : batches) dumps.push_back(dump(batch));
      if (threads == 1) expected = dumps;
      CHECK(dumps == expected);
    }
  }
}

TEST("stream: text and reports do not depend on the sizes fed") {
  const std::string text = corpus(60000);
  const auto recipe = transforming_recipe();
  const std::vector<TreeBatch> whole = stream(recipe, 2, true, text, text.size());
  CHECK_EQ(whole.size(), 1);
  for (const std::size_t block : {1, 13, 4096})
    for (const bool flush : {false, true}) {
      if (block == 1 && flush) continue;
      const std::vector<TreeBatch> pieces = stream(recipe, 2, true, text, block, flush);
      CHECK_EQ(text_of(pieces), text_of(whole));
      CHECK_EQ(reports_of(pieces), reports_of(whole));
    }
}

TEST("stream: the text is that of the packed trees") {
  const std::string text = corpus(30000);
  const auto packed = stream(transforming_recipe(), 2, false, text, text.size());
  const auto written = stream(transforming_recipe(), 2, true, text, text.size());
  CHECK_EQ(packed.size(), 1);
  CHECK_EQ(packed[0].text, "");
  CHECK_EQ(packed[0].written, 0);
  CHECK_EQ(write_brackets(packed[0].trees), written[0].text);
  CHECK_EQ(packed[0].trees.tree_count(), written[0].written);
  CHECK_EQ(written[0].trees.tree_count(), 0);
  CHECK_EQ(written[0].trees.label.size(), 0);
  CHECK_EQ(reports_of(packed), reports_of(written));
}

TEST("stream: feeding, flushing and taking") {
  for (const std::size_t threads : {1, 3}) {
    TreeStream stream(std::make_shared<TreeRecipe>(default_recipe()), threads, true);
    CHECK(!stream.take(false) && !stream.take(true));  // nothing was fed: no waiting
    stream.feed("", true);
    stream.feed("(A a) (B", true);
    CHECK_EQ(stream.in_flight(), 1);
    stream.feed(" b)", false);
    CHECK_EQ(stream.in_flight(), 1);
    const auto first = stream.take(true);
    CHECK(first && first->text == "(ROOT (A a))\n" && first->written == 1);
    CHECK(!stream.take(true));  // the second tree is complete but not handed on
    stream.feed("\n(C c) x\n", true);
    const auto second = stream.take(true);
    CHECK(second && second->text == "(ROOT (B b))\n(ROOT (C c))\n" && second->trees.problems.count() == 1);
    stream.feed("(D", true);
    CHECK_EQ(stream.in_flight(), 0);
    stream.finish();
    const auto last = stream.take(true);
    CHECK(last && last->written == 0 && last->trees.problems.count() == 1);
    if (last) CHECK_EQ(last->trees.problems[0].line, 3);
    CHECK(!stream.take(true));
  }
}

TEST("stream: empty input gives no batch") {
  CHECK_EQ(stream(transforming_recipe(), 2, true, "", 1).size(), 0);
  CHECK_EQ(stream(transforming_recipe(), 2, true, " \n*x* comment\n", 1).size(), 0);
}

TEST("stream: may be dropped with batches in flight") {
  const std::string text = corpus(200000);
  for (int round = 0; round < 10; ++round) {
    TreeStream stream(transforming_recipe(), 1 + static_cast<std::size_t>(round) % 4, false);
    for (std::size_t at = 0; at < text.size(); at += 10000) stream.feed(std::string_view(text).substr(at, 10000), true);
    CHECK(stream.in_flight() >= 20);
    if (round % 2 == 0) stream.take(true);
  }
}

#ifndef _WIN32
TEST("stream: a stream opened before a fork refuses to work after it") {
  for (const std::size_t threads : {1, 2}) {
    TreeStream stream(std::make_shared<TreeRecipe>(default_recipe()), threads, true);
    stream.feed("(A a)", true);
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      int refused = 0;
      const auto expect_refusal = [&](auto use) {
        try {
          use();
        } catch (const Error& error) {
          refused += error.code() == ErrorCode::forked;
        }
      };
      expect_refusal([&] { stream.feed("(B b)", true); });
      expect_refusal([&] { stream.finish(); });
      expect_refusal([&] { stream.take(true); });
      // A stream of its own works.
      TreeStream own(std::make_shared<TreeRecipe>(default_recipe()), threads, true);
      own.feed("(C c)", true);
      const auto batch = own.take(true);
      _exit(refused == 3 && batch && batch->text == "(ROOT (C c))\n" ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    const auto batch = stream.take(true);
    CHECK(batch && batch->text == "(ROOT (A a))\n");
  }
}
#endif

TEST("stream: linear time on hostile input") {
  constexpr std::size_t bytes = test::load_bytes / 8;
  for (const char* piece : {"(\n", ")(", "(a\n", "(a\n(b c)\n", "(A a)", "(A \xFF)", "*x*\n", "((", "(A (B b) "}) {
    std::string text;
    while (text.size() < bytes) text += piece;
    const test::Clock clock;
    stream(transforming_recipe(), 2, true, text, 65536);
    CHECK(clock.seconds() < 10);
  }
  // One huge flat tree and one huge flat phrase of noun phrases.
  std::string flat = "(NP";
  while (flat.size() < bytes) flat += " (NP (NN a)) (, ,)";
  const test::Clock clock;
  const auto batches = stream(transforming_recipe(), 2, true, flat + ")", 65536);
  CHECK(clock.seconds() < 10);
  CHECK_EQ(batches.size(), 1);
}

TEST("stream: mutated text never crashes, and what comes out can be read again") {
  Random random(52);
  std::string valid;
  for (int i = 0; i < 4; ++i) valid += random_tree(random);
  valid += "( (S (NP-SBJ-1 (PRP He)) (VP (VBD was) (VP (VBN paid) (NP (-NONE- *-1)))) (. .)) )\n*x* header\n";
  const auto again = std::make_shared<TreeRecipe>(verbatim_recipe());
  for (int round = 0; round < 3000; ++round) {
    std::string text = valid;
    for (std::size_t changes = 1 + random.below(8); changes > 0 && !text.empty(); --changes) {
      const std::size_t at = random.below(text.size());
      const char byte = random.chance(2) ? "() \n*\\-|"[random.below(8)] : static_cast<char>(random.below(256));
      switch (random.below(4)) {
        case 0: text[at] = byte; break;
        case 1: text.insert(at, 1, byte); break;
        case 2: text.erase(at, 1 + random.below(3)); break;
        default: text.insert(at, text.substr(random.below(text.size()), random.below(20)));
      }
    }
    const std::size_t threads = round % 10 == 0 ? 2 : 1;
    const std::size_t block = 1 + random.below(text.size() + 1);
    const std::string out = text_of(stream(transforming_recipe(), threads, true, text, block));
    CHECK_EQ(std::count(out.begin(), out.end(), '('), std::count(out.begin(), out.end(), ')'));
    const std::vector<TreeBatch> second = stream(again, 1, true, out, out.size() + 1);
    CHECK_EQ(text_of(second), out);
    for (const TreeBatch& batch : second) CHECK_EQ(batch.trees.problems.size(), 0);
    for (const TreeBatch& batch : stream(again, 1, false, text, block)) check_packed(batch.trees);
  }
}
