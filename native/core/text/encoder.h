// Plain tokenized text -> ids: one sentence per line, words at white space, blank lines end documents.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/symbols.h"
#include "text/word_encoder.h"

namespace treelm {

// Takes text in blocks cut anywhere. With a vocabulary every word becomes its id; without one the
// ids are given in order of first occurrence, and the words and how often they occur are kept.
class TextEncoder {
 public:
  // What was read since the last `take`.
  struct Batch {
    std::vector<std::uint32_t> ids;        // one per word
    std::vector<std::uint64_t> starts;     // of every sentence begun, counted in words from the very first
    std::vector<std::uint32_t> documents;  // of every sentence begun, from 0
  };

  // A longer word is refused with Error(too_large); lines may have any length.
  static constexpr std::size_t max_word_bytes = std::size_t{64} << 20;

  // Open: no vocabulary.
  TextEncoder() = default;
  // Closed. `training`: late words are unknown before their place; sentences count from
  // `first_sentence`.
  TextEncoder(std::shared_ptr<const WordEncoder> vocabulary, bool training, std::uint64_t first_sentence);

  // Throws Error(encoding) and Error(reserved_symbol) with their places; the encoder is of no more
  // use after that.
  void feed(std::string_view block);
  // The end of a file: the last line and document are complete. Another file may follow.
  void finish();

  // Sentences that are split already; a document continues until `finish`.
  void begin_sentence();
  // Throws Error(bad_token) for a word that is empty or holds white space.
  void add_word(std::string_view word);
  // A whole sentence of words that are known to be sound.
  void add_sentence(std::span<const std::string_view> words);

  Batch take();

  bool is_open() const { return vocabulary_ == nullptr; }
  std::uint64_t sentences() const { return sentences_; }
  std::uint64_t tokens() const { return tokens_; }
  std::uint64_t documents() const { return documents_; }
  // Closed: words that became a signature or <unk>.
  std::uint64_t unknown() const { return unknown_; }
  // Open: the words by id, how often each occurs, and how often at the start of a sentence.
  const Symbols& words() const { return words_; }
  const std::vector<std::uint64_t>& counts() const { return counts_; }
  const std::vector<std::uint64_t>& first_counts() const { return first_counts_; }

  // For callers on several threads, who must not call at once.
  std::mutex& mutex() { return mutex_; }

 private:
  void encode_lines(std::string_view text);
  void split(std::string_view text);
  template <class Encode>
  void split_with(std::string_view text, Encode encode);
  std::string_view skip_mark(std::string_view block);
  void begin(std::uint64_t at);
  std::uint32_t encode_open(std::string_view word, std::uint64_t position);
  std::uint32_t encode_closed(std::string_view word, std::uint64_t position);
  std::uint32_t encode_training(std::string_view word, std::uint64_t position);
  template <class Use>
  void with_mode(Use use);

  std::mutex mutex_;
  std::shared_ptr<const WordEncoder> vocabulary_;
  bool training_ = false;
  std::uint64_t first_sentence_ = 1;

  Batch batch_;
  std::uint64_t sentences_ = 0, tokens_ = 0, documents_ = 0, unknown_ = 0;
  Symbols words_;
  std::vector<std::uint64_t> counts_, first_counts_;

  bool in_sentence_ = false, in_document_ = false;
  std::uint64_t position_ = 0;

  // Of the file being read.
  std::string rest_;              // the start of a word that continues in the next block
  std::size_t mark_bytes_ = 0;    // of a byte order mark seen so far
  bool at_start_ = true;          // it may still come
  std::uint64_t line_ = 1;        // of what comes next
  std::uint64_t line_bytes_ = 0;  // of that line before `rest_`
};

}  // namespace treelm
