// Where the rows of each context lie in a sorted region: numbers that never fall, in about two bits
// each (Elias-Fano).
//
// For `contexts` contexts there are contexts + 1 numbers, from 0 to the number of rows; context i has
// the rows from number i up to number i + 1. The low bits of a number v stand in a field; its high
// bits are told by a set bit at (v >> low_bits) + i in a string of bits. Of every 16th number the
// place of its bit is kept, so that reading one looks at a few words only.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/bit_fields.h"

namespace treelm {

class ChildRanges {
 public:
  ChildRanges() = default;
  ChildRanges(std::uint64_t contexts, std::uint64_t rows);

  // Number of 32-bit words that they take.
  std::uint64_t words() const { return low_ + low_words_ + padding; }
  // The words of such numbers.
  std::vector<std::uint32_t> encode(std::span<const std::uint32_t> begins) const;
  // Whether words are what `encode` could have made. The functions below need such words.
  bool check(const std::uint32_t* words) const;

  using Range = std::pair<std::uint64_t, std::uint64_t>;
  // The rows of a context.
  Range range(const std::uint32_t* words, std::uint64_t context) const {
    std::uint64_t place = 0;
    std::uint64_t at = words[context / sampled] / 64;
    std::uint64_t word = high_word(words, at) & ~std::uint64_t{0} << words[context / sampled] % 64;
    for (std::uint64_t left = context % sampled;;) {
      while (word == 0) word = high_word(words, ++at);
      if (left-- == 0) break;
      word &= word - 1;
    }
    place = at * 64 + static_cast<std::uint64_t>(std::countr_zero(word));
    word &= word - 1;
    while (word == 0) word = high_word(words, ++at);
    const std::uint64_t next = at * 64 + static_cast<std::uint64_t>(std::countr_zero(word));
    return {number(words, context, place), number(words, context + 1, next)};
  }
  // The context that a row belongs to.
  std::uint64_t context_of(const std::uint32_t* words, std::uint64_t row) const;

  // What to ask for before `range` is called: first the one, then what the one tells.
  const void* sample_place(const std::uint32_t* words, std::uint64_t context) const {
    return words + context / sampled;
  }
  const void* bits_place(const std::uint32_t* words, std::uint64_t context) const {
    return words + high_ + words[context / sampled] / 32;
  }

 private:
  static constexpr std::uint64_t sampled = 16;
  static constexpr std::uint64_t padding = 4;  // words behind the last that may be read

  std::uint64_t high_word(const std::uint32_t* words, std::uint64_t at) const {
    std::uint64_t word;
    std::memcpy(&word, words + high_ + 2 * at, sizeof word);
    return word;
  }
  std::uint64_t low_field(const std::uint32_t* words, std::uint64_t i) const {
    return read_bits(reinterpret_cast<const std::uint8_t*>(words + low_), i * low_bits_, low_bits_);
  }
  std::uint64_t number(const std::uint32_t* words, std::uint64_t i, std::uint64_t place) const {
    return low_bits_ == 0 ? place - i : (place - i) << low_bits_ | low_field(words, i);
  }
  // The first number of a group of `sampled`.
  std::uint64_t sampled_number(const std::uint32_t* words, std::uint64_t group) const {
    return number(words, group * sampled, words[group]);
  }

  std::uint64_t contexts_ = 0, rows_ = 0;
  unsigned low_bits_ = 0;
  std::uint64_t high_ = 0, high_words_ = 0, low_ = 0, low_words_ = 0;  // begin and length of each part, in words
};

}  // namespace treelm
