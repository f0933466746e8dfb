#include "backoff/child_ranges.h"

#include <algorithm>

namespace treelm {

ChildRanges::ChildRanges(std::uint64_t contexts, std::uint64_t rows) : contexts_(contexts), rows_(rows) {
  const std::uint64_t numbers = contexts + 1;
  low_bits_ = rows < numbers ? 0 : static_cast<unsigned>(std::bit_width(rows / numbers) - 1);
  high_ = contexts / sampled + 1;
  high_words_ = (numbers + (rows >> low_bits_) + 63) / 64 * 2;  // read by two
  low_ = high_ + high_words_;
  low_words_ = (numbers * low_bits_ + 31) / 32;
}

std::vector<std::uint32_t> ChildRanges::encode(std::span<const std::uint32_t> begins) const {
  std::vector<std::uint32_t> words(this->words(), 0);
  for (std::uint64_t i = 0; i <= contexts_; ++i) {
    const std::uint64_t place = (begins[i] >> low_bits_) + i;
    if (i % sampled == 0) words[i / sampled] = static_cast<std::uint32_t>(place);
    words[high_ + place / 32] |= std::uint32_t{1} << place % 32;
    const std::uint64_t low = begins[i] & lowest_bits(low_bits_);
    for (std::uint64_t bit = i * low_bits_, b = 0; b < low_bits_; ++b, ++bit)
      words[low_ + bit / 32] |= static_cast<std::uint32_t>(low >> b & 1) << bit % 32;
  }
  return words;
}

bool ChildRanges::check(const std::uint32_t* words) const {
  std::uint64_t i = 0, before = 0;
  for (std::uint64_t at = 0; at < high_words_ / 2; ++at)
    for (std::uint64_t word = high_word(words, at); word != 0; word &= word - 1, ++i) {
      const std::uint64_t place = at * 64 + static_cast<std::uint64_t>(std::countr_zero(word));
      if (i > contexts_ || (i % sampled == 0 && words[i / sampled] != place)) return false;
      const std::uint64_t number = this->number(words, i, place);
      if (number < before || number > rows_ || (i == 0 && number != 0)) return false;
      before = number;
    }
  return i == contexts_ + 1 && before == rows_;
}

std::uint64_t ChildRanges::context_of(const std::uint32_t* words, std::uint64_t row) const {
  // The last group that begins at the row or before it, then the last context of it that does.
  std::uint64_t group = 0, beyond = contexts_ / sampled + 1;
  while (beyond - group > 1) {
    const std::uint64_t middle = group + (beyond - group) / 2;
    (sampled_number(words, middle) <= row ? group : beyond) = middle;
  }
  std::uint64_t context = group * sampled;
  while (context + 1 < contexts_ && range(words, context).second <= row) ++context;
  return context;
}

}  // namespace treelm
