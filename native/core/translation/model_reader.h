// Language models as the decoder's search uses them: states are numbers, words those of the phrase table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/symbols.h"
#include "text/word_encoder.h"

namespace treelm {

// A state of a model within one sentence and one reader.
using ModelState = std::uint64_t;

// Words one after the other, and what they give.
struct PhraseReading {
  ModelState state;  // before; then after
  std::span<const std::uint32_t> words;
  double log_prob = 0;
};

// What one thread needs of a model. Log probabilities are natural, and `log_floor` for a word at least.
class ModelReader {
 public:
  virtual ~ModelReader() = default;
  // A sentence begins. `own_words` are those that the phrase table does not know: their ids follow its last.
  // States of sentences before are forgotten.
  virtual void begin(std::span<const std::string> own_words) = 0;
  virtual ModelState initial() = 0;
  // Reads words after a state.
  virtual void read(PhraseReading& phrase) = 0;
  // How dear that is: models are asked in this order. Those that want batches are asked about many phrases at once.
  enum class Cost : std::uint8_t { look_up, parse, batches };
  virtual Cost cost() const = 0;
  virtual void read_many(std::span<PhraseReading> phrases) {
    for (PhraseReading& each : phrases) read(each);
  }
  virtual double finish(ModelState state) = 0;
  // Equal for states that a search may take for one.
  virtual std::uint64_t key(ModelState state) = 0;
  // What words cost anywhere, about.
  virtual double estimate(std::span<const std::uint32_t> words) = 0;

  // Memory of states; whether it is too much; and leave to forget all states but these.
  virtual std::size_t bytes() const { return 0; }
  virtual bool needs_room() const { return false; }
  virtual void keep_only(std::span<const ModelState>) {}
};

// A model that many threads read.
class SearchModel {
 public:
  virtual ~SearchModel() = default;
  virtual std::unique_ptr<ModelReader> reader() const = 0;
};

// The ids that a model has for the words of a phrase table: at the start of a sentence, and later in it.
class WordMap {
 public:
  WordMap(const Symbols& words, std::shared_ptr<const WordEncoder> encoder);
  std::uint32_t first(std::uint32_t word) const { return first_[word]; }
  std::uint32_t later(std::uint32_t word) const { return later_[word]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(later_.size()); }
  std::uint32_t encode(std::string_view word, std::uint64_t position) const;

 private:
  std::shared_ptr<const WordEncoder> encoder_;
  std::vector<std::uint32_t> first_, later_;
};

// A word map and the words of one sentence.
class SentenceWords {
 public:
  explicit SentenceWords(std::shared_ptr<const WordMap> map) : map_(std::move(map)) {}
  void begin(std::span<const std::string> own_words);
  std::uint32_t id(std::uint32_t word, bool first) const {
    if (word < map_->size()) return first ? map_->first(word) : map_->later(word);
    return first ? own_first_[word - map_->size()] : own_later_[word - map_->size()];
  }

 private:
  std::shared_ptr<const WordMap> map_;
  std::vector<std::uint32_t> own_first_, own_later_;
};

}  // namespace treelm
