// A structured or composite language model inside the decoder: a state is the place of a beam; steps taken before are
// remembered within a sentence.
#pragma once

#include <memory>
#include <vector>

#include "slm/search.h"
#include "translation/model_reader.h"

namespace treelm {

// Topics that stay the same within a sentence, each with its share; none for a model without topics.
struct FixedTopics {
  std::vector<std::uint32_t> topics;
  std::vector<double> shares;
};

class SlmSearchModel : public SearchModel {
 public:
  // `unigrams` has the log probability of every word on its own, by id.
  SlmSearchModel(std::shared_ptr<const SlmSearch> search, std::shared_ptr<const WordMap> words,
                 std::vector<double> unigrams, FixedTopics topics, std::size_t state_bytes);
  std::unique_ptr<ModelReader> reader() const override;

 private:
  std::shared_ptr<const SlmSearch> search_;
  std::shared_ptr<const WordMap> words_;
  std::vector<double> unigrams_;
  FixedTopics topics_;
  std::size_t state_bytes_;  // of states that a reader keeps, unless more are in use
};

}  // namespace treelm
