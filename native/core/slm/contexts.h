// Contexts met during a search, each with a place, so that what follows from one is computed once.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace treelm {

// Keys of one length -> 0, 1, 2 ... in the order in which they came.
class ContextTable {
 public:
  void clear(std::size_t length) {
    length_ = length;
    keys_.clear();
    count_ = 0;
    slots_.assign(slots_.empty() ? 64 : slots_.size(), 0);
  }
  std::size_t size() const { return count_; }
  std::span<const std::uint32_t> key(std::size_t place) const { return {keys_.data() + place * length_, length_}; }
  // The place of a key, and whether it is new.
  std::pair<std::uint32_t, bool> insert(std::span<const std::uint32_t> key) {
    if (slots_.empty()) clear(key.size());
    if (2 * (count_ + 1) > slots_.size()) grow();
    for (std::size_t slot = hash(key) & (slots_.size() - 1);; slot = (slot + 1) & (slots_.size() - 1)) {
      const std::uint32_t found = slots_[slot];
      if (found == 0) {
        keys_.insert(keys_.end(), key.begin(), key.end());
        slots_[slot] = static_cast<std::uint32_t>(++count_);
        return {static_cast<std::uint32_t>(count_ - 1), true};
      }
      if (length_ == 0 ||
          std::memcmp(keys_.data() + (found - 1) * length_, key.data(), length_ * sizeof(std::uint32_t)) == 0)
        return {found - 1, false};
    }
  }

 private:
  static std::size_t hash(std::span<const std::uint32_t> key) {
    std::uint64_t value = 0x9E3779B97F4A7C15ULL;
    for (const std::uint32_t part : key) {
      value = (value ^ part) * 0xBF58476D1CE4E5B9ULL;
      value ^= value >> 29;
    }
    return static_cast<std::size_t>(value);
  }
  void grow() {
    slots_.assign(2 * slots_.size(), 0);
    for (std::size_t place = 0; place < count_; ++place) {
      std::size_t slot = hash(key(place)) & (slots_.size() - 1);
      while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = static_cast<std::uint32_t>(place + 1);
    }
  }

  std::size_t length_ = 0, count_ = 0;
  std::vector<std::uint32_t> keys_, slots_;
};

struct Choice {
  double log_prob;
  std::uint32_t outcome;
};

// By falling probability; those too unlikely to be tried are left out.
using TagList = std::vector<Choice>;
struct MoveList {
  double null_log_prob = 0;
  std::vector<Choice> moves;
};

}  // namespace treelm
