// The translations of source phrases that a search tries: the best few of each, scored as far as they can be alone.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "translation/features.h"
#include "translation/model_reader.h"
#include "translation/phrase_table.h"

namespace treelm {

struct PhraseOption {
  std::uint32_t row;     // of the table; `none` for a word that is copied
  std::uint32_t target;  // the phrase: of the table, or behind all of these
  std::span<const std::uint32_t> words;
  double score;     // weighted features that need no context
  double estimate;  // and what the language models will say, about
  double dear;      // of that, what models say that are slow to ask
};

using ModelReaders = std::vector<std::unique_ptr<ModelReader>>;

// Remembers them; safe for threads. What it gives lives as long as this.
class PhraseOptions {
 public:
  PhraseOptions(std::shared_ptr<const PhraseTable> table, std::vector<double> weights, const FeaturePlaces& places,
                std::size_t models, std::size_t limit);

  // The best options of a source phrase, the best first; equal ones in the order of their strings.
  std::span<const PhraseOption> of(std::uint32_t source, ModelReaders& readers);
  // A word that is copied.
  PhraseOption copied(std::uint32_t target, std::span<const std::uint32_t> word, ModelReaders& readers) const;

 private:
  PhraseOption made(std::uint32_t row, ModelReaders& readers) const;
  void estimate(PhraseOption& option, ModelReaders& readers) const;

  std::shared_ptr<const PhraseTable> table_;
  std::vector<double> weights_;
  FeaturePlaces places_;
  std::size_t models_, limit_;
  std::mutex mutex_;
  std::unordered_map<std::uint32_t, std::unique_ptr<const std::vector<PhraseOption>>> known_;
};

}  // namespace treelm
