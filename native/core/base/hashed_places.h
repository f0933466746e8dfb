// A table that finds places of things in a vector by a hash; the things stay where they are, so it can grow.
#pragma once

#include <cstdint>
#include <vector>

namespace treelm {

class HashedPlaces {
 public:
  static constexpr std::uint32_t none = 0xFFFFFFFFu;

  // Returns the place of the thing for which `is_it` holds, or none; `add` may follow.
  template <class IsIt>
  std::uint32_t find(std::uint64_t hash, IsIt is_it) {
    const std::size_t mask = places_.size() - 1;
    for (slot_ = static_cast<std::size_t>(hash) & mask;; slot_ = (slot_ + 1) & mask)
      if (places_[slot_] == none || is_it(places_[slot_])) return places_[slot_];
  }
  // Adds what was not found: it stands at `place`, the last one. `hash_of` gives the hash of any place.
  template <class HashOf>
  void add(std::uint32_t place, HashOf hash_of) {
    places_[slot_] = place;
    if (2 * (std::size_t{place} + 1) < places_.size()) return;
    places_.assign(2 * places_.size(), none);
    const std::size_t mask = places_.size() - 1;
    for (std::uint32_t each = 0; each <= place; ++each) {
      std::size_t slot = static_cast<std::size_t>(hash_of(each)) & mask;
      while (places_[slot] != none) slot = (slot + 1) & mask;
      places_[slot] = each;
    }
  }
  void clear() { places_.assign(places_.size(), none); }
  std::size_t bytes() const { return places_.capacity() * sizeof(std::uint32_t); }

 private:
  std::vector<std::uint32_t> places_ = std::vector<std::uint32_t>(256, none);
  std::size_t slot_ = 0;
};

}  // namespace treelm
