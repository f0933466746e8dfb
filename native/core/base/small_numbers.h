// Numbers of which most are small, in a byte each; the others stand in a list of their own. They are read one after the
// other, from any place on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/large_vector.h"

namespace treelm {

class SmallNumbers {
 public:
  struct Large {
    std::uint64_t place;
    std::uint32_t value;
  };
  using LargeOnes = std::vector<Large>;

  SmallNumbers() = default;
  // So many numbers, which are set before they are read.
  explicit SmallNumbers(std::size_t size) : bytes_(size) {}

  std::size_t size() const { return bytes_.size(); }
  // Sets a number; what is too large goes to `large`, which `keep` must be given, the earlier places first. Different
  // threads may set different numbers.
  void set(std::size_t place, std::uint32_t value, LargeOnes& large) {
    bytes_[place] = static_cast<std::uint8_t>(std::min(value, escape));
    if (value >= escape) large.push_back({place, value});
  }
  void keep(const LargeOnes& large) { large_.insert(large_.end(), large.begin(), large.end()); }

  class Reader {
   public:
    Reader(const SmallNumbers& numbers, std::size_t from)
        : at_(numbers.bytes_.data() + from),
          large_(std::lower_bound(numbers.large_.begin(), numbers.large_.end(), from,
                                  [](const Large& large, std::size_t place) { return large.place < place; })) {}
    std::uint32_t next() {
      const std::uint32_t value = *at_++;
      return value < escape ? value : (large_++)->value;
    }

   private:
    const std::uint8_t* at_;
    LargeOnes::const_iterator large_;
  };
  Reader from(std::size_t place) const { return {*this, place}; }

 private:
  static constexpr std::uint32_t escape = 255;

  LargeVector<std::uint8_t> bytes_;
  LargeOnes large_;
};

}  // namespace treelm
