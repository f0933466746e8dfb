// Sets of source words that hypotheses have translated: each is kept once, with what follows from it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hashed_places.h"

namespace treelm {

// What is left to do costs about this much: best scores of spans, and of what they can be divided into.
class FutureScores {
 public:
  // No span may be without an option of one word. `best(i, j)` is the best score of an option for the words i to j - 1,
  // or minus infinity; options have `longest` words at most.
  template <class Best>
  void fill(std::size_t length, std::size_t longest, const Best& best);
  double of(std::size_t first, std::size_t end) const { return values_[first * (length_ + 1) + end]; }
  std::size_t length() const { return length_; }

 private:
  std::size_t length_ = 0;
  std::vector<double> values_;
};

class Coverages {
 public:
  static constexpr std::uint32_t empty = 0;

  void begin(const FutureScores& future);
  // The set with the words first to end - 1 as well.
  std::uint32_t add(std::uint32_t coverage, std::size_t first, std::size_t end);
  bool has(std::uint32_t coverage, std::size_t word) const {
    return (bits_[coverage * width_ + word / 64] >> word % 64 & 1) != 0;
  }
  // The first word that is not in it, or the length of the sentence.
  std::uint32_t first_gap(std::uint32_t coverage) const { return facts_[coverage].first_gap; }
  std::uint32_t count(std::uint32_t coverage) const { return facts_[coverage].count; }
  // The estimate for all words that are not in it.
  double future(std::uint32_t coverage) const { return facts_[coverage].future; }
  // Whether one is less than the other, both read as numbers in which word 0 is the lowest bit.
  bool less(std::uint32_t one, std::uint32_t other) const;
  std::size_t bytes() const { return bits_.capacity() * sizeof(std::uint64_t) + facts_.capacity() * sizeof(Facts); }

 private:
  struct Facts {
    std::uint64_t hash;
    double future;
    std::uint32_t first_gap, count;
  };
  Facts facts_of(std::span<const std::uint64_t> bits) const;

  const FutureScores* future_ = nullptr;
  std::size_t length_ = 0, width_ = 1;
  std::vector<std::uint64_t> bits_, made_;
  std::vector<Facts> facts_;
  HashedPlaces places_;
};

template <class Best>
void FutureScores::fill(std::size_t length, std::size_t longest, const Best& best) {
  length_ = length;
  values_.assign((length + 1) * (length + 1), 0.0);
  // The best division of a span begins with one option; the rest is divided as well as can be.
  for (std::size_t first = length; first-- > 0;)
    for (std::size_t end = first + 1; end <= length; ++end) {
      double most = -1e300;
      for (std::size_t middle = first + 1; middle <= end && middle <= first + longest; ++middle) {
        const double value = best(first, middle) + of(middle, end);
        if (value > most) most = value;
      }
      values_[first * (length + 1) + end] = most;
    }
}

}  // namespace treelm
