#include "trees/bracket_segmenter.h"

#include <algorithm>

#include "tests/harness.h"

using namespace treelm;
using treelm::test::Random;

namespace {

// What the segmenter said, one line per tree or problem, in a form that does not depend on blocks.
struct Outcome {
  std::string trees, problems;

  void add_tree(std::string_view text, std::uint64_t ordinal, std::uint64_t line, std::uint64_t column) {
    trees += std::to_string(ordinal) + " " + std::to_string(line) + ":" + std::to_string(column) + " ";
    trees += text;
    trees += "\n";
  }
  void add_problem(ErrorCode code, std::uint64_t ordinal, std::uint64_t line, std::uint64_t column) {
    problems += std::string(code_name(code)) + " " + std::to_string(ordinal) + " " + std::to_string(line) + ":" +
                std::to_string(column) + "\n";
  }
};

Outcome outcome_of(const Segments& segments) {
  Outcome outcome;
  for (const TreeSpan& span : segments.spans)
    outcome.add_tree(std::string_view(segments.text).substr(span.begin, span.end - span.begin), span.ordinal, span.line,
                     span.column);
  for (const TreeProblem& problem : segments.problems)
    outcome.add_problem(problem.code, problem.tree, problem.line, problem.column);
  return outcome;
}

// Feeds blocks whose sizes `next_size` gives.
template <class NextSize>
Segments segment(std::string_view text, NextSize next_size, std::size_t max_tree_bytes = std::size_t{64} << 20) {
  BracketSegmenter segmenter(max_tree_bytes);
  Segments out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = std::min<std::size_t>(next_size(), text.size() - at);
    segmenter.feed(text.substr(at, size), out);
    at += size;
  }
  segmenter.finish(out);
  CHECK_EQ(segmenter.pending_bytes(), 0);
  return out;
}

Segments segment(std::string_view text) {
  return segment(text, [&] { return text.size(); });
}

// The rules of the specification in the plainest form, quadratic.
Outcome plain_segments(std::string_view text) {
  Outcome outcome;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::uint64_t ordinal = 1;
  bool junk = false;
  const auto line_of = [&](std::size_t at) {
    return 1 +
           static_cast<std::uint64_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  };
  const auto column_of = [&](std::size_t at) { return at - (text.substr(0, at).rfind('\n') + 1) + 1; };
  const auto line_end = [&](std::size_t at) { return std::min(text.find('\n', at), text.size()); };
  for (std::size_t at = 0; at < text.size();) {
    if (std::string_view(" \t\n\v\f\r").find(text[at]) != std::string_view::npos) {
      ++at;
    } else if (column_of(at) == 1 && text.substr(at).starts_with("*x*")) {
      at = line_end(at);
    } else if (text[at] != '(') {
      if (!junk)
        outcome.add_problem(text[at] == ')' ? ErrorCode::unbalanced : ErrorCode::text_outside, ordinal, line_of(at),
                            column_of(at));
      junk = true;
      ++at;
    } else {
      junk = false;
      std::size_t end = at, depth = 0;
      do {
        if (text[end] == '(') ++depth;
        if (text[end] == ')') --depth;
        ++end;
      } while (depth > 0 && end < text.size());
      if (depth == 0) {
        outcome.add_tree(text.substr(at, end - at), ordinal, line_of(at), column_of(at));
        at = end;
      } else {
        outcome.add_problem(ErrorCode::unbalanced, ordinal, line_of(at), column_of(at));
        do at = line_end(at) + 1;
        while (at < text.size() && text[at] != '(');
      }
      ++ordinal;
    }
  }
  return outcome;
}

std::string soup(Random& random, std::size_t pieces) {
  const char* const alphabet[] = {"(", "(", "(",   ")",     ")", ")",      "a",    "\n", "\n(",
                                  "*", "x", "*x*", "\n*x*", " ", "-NONE-", "\r\n", "\t", "\u00E9"};
  std::string text;
  if (random.chance(10)) text = "\xEF\xBB\xBF";
  while (pieces-- > 0) text += alphabet[random.below(std::size(alphabet))];
  return text;
}

void check_same_outcome(const Outcome& a, const Outcome& b) {
  CHECK_EQ(a.trees, b.trees);
  CHECK_EQ(a.problems, b.problems);
}

}  // namespace

TEST("segmenter: trees on one line, over lines, without space between") {
  const Outcome found = outcome_of(segment("(A a) (B\n  (C c))(D d)\n\n  (E e)"));
  CHECK_EQ(found.trees, "1 1:1 (A a)\n2 1:7 (B\n  (C c))\n3 2:9 (D d)\n4 4:3 (E e)\n");
  CHECK_EQ(found.problems, "");
}

TEST("segmenter: nothing in, nothing out") {
  for (const char* text : {"", " ", "\n\r\t\v\f \n", "\xEF\xBB\xBF", "*x* a comment", "*x*\n*x*("}) {
    const Outcome found = outcome_of(segment(text));
    CHECK_EQ(found.trees + found.problems, "");
  }
}

TEST("segmenter: a byte order mark takes no column, and only the first counts") {
  CHECK_EQ(outcome_of(segment("\xEF\xBB\xBF(A a)")).trees, "1 1:1 (A a)\n");
  CHECK_EQ(outcome_of(segment("\xEF\xBB\xBFx")).problems, "E_TEXT_OUTSIDE 1 1:1\n");
  CHECK_EQ(outcome_of(segment("\xEF\xBB")).problems, "E_TEXT_OUTSIDE 1 1:1\n");
  CHECK_EQ(outcome_of(segment("(A a)\xEF\xBB\xBF")).problems, "E_TEXT_OUTSIDE 2 1:6\n");
}

TEST("segmenter: comments stand at the start of a line outside trees") {
  CHECK_EQ(outcome_of(segment("*x* (A a)\n(B b)\n*x*)\n(C\n*x* c)")).trees, "1 2:1 (B b)\n2 4:1 (C\n*x* c)\n");
  CHECK_EQ(outcome_of(segment(" *x* (A a)")).problems, "E_TEXT_OUTSIDE 1 1:2\n");
  CHECK_EQ(outcome_of(segment("*x")).problems, "E_TEXT_OUTSIDE 1 1:1\n");
  CHECK_EQ(outcome_of(segment("*X* (A a)")).problems, "E_TEXT_OUTSIDE 1 1:1\n");
}

TEST("segmenter: a stretch outside any tree is reported once") {
  const Outcome found = outcome_of(segment("a b\n c ) (A a) ) d\n*x* e\n) (B b) f"));
  CHECK_EQ(found.trees, "1 2:6 (A a)\n2 4:3 (B b)\n");
  CHECK_EQ(found.problems, "E_TEXT_OUTSIDE 1 1:1\nE_UNBALANCED 2 2:12\nE_TEXT_OUTSIDE 3 4:9\n");
}

TEST("segmenter: after an unclosed tree reading goes on at the next line that starts with a bracket") {
  const Outcome found = outcome_of(segment("(A a) (B (C c)\n (D d)\nx\n(E e)\n(F\n(G g)"));
  CHECK_EQ(found.trees, "1 1:1 (A a)\n3 4:1 (E e)\n5 6:1 (G g)\n");
  CHECK_EQ(found.problems, "E_UNBALANCED 2 1:7\nE_UNBALANCED 4 5:1\n");
}

TEST("segmenter: excerpts end with the line and after forty bytes") {
  const Segments found = segment("abc def\n(A a)\n" + std::string(100, 'z') + "(");
  CHECK_EQ(found.problems.count(), 3);
  CHECK_EQ(found.problems[0].excerpt, "abc def");
  CHECK_EQ(found.problems[1].excerpt, std::string(40, 'z'));
  CHECK_EQ(found.problems[2].excerpt, "(");
}

TEST("segmenter: complete trees come out at once, the rest is pending") {
  BracketSegmenter segmenter;
  Segments out;
  segmenter.feed("(A a) (B", out);
  CHECK_EQ(out.spans.size(), 1);
  CHECK_EQ(segmenter.pending_bytes(), 2);
  segmenter.feed("", out);
  CHECK_EQ(segmenter.pending_bytes(), 2);
  segmenter.feed(" b)", out);
  CHECK_EQ(out.spans.size(), 2);
  CHECK_EQ(segmenter.pending_bytes(), 0);
  // Another batch may be started at any time; places go on counting.
  Segments second;
  segmenter.feed("\n(C c)", second);
  segmenter.finish(second);
  CHECK_EQ(outcome_of(second).trees, "3 2:1 (C c)\n");
}

TEST("segmenter: random soups give the same whole, by bytes and in blocks, as the plain rules") {
  Random random(1);
  for (int round = 0; round < 6000; ++round) {
    const std::string text = soup(random, random.below(round % 10 == 0 ? 400 : 40));
    const Outcome expected = plain_segments(text);
    check_same_outcome(outcome_of(segment(text)), expected);
    check_same_outcome(outcome_of(segment(text, [] { return 1; })), expected);
    check_same_outcome(outcome_of(segment(text, [&] { return 1 + random.below(9); })), expected);
    check_same_outcome(outcome_of(segment(text, [&] { return 1 + random.below(150); })), expected);
  }
}

TEST("segmenter: an unclosed tree is given up at the cap, and short trees behind it are all found") {
  Random random(2);
  for (int round = 0; round < 60; ++round) {
    std::string text;
    while (text.size() < 10000) {
      const char* const lines[] = {"(A a)\n", "(B (C c)\n", "(D (E e) (F f))\n", "(G\n", " (H h)\n", "(I i) (J j\n"};
      text += lines[random.below(std::size(lines))];
    }
    const Outcome expected = plain_segments(text);
    for (const std::size_t size : {1, 7, 100, 1000})
      check_same_outcome(outcome_of(segment(text, [&] { return size; }, 1024)), expected);
  }
}

TEST("segmenter: the cap bounds what is held back") {
  for (const char* piece : {"(", "(a ", "(a\n", "(a (b\n", "\n("}) {
    BracketSegmenter segmenter(2000);
    Segments out;
    for (int i = 0; i < 20000; ++i) {
      segmenter.feed(piece, out);
      CHECK(segmenter.pending_bytes() <= 2 * 2000 + 8);  // one block more than twice the cap
    }
    segmenter.finish(out);
    CHECK(!out.problems.empty());
    CHECK(out.spans.empty());
    for (const TreeProblem& problem : out.problems) CHECK_EQ(problem.code, ErrorCode::unbalanced);
  }
}

TEST("segmenter: the cap does not depend on how the input is cut") {
  const auto tree_of = [](std::size_t bytes) { return "(A " + std::string(bytes - 4, 'a') + ")\n"; };
  const std::string text = tree_of(1024) + tree_of(1025) + "(x\n" + tree_of(400) + tree_of(1000) + "(" +
                           std::string(5000, 'b') + " (c c)\njunk (d d)\n(e e)\n";
  const Segments whole = segment(text, [&] { return text.size(); }, 1024);
  CHECK_EQ(whole.spans.size(), 4);      // 1024, 400, 1000 and (e e)
  CHECK_EQ(whole.problems.count(), 3);  // 1025, (x and the long one
  for (const std::size_t block : {1, 7, 100, 1110, 2500}) {
    const Segments cut = segment(text, [&] { return block; }, 1024);
    CHECK_EQ(cut.spans.size(), whole.spans.size());
    CHECK_EQ(cut.problems.count(), whole.problems.count());
    for (std::size_t i = 0; i < std::min(cut.problems.size(), whole.problems.size()); ++i) {
      CHECK_EQ(cut.problems[i].line, whole.problems[i].line);
      CHECK_EQ(cut.problems[i].excerpt, whole.problems[i].excerpt);
    }
  }
}

TEST("segmenter: excerpts hold whole characters and do not depend on how the input is cut") {
  const std::string text = "x\xC3\xA9" + std::string(36, 'y') + "\xE2\x82\xAC tail\n(a b)\njunk";
  const Segments whole = segment(text, [&] { return text.size(); });
  const Segments cut = segment(text, [] { return std::size_t{1}; });
  CHECK_EQ(whole.problems.count(), 2);
  CHECK_EQ(whole.problems[0].excerpt, "x\xC3\xA9" + std::string(36, 'y'));
  for (std::size_t i = 0; i < 2; ++i) CHECK_EQ(cut.problems[i].excerpt, whole.problems[i].excerpt);
}

TEST("segmenter: a tree below the cap is read, one far beyond it is not; the cap is at least 1024") {
  const auto tree_of = [](std::size_t bytes) { return "(A " + std::string(bytes - 4, 'a') + ")\n"; };
  for (const std::size_t cap : {0, 1000, 1024}) {
    const Segments found = segment(tree_of(1024) + tree_of(5000) + tree_of(500), [] { return 1; }, cap);
    CHECK_EQ(found.spans.size() > 0 ? found.spans[0].end - found.spans[0].begin : 0, 1024);
    CHECK_EQ(found.problems.count() > 0 ? found.problems[0].tree : 0, 2);
    CHECK_EQ(found.problems.count() > 0 ? found.problems[0].line : 0, 2);
    CHECK_EQ(found.spans.size() > 0 ? found.spans.back().line : 0, 3);
  }
  CHECK_EQ(segment(tree_of(5000), [] { return 1; }, 5000).spans.size(), 1);
}

TEST("segmenter: capped soups keep ordinals in order and spans balanced") {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    const std::string text = soup(random, 6000);
    const Segments found = segment(text, [&] { return 1 + random.below(300); }, 1024);
    std::uint64_t last = 0;
    for (const TreeSpan& span : found.spans) {
      const std::string_view tree = std::string_view(found.text).substr(span.begin, span.end - span.begin);
      CHECK(span.ordinal > last);
      CHECK_EQ(std::count(tree.begin(), tree.end(), '('), std::count(tree.begin(), tree.end(), ')'));
      CHECK(tree.front() == '(' && tree.back() == ')');
      CHECK(text.find(tree) != std::string::npos);
      last = span.ordinal;
    }
  }
}

namespace {

// Feeds `bytes` bytes of a repeated piece; the time must not grow faster than the input.
Segments timed(std::string_view piece, std::size_t bytes, std::size_t block, std::size_t cap = std::size_t{64} << 20) {
  std::string text;
  text.reserve(bytes + piece.size());
  while (text.size() < bytes) text += piece;
  const test::Clock clock;
  Segments found = segment(text, [&] { return block; }, cap);
  CHECK(clock.seconds() < 10);
  return found;
}

}  // namespace

TEST("segmenter: linear time on hostile input") {
  constexpr std::size_t bytes = test::load_bytes;
  CHECK_EQ(timed("(\n", bytes, bytes).problems.count(), bytes / 2);
  CHECK_EQ(timed("(\n", bytes, 65536).problems.count(), bytes / 2);
  CHECK_EQ(timed("(a\n", bytes, bytes).spans.size(), 0);
  CHECK_EQ(timed(")(", bytes, bytes).spans.size(), bytes / 2 - 1);
  CHECK_EQ(timed("*x*\n", bytes, bytes).problems.count(), 0);
  CHECK_EQ(timed("*", bytes, bytes).problems.count(), 1);
  CHECK_EQ(timed("x*", bytes, 1000).problems.count(), 1);
  CHECK_EQ(timed("\n*", bytes, bytes).problems.count(), 1);
  CHECK_EQ(timed("(", bytes, bytes).problems.count(), 1);
  CHECK_EQ(timed("(", bytes / 4, 1).problems.count(), 1);
  CHECK_EQ(timed(")", bytes, bytes).problems.count(), 1);
  CHECK_EQ(timed("((\n)", bytes, bytes).problems.count(), 1);
  CHECK_EQ(timed("\n", bytes / 4, 1).problems.count(), 0);
}

TEST("segmenter: linear time with unclosed lines between good ones") {
  constexpr std::size_t pairs = test::load_bytes / 8;  // a million of each
  for (const std::size_t block : {std::size_t{1} << 30, std::size_t{65536}}) {
    const Segments found = timed("(a\n(b)\n", pairs * 7, block);
    CHECK_EQ(found.problems.count(), pairs);
    CHECK_EQ(found.spans.size(), pairs);
  }
}

TEST("segmenter: linear time at the cap") {
  constexpr std::size_t bytes = test::load_bytes / 4;
  for (const std::size_t cap : {std::size_t{1024}, bytes / 4}) {
    for (const std::size_t block : {std::size_t{100}, std::size_t{65536}}) {
      CHECK_EQ(timed("(\n", bytes, block, cap).problems.count(), bytes / 2);
      CHECK_EQ(timed("(a\n(b)\n", bytes / 7 * 7, block, cap).spans.size(), bytes / 7);
      CHECK_EQ(timed("(", bytes, block, cap).spans.size(), 0);
    }
  }
}
