#include "translation/search.h"

#include <cmath>

#include "tests/harness.h"
#include "translation/n_best.h"

using namespace treelm;

namespace {

constexpr std::string_view table_text =
    "das ||| the ||| 0.5 ||| 0-0\n"
    "haus ||| house ||| 0.25 ||| 0-0\n"
    "das haus ||| home ||| 0.1 ||| 0-0 1-0\n";

std::shared_ptr<PhraseTable> read_table(std::string_view text, std::size_t piece) {
  PhraseTableReader reader(false);
  for (std::size_t at = 0; at < text.size(); at += piece) reader.feed(text.substr(at, piece));
  return reader.finish();
}

std::shared_ptr<const SearchSetup> make_setup(bool cube) {
  auto table = read_table(table_text, 7);
  const FeaturePlaces places(false, 0, 1);
  std::vector<double> weights(places.size, 0.0);
  weights[places.scores] = weights[places.distortion] = weights[places.unknown] = 1;
  SearchLimits limits;
  limits.log_threshold = std::log(1e-5);
  limits.cube = cube;
  auto options = std::make_shared<PhraseOptions>(table, weights, places, 0, 20);
  return std::make_shared<const SearchSetup>(SearchSetup{std::move(table), {}, weights, places, limits, options});
}

}  // namespace

TEST("a phrase table is the same however its text is divided") {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{13}, table_text.size()}) {
    const auto table = read_table(table_text, piece);
    CHECK_EQ(table->rows(), std::size_t{3});
    CHECK_EQ(table->longest_source(), std::size_t{2});
    const std::uint32_t words[] = {table->words().find("das"), table->words().find("haus")};
    const auto [first, last] = table->rows_of(table->find(words));
    CHECK_EQ(last - first, 1u);
    CHECK_EQ(table->words()[table->target_words(table->target(first))[0]], std::string_view("home"));
    CHECK_EQ(table->alignment(first).size(), std::size_t{2});
  }
  CHECK_THROWS_CODE(read_table("das ||| the\n", 5), ErrorCode::phrase_table);
}

TEST("what a saved phrase table says is not believed") {
  const auto table = read_table(table_text, 7);
  const auto words = std::make_shared<const Symbols>(table->words());
  const auto changed = [&](const auto& change) {
    PhraseArrays arrays = table->arrays();
    change(arrays);
    const PhraseTable forged(words, arrays, 1);
    for (std::uint32_t source = 0; source < forged.sources(); ++source) {
      const auto [first, last] = forged.rows_of(source);
      for (std::uint32_t row = first; row < last; ++row) forged.check_row(source, row);
    }
    return forged.find(std::vector<std::uint32_t>{0});
  };
  CHECK_EQ(changed([](PhraseArrays&) {}), 0u);
  const std::vector<std::uint32_t> far{9, 9, 9}, falling{0, 3, 2, 3};
  const std::vector<std::uint64_t> ends_nowhere{0, 99, 3, 4}, alignment_falls{0, 2, 1, 4};
  const std::vector<double> scores{-1, -200, -1};
  const std::vector<AlignmentPoint> points{{0, 0}, {1, 0}, {9, 0}, {0, 0}};
  CHECK_THROWS_CODE(changed([&](PhraseArrays& a) { a.targets = far; }), ErrorCode::table);
  CHECK_THROWS_CODE(changed([&](PhraseArrays& a) { a.target_words = far; }), ErrorCode::table);
  CHECK_THROWS_CODE(changed([&](PhraseArrays& a) { a.row_starts = falling; }), ErrorCode::table);
  CHECK_THROWS_CODE(changed([&](PhraseArrays& a) { a.source_starts = ends_nowhere; }), ErrorCode::table);
  CHECK_THROWS_CODE(changed([&](PhraseArrays& a) { a.point_starts = alignment_falls; }), ErrorCode::table);
  CHECK_THROWS_CODE(changed([&](PhraseArrays& a) { a.scores = scores; }), ErrorCode::table);
  CHECK_THROWS_CODE(changed([&](PhraseArrays& a) { a.scores = a.scores.first(2); }), ErrorCode::table);
  CHECK_THROWS_CODE(changed([&](PhraseArrays& a) { a.points = points; }), ErrorCode::table);
  CHECK_THROWS_CODE(changed([&](PhraseArrays& a) { a.orientations = a.scores; }), ErrorCode::table);
  CHECK_THROWS_CODE(changed([&](PhraseArrays& a) { a.longest_source = 256; }), ErrorCode::table);
  CHECK_THROWS_CODE(changed([&](PhraseArrays& a) { a.targets = {}; }), ErrorCode::table);

  const std::vector<std::uint64_t> starts{0, 1, 2};
  CHECK_EQ(saved_words("ab", starts)->size(), 2u);
  for (const std::string_view bad : {"aa", "a ", "a\xFF", "abc"})
    CHECK_THROWS_CODE(saved_words(bad, starts), ErrorCode::table);
}

TEST("coverages are kept once and know what is left") {
  FutureScores future;
  const auto words = [](std::size_t first, std::size_t end) { return end - first == 1 ? -1.0 : -1e300; };
  future.fill(130, 1, words);
  Coverages coverages;
  coverages.begin(future);
  CHECK_EQ(coverages.future(Coverages::empty), -130.0);
  const std::uint32_t one = coverages.add(coverages.add(Coverages::empty, 0, 3), 100, 129);
  const std::uint32_t other = coverages.add(coverages.add(Coverages::empty, 100, 129), 0, 3);
  CHECK_EQ(one, other);
  CHECK_EQ(coverages.count(one), 32u);
  CHECK_EQ(coverages.first_gap(one), 3u);
  CHECK_EQ(coverages.future(one), -98.0);
  CHECK(coverages.has(one, 128) && !coverages.has(one, 129));
  CHECK(coverages.less(Coverages::empty, one) && !coverages.less(one, one));
}

TEST("both searches find the best translation and all the others") {
  for (const bool cube : {false, true}) {
    PhraseSearch search(make_setup(cube));
    const std::vector<std::string> source{"das", "haus", "neu"};
    search.run(source, true);
    const auto found = best_translations(search, 100, false, true);
    CHECK(!found.empty());
    CHECK_EQ(found.front().words, std::string("the house neu"));
    CHECK(std::abs(found.front().score - (std::log(0.125) - 100)) < 1e-12);
    CHECK_EQ(found.front().alignment, std::string("0-0 1-1 2-2"));
    search.run({}, true);
    CHECK_EQ(search.finals().size(), std::size_t{1});
  }
}
