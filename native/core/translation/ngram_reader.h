// An n-gram model inside the decoder: a state is a context of its table.
#pragma once

#include <memory>
#include <optional>

#include "backoff/table.h"
#include "translation/model_reader.h"

namespace treelm {

struct NgramSearchOptions {
  std::uint32_t start = 0, end = 0;    // ids of the boundaries of sentences
  std::optional<double> oov_log_prob;  // of words that the table has nothing for, before back-off weights
};

class NgramSearchModel : public SearchModel {
 public:
  NgramSearchModel(std::shared_ptr<const BackoffTable> table, std::shared_ptr<const WordMap> words,
                   NgramSearchOptions options);
  std::unique_ptr<ModelReader> reader() const override;

 private:
  std::shared_ptr<const BackoffTable> table_;
  std::shared_ptr<const WordMap> words_;
  NgramSearchOptions options_;
};

}  // namespace treelm
