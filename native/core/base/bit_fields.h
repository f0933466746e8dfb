// Numbers of a few bits each, one behind the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace treelm {

// A read takes eight bytes from the one that a field begins in: so many must be there behind the last.
inline constexpr std::size_t bit_field_padding = 8;
inline constexpr unsigned widest_bit_field = 57;

inline constexpr std::uint64_t lowest_bits(unsigned bits) { return bits == 0 ? 0 : ~std::uint64_t{0} >> (64 - bits); }

// The field of so many bits, `widest_bit_field` at most, that begins at a bit.
inline std::uint64_t read_bits(const std::uint8_t* bytes, std::uint64_t bit, unsigned bits) {
  std::uint64_t word;
  std::memcpy(&word, bytes + (bit >> 3), sizeof word);
  return word >> (bit & 7) & lowest_bits(bits);
}

// Gathers fields into words of 64 bits, which `write` takes.
template <class Write>
class BitWriter {
 public:
  explicit BitWriter(const Write& write) : write_(write) {}
  void add(std::uint64_t value, unsigned bits) {
    value &= lowest_bits(bits);
    word_ |= used_ < 64 ? value << used_ : 0;
    if (used_ + bits < 64) {
      used_ += bits;
      return;
    }
    write_(word_);
    const unsigned taken = 64 - used_;
    word_ = taken < 64 ? value >> taken : 0;
    used_ = bits - taken;
  }
  // Fills the last word with zeros.
  void finish() {
    if (used_ != 0) write_(word_);
    word_ = 0;
    used_ = 0;
  }

 private:
  const Write& write_;
  std::uint64_t word_ = 0;
  unsigned used_ = 0;
};

}  // namespace treelm
