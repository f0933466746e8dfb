// A mixture inside the decoder: every word by the weighted sum of what its parts say.
#pragma once

#include <memory>
#include <vector>

#include "translation/model_reader.h"

namespace treelm {

class MixtureSearchModel : public SearchModel {
 public:
  MixtureSearchModel(std::vector<std::shared_ptr<const SearchModel>> parts, std::vector<double> weights);
  std::unique_ptr<ModelReader> reader() const override;

 private:
  std::vector<std::shared_ptr<const SearchModel>> parts_;
  std::vector<double> log_weights_;
};

}  // namespace treelm
