// One exception type for the whole core: a stable code, a place, one sentence per code.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace treelm {

enum class ErrorCode : std::uint8_t {
  unbalanced,
  text_outside,
  mixed,
  multi_word,
  no_word,
  empty_label,
  depth,
  encoding,
  reserved_char,
  too_large,
  argument,
  forked,
  threads,
  overflow,
  chain,
  no_data,
  table,
  arpa,
  reserved_symbol,
  bad_token,
  spill,
  not_a_number,
  yield_mismatch,
  phrase_table,
};

inline constexpr int error_code_count = 24;

// The name callers and tests compare, such as "E_UNBALANCED".
constexpr std::string_view code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::unbalanced: return "E_UNBALANCED";
    case ErrorCode::text_outside: return "E_TEXT_OUTSIDE";
    case ErrorCode::mixed: return "E_MIXED";
    case ErrorCode::multi_word: return "E_MULTI_WORD";
    case ErrorCode::no_word: return "E_NO_WORD";
    case ErrorCode::empty_label: return "E_EMPTY_LABEL";
    case ErrorCode::depth: return "E_DEPTH";
    case ErrorCode::encoding: return "E_ENCODING";
    case ErrorCode::reserved_char: return "E_RESERVED_CHAR";
    case ErrorCode::too_large: return "E_TOO_LARGE";
    case ErrorCode::argument: return "E_ARGUMENT";
    case ErrorCode::forked: return "E_FORKED";
    case ErrorCode::threads: return "E_THREADS";
    case ErrorCode::overflow: return "E_OVERFLOW";
    case ErrorCode::chain: return "E_CHAIN";
    case ErrorCode::no_data: return "E_NO_DATA";
    case ErrorCode::table: return "E_MODEL_TABLES";
    case ErrorCode::arpa: return "E_ARPA";
    case ErrorCode::reserved_symbol: return "E_RESERVED_SYMBOL";
    case ErrorCode::bad_token: return "E_BAD_TOKEN";
    case ErrorCode::spill: return "E_TEMPORARY";
    case ErrorCode::yield_mismatch: return "E_YIELD_MISMATCH";
    case ErrorCode::not_a_number: return "E_NAN";
    case ErrorCode::phrase_table: return "E_PHRASE_TABLE";
  }
  return "E_FAILED";
}

// What happened, in one sentence without a place.
constexpr std::string_view code_sentence(ErrorCode code) {
  switch (code) {
    case ErrorCode::unbalanced: return "a bracket is opened and not closed (within 32 MiB), or closed and never opened";
    case ErrorCode::text_outside: return "a token is outside any tree";
    case ErrorCode::mixed: return "a word is next to a bracketed child";
    case ErrorCode::multi_word: return "two words are under one tag";
    case ErrorCode::no_word: return "a label has nothing below it";
    case ErrorCode::empty_label: return "an inner node has no label";
    case ErrorCode::depth: return "brackets are nested deeper than max_depth";
    case ErrorCode::encoding: return "the text is not valid UTF-8";
    case ErrorCode::reserved_char: return "a category contains one of the reserved characters @ + ^ | \\";
    case ErrorCode::too_large: return "the input is larger than the kernel can index";
    case ErrorCode::argument: return "an argument has an impossible value";
    case ErrorCode::forked: return "a stream opened before a fork was used after it";
    case ErrorCode::threads: return "the threads asked for could not be started";
    case ErrorCode::overflow: return "a count does not fit into 32 bits";
    case ErrorCode::chain: return "the levels of a back-off chain do not follow from each other";
    case ErrorCode::no_data: return "there is nothing to count";
    case ErrorCode::table: return "a saved table does not fit its description";
    case ErrorCode::arpa: return "an ARPA file is malformed";
    case ErrorCode::reserved_symbol: return "a text contains <s> or </s> as a word";
    case ErrorCode::bad_token: return "a word is empty, contains white space, or is not valid Unicode";
    case ErrorCode::spill: return "temporary files cannot be written or read";
    case ErrorCode::yield_mismatch: return "a tree and its sentence have different words";
    case ErrorCode::not_a_number: return "a sum is NaN or infinite";
    case ErrorCode::phrase_table: return "a phrase table is malformed";
  }
  return "the kernel failed";
}

// Where in a file something is: lines and byte columns count from 1, 0 means unknown.
struct Place {
  std::uint64_t line = 0;
  std::uint64_t column = 0;
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, Place place = {})
      : std::runtime_error(message), code_(code), place_(place) {}
  explicit Error(ErrorCode code) : Error(code, std::string(code_sentence(code))) {}

  ErrorCode code() const { return code_; }
  Place place() const { return place_; }

 private:
  ErrorCode code_;
  Place place_;
};

}  // namespace treelm
