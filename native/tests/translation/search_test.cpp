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
