// The next tag after a stack, by the grammar alone; and what all tags add up to once each has a factor, so that the
// factors of tags can be divided by it and make probabilities again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hashed_places.h"
#include "hhmm/grammar.h"

namespace treelm {

// Tags depend on what a stack looks like from below: its level, the symbol awaited there and the active one. What was
// worked out is kept in so many bytes, or a little more. Not for threads.
class NextTags {
 public:
  explicit NextTags(const HhmmGrammar& grammar, std::size_t bytes = std::size_t{128} << 20);

  // Turns to factors by tag, the first tag at 0; they must live on.
  void weigh(std::span<const double> factors);
  // Probabilities by tag, all 0 for a stack that cannot be; the next call may move them.
  std::span<const double> shares(std::uint32_t level, std::uint32_t awaited, std::uint32_t active);
  // The same before the first word.
  std::span<const double> first_shares();
  // The sum of the probabilities of all tags times their factors.
  double sum(std::uint32_t level, std::uint32_t awaited, std::uint32_t active);
  double first_sum();

 private:
  struct Look {
    std::uint32_t level, awaited, active;
    std::uint64_t stamp;  // when its sum was found
    double sum;
  };
  std::uint32_t find(std::uint32_t level, std::uint32_t awaited, std::uint32_t active);
  void add(std::uint32_t level, std::uint32_t awaited, std::uint32_t active, double* out);
  void await(std::uint32_t symbol, double mass);
  void add_awaited(std::uint32_t level, double* out);
  void add_row(std::int32_t row, double mass, double* out) const;
  double weighed(std::span<const double> shares) const;

  const HhmmGrammar& grammar_;
  std::size_t tags_, most_;
  std::span<const double> factors_;
  std::uint64_t stamp_ = 0;
  HashedPlaces places_;
  std::vector<Look> looks_;
  std::vector<double> shares_;   // of each look
  std::vector<double> first_;    // before the first word
  std::vector<double> awaited_;  // by symbol, while shares are worked out
  std::vector<std::uint32_t> touched_;
};

}  // namespace treelm
