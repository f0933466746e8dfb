#include "translation/extraction.h"

#include <algorithm>

#include "base/error.h"
#include "tests/harness.h"
#include "translation/phrase_lines.h"

using namespace treelm;

namespace {

// "das haus" - "the house", aligned word by word, and an empty pair.
const std::vector<std::uint32_t> source{0, 1}, target{0, 1}, links{0, 0, 1, 1};
const std::vector<std::uint64_t> starts{0, 2, 2};

AlignedText small_text() { return {source, target, starts, starts, links, starts}; }

}  // namespace

TEST("phrase pairs keep their links inside") {
  const PhrasePairs found = extract_phrases(small_text(), 2, no_progress);
  CHECK_EQ(found.size(), 3u);  // das, das haus, haus
  CHECK(std::all_of(found.counts.begin(), found.counts.end(), [](std::uint32_t count) { return count == 1; }));
  CHECK(std::all_of(found.target_given_source.begin(), found.target_given_source.end(),
                    [](double weight) { return weight == 1; }));
  CHECK_EQ(extract_phrases(small_text(), 1, no_progress).size(), 2u);
  const std::vector<std::string> german{"das", "haus"}, english{"the", "house"};
  const PhraseLines lines(found, german, english, 1);
  CHECK_EQ(lines.phrase_table(0, 2), std::string("das ||| the ||| 1 1 1 1 ||| 0-0 ||| 1 1 1 ||| |||\n"
                                                 "das haus ||| the house ||| 1 1 1 1 ||| 0-0 1-1 ||| 1 1 1 ||| |||\n"));
}

TEST("links that lead outside their sentences are refused") {
  const std::vector<std::uint32_t> outside{0, 0, 1, 2};
  AlignedText text = small_text();
  text.links = outside;
  CHECK_THROWS_CODE(check_aligned_text(text), ErrorCode::argument);
  text = small_text();
  text.link_starts = text.link_starts.first(2);
  CHECK_THROWS_CODE(check_aligned_text(text), ErrorCode::argument);
}

TEST("two directions grow together") {
  const std::vector<std::uint64_t> words{0, 3}, two{0, 2};
  // 0-0 is in both; 1-1 is a neighbour of it; 2-2 is in one only, far away, and its words are free.
  const Links forward{{0, 0, 1, 1}, two}, backward{{0, 0, 2, 2}, two};
  const Links found = grow_diag_final_and(words, words, forward, backward);
  CHECK(found.places == std::vector<std::uint32_t>({0, 0, 1, 1, 2, 2}));
}
