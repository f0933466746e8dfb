#include "translation/model_reader.h"

namespace treelm {

WordMap::WordMap(const Symbols& words, std::shared_ptr<const WordEncoder> encoder) : encoder_(std::move(encoder)) {
  first_.reserve(words.size());
  later_.reserve(words.size());
  for (std::uint32_t word = 0; word < words.size(); ++word) {
    first_.push_back(encode(words[word], 0));
    later_.push_back(encode(words[word], 1));
  }
}

std::uint32_t WordMap::encode(std::string_view word, std::uint64_t position) const {
  // A boundary of sentences in a source text is a word like any other that no model knows.
  return is_reserved_word(word) ? WordEncoder::unknown : encoder_->encode(word, position);
}

void SentenceWords::begin(std::span<const std::string> own_words) {
  own_first_.clear();
  own_later_.clear();
  for (const std::string& word : own_words) {
    own_first_.push_back(map_->encode(word, 0));
    own_later_.push_back(map_->encode(word, 1));
  }
}

}  // namespace treelm
