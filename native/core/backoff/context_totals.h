// What follows each of many contexts, in eight bytes each: most contexts are rare, so that all their numbers fit; the
// others stand in a list of their own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backoff/continuation.h"
#include "base/large_vector.h"

namespace treelm {

class ContextTotals {
 public:
  using Large = std::vector<ContextCounts>;

  ContextTotals() = default;
  explicit ContextTotals(std::size_t contexts) : packed_(contexts, 0) {}

  std::size_t size() const { return packed_.size(); }
  bool any(std::size_t context) const { return packed_[context] != 0; }
  ContextCounts operator[](std::size_t context) const {
    const std::uint64_t packed = packed_[context];
    if (packed >> 63 != 0) return large_[packed & ~is_large];
    return {packed & most_total, {field(packed, 0), field(packed, 1), field(packed, 2)}};
  }
  const void* place(std::size_t context) const { return packed_.data() + context; }

  // Counts an outcome that was seen so often after a context. What does not fit goes to `large`; a context is always
  // given the same one, and each of them goes to `keep` in the end.
  void add(std::size_t context, std::uint32_t count, Large& large) {
    std::uint64_t& packed = packed_[context];
    const unsigned kind = std::min(count, 3u) - 1;
    if (packed >> 63 == 0) {
      if ((packed & most_total) + count <= most_total && field(packed, kind) < most_of_kind) {
        packed += count + (std::uint64_t{1} << (total_bits + kind * kind_bits));
        return;
      }
      large.push_back({packed & most_total, {field(packed, 0), field(packed, 1), field(packed, 2)}});
      packed = is_large | (large.size() - 1);
    }
    ContextCounts& counts = large[packed & ~is_large];
    counts.total += count;
    ++counts.outcomes_of[kind];
  }
  // Takes what did not fit of the contexts [from, to).
  void keep(std::size_t from, std::size_t to, const Large& large) {
    if (large.empty()) return;
    for (std::size_t i = from; i < to; ++i)
      if (packed_[i] >> 63 != 0) packed_[i] += large_.size();
    large_.insert(large_.end(), large.begin(), large.end());
  }

 private:
  static constexpr unsigned total_bits = 27, kind_bits = 12;
  static constexpr std::uint64_t is_large = std::uint64_t{1} << 63;
  static constexpr std::uint64_t most_total = (std::uint64_t{1} << total_bits) - 1;
  static constexpr std::uint32_t most_of_kind = (std::uint32_t{1} << kind_bits) - 1;
  static std::uint32_t field(std::uint64_t packed, unsigned kind) {
    return static_cast<std::uint32_t>(packed >> (total_bits + kind * kind_bits)) & most_of_kind;
  }

  LargeVector<std::uint64_t> packed_;
  Large large_;
};

}  // namespace treelm
