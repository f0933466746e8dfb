// Strings <-> dense 32-bit ids, ids given in order of first occurrence.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace treelm {

inline constexpr std::uint32_t none = 0xFFFFFFFFu;

// A fast hash of a byte string for tables in memory; it depends on the machine's byte order, so it
// never reaches a file.
inline std::uint64_t hash_bytes(std::string_view text, std::uint64_t seed = 0) {
  constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15ull;
  std::uint64_t hash = (text.size() * multiplier) ^ seed;
  const char* at = text.data();
  std::size_t left = text.size();
  while (left >= 8) {
    std::uint64_t piece;
    std::memcpy(&piece, at, 8);
    hash = (hash ^ piece) * multiplier;
    hash ^= hash >> 32;
    at += 8;
    left -= 8;
  }
  // The last bytes without a loop: two loads that may overlap, or the three bytes that matter.
  std::uint64_t tail = 0;
  if (left >= 4) {
    std::uint32_t first, last;
    std::memcpy(&first, at, 4);
    std::memcpy(&last, at + left - 4, 4);
    tail = std::uint64_t{first} << 32 | last;
  } else if (left > 0) {
    const auto byte = [&](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(at[i])}; };
    tail = byte(0) << 16 | byte(left / 2) << 8 | byte(left - 1);
  }
  hash = (hash ^ tail) * multiplier;
  return hash ^ (hash >> 29);
}

// Different in every process, so that nobody can write words that all fall into one slot. Ids follow
// first occurrence, so results do not depend on it.
std::uint64_t hash_seed();

class Symbols {
 public:
  Symbols();

  // The id of `text`, given now if it is new.
  std::uint32_t intern(std::string_view text);
  // The id of `text`, or `none`.
  std::uint32_t find(std::string_view text) const;
  std::string_view operator[](std::uint32_t id) const {
    return {bytes_.data() + start_[id], start_[id + 1] - start_[id]};
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(start_.size() - 1); }
  void clear();

 private:
  bool equals(std::uint32_t id, std::string_view text) const {
    return start_[id + 1] - start_[id] == text.size() &&
           std::memcmp(bytes_.data() + start_[id], text.data(), text.size()) == 0;
  }
  struct Slot {
    std::uint32_t hash;
    std::uint32_t id;
  };
  void grow();

  std::string bytes_;
  std::vector<std::uint32_t> start_;
  std::vector<Slot> slots_;
};

}  // namespace treelm
