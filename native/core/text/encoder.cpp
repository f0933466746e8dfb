#include "text/encoder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/unicode.h"

namespace treelm {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// One look-up instead of six comparisons for every byte.
constexpr auto white_space = [] {
  std::array<bool, 256> table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte) table[byte] = is_white_space(static_cast<char>(byte));
  return table;
}();

bool is_space(char byte) { return white_space[static_cast<unsigned char>(byte)]; }

}  // namespace

TextEncoder::TextEncoder(std::shared_ptr<const WordEncoder> vocabulary, bool training, std::uint64_t first_sentence)
    : vocabulary_(std::move(vocabulary)), training_(training), first_sentence_(first_sentence) {
  if (!vocabulary_) throw Error(ErrorCode::argument, "a closed encoder needs a vocabulary");
}

inline std::uint32_t TextEncoder::encode_open(std::string_view word, std::uint64_t position) {
  const std::uint32_t id = words_.intern(word);
  if (id == counts_.size()) {
    if (is_reserved_word(word)) throw reserved_word_error(word);
    counts_.push_back(0);
    first_counts_.push_back(0);
  }
  ++counts_[id];
  if (position == 0) ++first_counts_[id];
  return id;
}

inline std::uint32_t TextEncoder::encode_closed(std::string_view word, std::uint64_t position) {
  const std::uint32_t id = vocabulary_->encode(word, position);
  unknown_ += vocabulary_->is_unknown(id) ? 1 : 0;
  return id;
}

inline std::uint32_t TextEncoder::encode_training(std::string_view word, std::uint64_t position) {
  const std::uint32_t id = vocabulary_->encode_training(word, first_sentence_ + sentences_ - 1, position);
  unknown_ += vocabulary_->is_unknown(id) ? 1 : 0;
  return id;
}

// Calls `use` with the function that encodes a word, so that loops are compiled for each of them.
template <class Use>
void TextEncoder::with_mode(Use use) {
  if (is_open()) {
    use([this](std::string_view word, std::uint64_t position) { return encode_open(word, position); });
  } else if (training_ && vocabulary_->has_late_words()) {
    use([this](std::string_view word, std::uint64_t position) { return encode_training(word, position); });
  } else {
    use([this](std::string_view word, std::uint64_t position) { return encode_closed(word, position); });
  }
}

// Notes that a sentence begins with the word number `at`.
void TextEncoder::begin(std::uint64_t at) {
  if (!in_document_) {
    if (documents_ == none) throw Error(ErrorCode::too_large, "a corpus has at most 2^32 - 1 documents");
    ++documents_;
  }
  in_document_ = true;
  in_sentence_ = true;
  position_ = 0;
  ++sentences_;
  batch_.starts.push_back(at);
  batch_.documents.push_back(static_cast<std::uint32_t>(documents_ - 1));
}

void TextEncoder::begin_sentence() {
  in_sentence_ = false;
  begin(tokens_);
}

void TextEncoder::add_word(std::string_view word) {
  if (word.empty() || std::any_of(word.begin(), word.end(), is_space))
    throw Error(ErrorCode::bad_token, shown_word(word));
  if (!in_sentence_) begin(tokens_);
  with_mode([&](auto encode) { batch_.ids.push_back(encode(word, position_)); });
  ++position_;
  ++tokens_;
}

void TextEncoder::add_sentence(std::span<const std::string_view> words) {
  begin_sentence();
  with_mode([&](auto encode) {
    for (const std::string_view word : words) {
      batch_.ids.push_back(encode(word, position_++));
      ++tokens_;
    }
  });
  in_sentence_ = false;
}

// The bytes of `block` after the byte order mark with which a file may begin.
std::string_view TextEncoder::skip_mark(std::string_view block) {
  while (at_start_ && !block.empty()) {
    if (block.front() != byte_order_mark[mark_bytes_]) {
      at_start_ = false;
      rest_ = byte_order_mark.substr(0, mark_bytes_);  // no mark: these were the start of a word
      break;
    }
    block.remove_prefix(1);
    if (++mark_bytes_ == byte_order_mark.size()) at_start_ = false;
  }
  return block;
}

void TextEncoder::feed(std::string_view block) {
  block = skip_mark(block);
  if (!rest_.empty()) {
    const auto end = std::find_if(block.begin(), block.end(), is_space);
    const auto size = static_cast<std::size_t>(end - block.begin());
    if (rest_.size() + size > max_word_bytes)
      throw Error(ErrorCode::too_large, "a word is longer than 64 MiB", {line_, line_bytes_ + 1});
    if (size == block.size()) {
      rest_ += block;
      return;
    }
    rest_ += block.substr(0, size + 1);
    block.remove_prefix(size + 1);
    encode_lines(rest_);
    rest_.clear();
  }
  std::size_t whole = block.size();
  while (whole > 0 && !is_space(block[whole - 1])) --whole;
  encode_lines(block.substr(0, whole));
  rest_ = block.substr(whole);
}

void TextEncoder::finish() {
  if (at_start_) rest_ = byte_order_mark.substr(0, mark_bytes_);
  if (!rest_.empty()) {
    rest_ += ' ';
    encode_lines(rest_);
  }
  rest_ = {};
  in_sentence_ = in_document_ = false;
  at_start_ = true;
  mark_bytes_ = 0;
  line_ = 1;
  line_bytes_ = 0;
}

// Text that ends with white space, the first line perhaps begun before it.
void TextEncoder::encode_lines(std::string_view text) {
  const std::size_t invalid = first_invalid_utf8(text);
  if (invalid == std::string_view::npos) return split(text);
  // Lines before the bad one are read first: what is wrong with them comes first.
  const std::size_t line_end = text.substr(0, invalid).rfind('\n');
  const std::size_t begin = line_end == std::string_view::npos ? 0 : line_end + 1;
  split(text.substr(0, begin));
  throw Error(ErrorCode::encoding, std::string(code_sentence(ErrorCode::encoding)),
              {line_, line_bytes_ + invalid - begin + 1});
}

void TextEncoder::split(std::string_view text) {
  with_mode([&](auto encode) { split_with(text, encode); });
}

template <class Encode>
void TextEncoder::split_with(std::string_view text, Encode encode) {
  std::uint64_t before = line_bytes_;  // of the current line, before the text
  std::size_t line_begin = 0, at = 0;
  try {
    while (at < text.size()) {
      if (!is_space(text[at])) {
        std::size_t end = at + 1;
        while (!is_space(text[end])) ++end;  // the text ends with white space
        if (!in_sentence_) begin(tokens_);
        batch_.ids.push_back(encode(text.substr(at, end - at), position_));
        ++position_;
        ++tokens_;
        at = end;
      } else if (text[at++] == '\n') {
        if (!in_sentence_) in_document_ = false;
        in_sentence_ = false;
        ++line_;
        line_begin = at;
        before = 0;
      }
    }
  } catch (const Error& error) {
    throw Error(error.code(), error.what(), {line_, before + (at - line_begin) + 1});
  }
  line_bytes_ = before + (text.size() - line_begin);
}

TextEncoder::Batch TextEncoder::take() {
  Batch taken = std::exchange(batch_, {});
  batch_.ids.reserve(taken.ids.size());  // the next block is likely to hold as many
  return taken;
}

}  // namespace treelm
