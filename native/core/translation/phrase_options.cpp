#include "translation/phrase_options.h"

#include <algorithm>

#include "base/interrupt.h"

namespace treelm {

PhraseOptions::PhraseOptions(std::shared_ptr<const PhraseTable> table, std::vector<double> weights,
                             const FeaturePlaces& places, std::size_t models, std::size_t limit)
    : table_(std::move(table)), weights_(std::move(weights)), places_(places), models_(models), limit_(limit) {}

void PhraseOptions::estimate(PhraseOption& option, ModelReaders& readers) const {
  option.score += weights_[places_.phrase_penalty];
  option.score -= weights_[places_.word_penalty] * static_cast<double>(option.words.size());
  option.estimate = option.score;
  for (std::size_t model = 0; model < models_; ++model) {
    const double estimate = weights_[places_.models + model] * readers[model]->estimate(option.words);
    option.estimate += estimate;
    if (readers[model]->cost() != ModelReader::Cost::look_up) option.dear += estimate;
  }
}

PhraseOption PhraseOptions::made(std::uint32_t row, ModelReaders& readers) const {
  const std::uint32_t target = table_->target(row);
  PhraseOption option{row, target, table_->target_words(target), 0, 0, 0};
  const auto scores = table_->scores(row);
  for (std::size_t i = 0; i < scores.size(); ++i) option.score += weights_[places_.scores + i] * scores[i];
  estimate(option, readers);
  return option;
}

PhraseOption PhraseOptions::copied(std::uint32_t target, std::span<const std::uint32_t> word,
                                   ModelReaders& readers) const {
  PhraseOption option{none, target, word, weights_[places_.unknown] * unknown_word, 0, 0};
  estimate(option, readers);
  return option;
}

std::span<const PhraseOption> PhraseOptions::of(std::uint32_t source, ModelReaders& readers) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(source); found != known_.end()) return *found->second;
  }
  const auto [first, last] = table_->rows_of(source);
  auto options = std::make_unique<std::vector<PhraseOption>>();
  options->reserve(last - first);
  for (std::uint32_t row = first; row < last; ++row) {
    poll_interrupt();
    table_->check_row(source, row);
    options->push_back(made(row, readers));
  }
  const auto better = [](const PhraseOption& a, const PhraseOption& b) {
    return a.estimate != b.estimate ? a.estimate > b.estimate : a.row < b.row;  // rows are in the order of strings
  };
  if (options->size() > limit_) {
    std::nth_element(options->begin(), options->begin() + static_cast<std::ptrdiff_t>(limit_), options->end(), better);
    options->resize(limit_);
    options->shrink_to_fit();
  }
  std::sort(options->begin(), options->end(), better);
  const std::lock_guard lock(mutex_);
  // Another thread may have been faster; what it found is the same.
  return *known_.try_emplace(source, std::move(options)).first->second;
}

}  // namespace treelm
