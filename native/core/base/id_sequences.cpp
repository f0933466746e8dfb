#include "base/id_sequences.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

namespace treelm {

namespace {

std::uint64_t hash_ids(std::span<const std::uint32_t> ids) {
  std::uint64_t hash = mix64(hash_seed() ^ ids.size());
  for (const std::uint32_t id : ids) hash = (hash ^ id) * 0x9E3779B97F4A7C15ull ^ (hash >> 29);
  return mix64(hash);
}

}  // namespace

std::uint32_t IdSequences::intern(std::span<const std::uint32_t> sequence) {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash_ids(sequence) & mask;; at = (at + 1) & mask) {
    const std::uint32_t id = slots_[at];
    if (id == none) {
      const std::uint32_t made = size();
      if (made + 1 >= none) throw Error(ErrorCode::too_large, "there are more than four billion distinct sequences");
      slots_[at] = made;
      data_.insert(data_.end(), sequence.begin(), sequence.end());
      start_.push_back(data_.size());
      if (2 * std::size_t{made} >= slots_.size()) grow();
      return made;
    }
    const auto found = (*this)[id];
    if (found.size() == sequence.size() && std::equal(found.begin(), found.end(), sequence.begin())) return id;
  }
}

std::uint32_t IdSequences::find(std::span<const std::uint32_t> sequence) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash_ids(sequence) & mask;; at = (at + 1) & mask) {
    const std::uint32_t id = slots_[at];
    if (id == none) return none;
    const auto found = (*this)[id];
    if (found.size() == sequence.size() && std::equal(found.begin(), found.end(), sequence.begin())) return id;
  }
}

void IdSequences::clear() {
  data_.clear();
  start_.assign(1, 0);
  std::fill(slots_.begin(), slots_.end(), none);
}

void IdSequences::grow() {
  slots_.assign(2 * slots_.size(), none);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t id = 0; id < size(); ++id) {
    std::size_t at = hash_ids((*this)[id]) & mask;
    while (slots_[at] != none) at = (at + 1) & mask;
    slots_[at] = id;
  }
}

}  // namespace treelm
