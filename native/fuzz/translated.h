// What the fuzz targets of phrase tables do with one that was accepted.
#pragma once

#include <cmath>
#include <memory>

#include "target.h"
#include "translation/n_best.h"
#include "translation/phrase_table.h"
#include "translation/search.h"

namespace treelm::fuzz {

// Translates a sentence by a table, and looks whether the result is one.
inline void translate(std::shared_ptr<PhraseTable> table, bool cube) {
  const FeaturePlaces places(table->has_reordering(), 0, table->score_count());
  std::vector<double> weights(places.size, 0.25);
  SearchLimits limits;
  limits.log_threshold = std::log(1e-5);
  limits.cube = cube;
  limits.stack_size = 5;
  limits.distortion = 2;
  auto options = std::make_shared<PhraseOptions>(table, weights, places, 0, 3);
  const std::size_t features = places.size;
  PhraseSearch search(
      std::make_shared<const SearchSetup>(SearchSetup{std::move(table), {}, weights, places, limits, options}));
  const std::vector<std::string> source{"das", "haus", "neu", "das", "haus", "\xC3\xA9"};
  search.run(source, true);
  const auto found = best_translations(search, 20, true, true);
  require(!found.empty() && !search.relaxed(), "every sentence has a translation");
  for (const TranslationEntry& entry : found) {
    double sum = 0;
    for (std::size_t i = 0; i < features; ++i) sum += weights[i] * entry.features[i];
    require(sum == entry.score && std::isfinite(sum), "features add up to the score");
  }
  require(!search_graph(search, 0).empty(), "a search has a graph");
}

}  // namespace treelm::fuzz
