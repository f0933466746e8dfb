#include "translation/coverage.h"

#include <algorithm>

#include "base/random.h"

namespace treelm {

void Coverages::begin(const FutureScores& future) {
  future_ = &future;
  length_ = future.length();
  width_ = std::max<std::size_t>(1, (length_ + 63) / 64);
  made_.assign(width_, 0);
  bits_.assign(width_, 0);
  facts_.assign(1, facts_of(bits_));
  places_.clear();
  places_.find(facts_[0].hash, [](std::uint32_t) { return false; });
  places_.add(0, [&](std::uint32_t at) { return facts_[at].hash; });
}

std::uint32_t Coverages::add(std::uint32_t coverage, std::size_t first, std::size_t end) {
  std::copy_n(bits_.begin() + static_cast<std::ptrdiff_t>(coverage * width_), width_, made_.begin());
  for (std::size_t word = first; word < end; ++word) made_[word / 64] |= std::uint64_t{1} << word % 64;
  std::uint64_t hash = 0;
  for (const std::uint64_t bits : made_) hash = mix64(hash ^ bits);
  const std::uint32_t known = places_.find(hash, [&](std::uint32_t at) {
    return std::equal(made_.begin(), made_.end(), bits_.begin() + static_cast<std::ptrdiff_t>(at * width_));
  });
  if (known != HashedPlaces::none) return known;
  const auto place = static_cast<std::uint32_t>(facts_.size());
  bits_.insert(bits_.end(), made_.begin(), made_.end());
  facts_.push_back(facts_of(made_));
  places_.add(place, [&](std::uint32_t at) { return facts_[at].hash; });
  return place;
}

Coverages::Facts Coverages::facts_of(std::span<const std::uint64_t> bits) const {
  Facts facts{0, 0, static_cast<std::uint32_t>(length_), 0};
  for (const std::uint64_t each : bits) facts.hash = mix64(facts.hash ^ each);
  const auto has = [&](std::size_t word) { return (bits[word / 64] >> word % 64 & 1) != 0; };
  for (std::size_t word = 0; word < length_;) {
    if (has(word)) {
      ++facts.count;
      ++word;
      continue;
    }
    std::size_t end = word + 1;
    while (end < length_ && !has(end)) ++end;
    if (facts.first_gap == length_) facts.first_gap = static_cast<std::uint32_t>(word);
    facts.future += future_->of(word, end);
    word = end;
  }
  return facts;
}

bool Coverages::less(std::uint32_t one, std::uint32_t other) const {
  for (std::size_t i = width_; i-- > 0;) {
    const std::uint64_t a = bits_[one * width_ + i], b = bits_[other * width_ + i];
    if (a != b) return a < b;
  }
  return false;
}

}  // namespace treelm
