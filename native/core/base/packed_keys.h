// Rows of small integers packed into fixed-width keys whose numeric order is the order of the rows.
//
// The first column stands in the most significant bits of the first word, so dropping last columns
// leaves a prefix of bits, and rows that agree in their first columns lie side by side when sorted.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace treelm {

inline constexpr std::size_t max_key_words = 8;

template <std::size_t W>
struct Key {
  std::array<std::uint64_t, W> w;

  friend bool operator==(const Key&, const Key&) = default;
  friend auto operator<=>(const Key&, const Key&) = default;
};

// How many bits each column has.
class KeyLayout {
 public:
  KeyLayout() = default;
  explicit KeyLayout(std::vector<unsigned> bits) : bits_(std::move(bits)), offset_{0} {
    for (const unsigned width : bits_) offset_.push_back(offset_.back() + width);
    if (words() > max_key_words)
      throw Error(ErrorCode::too_large, "an event needs " + std::to_string(total()) + " bits, and keys have " +
                                            std::to_string(64 * max_key_words) + "; use a smaller order");
  }

  std::size_t columns() const { return bits_.size(); }
  unsigned bits(std::size_t column) const { return bits_[column]; }
  // Bits of the first `columns` columns.
  unsigned prefix(std::size_t columns) const { return offset_[columns]; }
  unsigned total() const { return offset_.empty() ? 0 : offset_.back(); }
  std::size_t words() const { return std::max<std::size_t>(1, (total() + 63) / 64); }

  // Whether `value` fits into `column`.
  bool fits(std::size_t column, std::uint32_t value) const {
    return static_cast<unsigned>(std::bit_width(value)) <= bits_[column];
  }

  template <std::size_t W>
  Key<W> pack(const std::uint32_t* row) const {
    Key<W> key{};
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      const unsigned end = offset_[i + 1];
      if (bits_[i] == 0) continue;
      const std::size_t last = (end - 1) / 64;
      const unsigned shift = static_cast<unsigned>(64 * (last + 1) - end);
      const std::uint64_t value = row[i];
      key.w[last] |= value << shift;
      if (offset_[i] / 64 != last) key.w[last - 1] |= value >> (64 - shift);
    }
    return key;
  }

  template <std::size_t W>
  std::uint32_t column(const Key<W>& key, std::size_t i) const {
    const unsigned end = offset_[i + 1], width = bits_[i];
    if (width == 0) return 0;
    const std::size_t last = (end - 1) / 64;
    const unsigned shift = static_cast<unsigned>(64 * (last + 1) - end);
    std::uint64_t value = key.w[last] >> shift;
    if (offset_[i] / 64 != last && shift != 0) value |= key.w[last - 1] << (64 - shift);
    return static_cast<std::uint32_t>(value & ((std::uint64_t{1} << width) - 1));
  }

  template <std::size_t W>
  void unpack(const Key<W>& key, std::uint32_t* row) const {
    for (std::size_t i = 0; i < bits_.size(); ++i) row[i] = column(key, i);
  }

 private:
  std::vector<unsigned> bits_;
  std::vector<unsigned> offset_;
};

// How many leading bits two keys share.
template <std::size_t W>
unsigned common_bits(const Key<W>& a, const Key<W>& b) {
  for (std::size_t i = 0; i < W; ++i) {
    const std::uint64_t difference = a.w[i] ^ b.w[i];
    if (difference != 0) return static_cast<unsigned>(64 * i) + static_cast<unsigned>(std::countl_zero(difference));
  }
  return static_cast<unsigned>(64 * W);
}

// The bits [from, to) of a key, moved to the front of a key of V words; the rest is zero.
template <std::size_t V, std::size_t W>
Key<V> slice(const Key<W>& key, unsigned from, unsigned to) {
  Key<V> out{};
  const std::size_t skip = from / 64;
  const unsigned shift = from % 64;
  for (std::size_t i = 0; i < V && i + skip < W; ++i) {
    out.w[i] = key.w[i + skip] << shift;
    if (shift != 0 && i + skip + 1 < W) out.w[i] |= key.w[i + skip + 1] >> (64 - shift);
  }
  const unsigned kept = to - from;
  for (std::size_t i = 0; i < V; ++i) {
    if (kept >= 64 * (i + 1)) continue;
    const unsigned here = kept > 64 * i ? kept - static_cast<unsigned>(64 * i) : 0;
    out.w[i] = here == 0 ? 0 : out.w[i] & (~std::uint64_t{0} << (64 - here));
  }
  return out;
}

// Calls body.template operator()<W>() for the smallest supported W that holds `words`.
template <class Body>
decltype(auto) with_key_words(std::size_t words, Body&& body) {
  switch (words) {
    case 0:
    case 1: return body.template operator()<1>();
    case 2: return body.template operator()<2>();
    case 3:
    case 4: return body.template operator()<4>();
    default: return body.template operator()<max_key_words>();
  }
}

// The W that with_key_words chooses.
inline std::size_t stored_words(std::size_t words) {
  if (words <= 2) return std::max<std::size_t>(words, 1);
  return words <= 4 ? 4 : max_key_words;
}

}  // namespace treelm
