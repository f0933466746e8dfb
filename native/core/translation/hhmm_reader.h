// An HHMM inside the decoder: a state is the place of a beam; steps taken before are remembered within a sentence.
#pragma once

#include <memory>

#include "hhmm/search.h"
#include "translation/model_reader.h"

namespace treelm {

class HhmmSearchModel : public SearchModel {
 public:
  HhmmSearchModel(std::shared_ptr<const HhmmGrammar> grammar, std::shared_ptr<const WordMap> words, HhmmOptions options,
                  BeamKey key, std::size_t state_bytes);
  std::unique_ptr<ModelReader> reader() const override;

 private:
  std::shared_ptr<const HhmmGrammar> grammar_;
  std::shared_ptr<const WordMap> words_;
  HhmmOptions options_;
  BeamKey key_;
  std::size_t state_bytes_;  // of states that a reader keeps, unless more are in use
};

}  // namespace treelm
