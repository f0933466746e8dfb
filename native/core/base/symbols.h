// Strings <-> dense 32-bit ids, ids given in order of first occurrence.
#pragma once

#include <bit>
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
  // What a symbol is known by: a short one by its size and its bytes, which are all of it, a longer one by a hash.
  static constexpr std::size_t short_bytes = 7;
  static constexpr std::uint64_t is_long = std::uint64_t{1} << 63;
  struct Slot {
    std::uint64_t key;
    std::uint32_t id;
  };

  std::uint64_t key_of(std::string_view text) const {
    if (text.size() > short_bytes) return hash_bytes(text, seed_) | is_long;
    const std::size_t size = text.size();
    std::uint64_t key = std::uint64_t{size} << 56;
    const auto byte = [&](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i); };
    if constexpr (std::endian::native == std::endian::little) {
      if (size >= 4) {  // two loads that may overlap: what they share lies in the same place
        std::uint32_t first, last;
        std::memcpy(&first, text.data(), 4);
        std::memcpy(&last, text.data() + size - 4, 4);
        return key | first | std::uint64_t{last} << (8 * (size - 4));
      }
      return size == 0 ? key : key | byte(0) | byte(size / 2) | byte(size - 1);
    }
    for (std::size_t i = 0; i < size; ++i) key |= byte(i);
    return key;
  }
  // Where the search for a key begins, once it is cut to the number of slots.
  std::size_t place_of(std::uint64_t key) const {
    std::uint64_t hash = key ^ seed_;
    hash = (hash ^ hash >> 29) * 0x9E3779B97F4A7C15ull;
    return static_cast<std::size_t>(hash ^ hash >> 32);
  }
  bool is(const Slot& slot, std::uint64_t key, std::string_view text) const {
    return slot.key == key && ((key & is_long) == 0 || (*this)[slot.id] == text);
  }
  void grow();

  std::uint64_t seed_;
  std::string bytes_;
  std::vector<std::uint32_t> start_;
  std::vector<Slot> slots_;
};

inline std::uint32_t Symbols::find(std::string_view text) const {
  const std::uint64_t key = key_of(text);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = place_of(key) & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.id == none || is(slot, key, text)) return slot.id;
  }
}

}  // namespace treelm
