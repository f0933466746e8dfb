// Where the values of each feature stand among all values of a hypothesis.
#pragma once

#include <cstddef>

#include "translation/phrase_table.h"

namespace treelm {

struct FeaturePlaces {
  FeaturePlaces(bool has_reordering, std::size_t models, std::size_t scores)
      : reordering(0),
        distortion(has_reordering ? orientations : 0),
        models(distortion + 1),
        word_penalty(this->models + models),
        phrase_penalty(word_penalty + 1),
        scores(phrase_penalty + 1),
        unknown(this->scores + scores),
        size(unknown + 1) {}

  std::size_t reordering, distortion, models, word_penalty, phrase_penalty, scores, unknown, size;
};

// The value for a source word that is copied because the table does not have it.
inline constexpr double unknown_word = -100;

}  // namespace treelm
