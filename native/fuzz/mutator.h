// Inputs from inputs. An input depends on the seed, the number of its execution, and the corpus.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace treelm::fuzz {

// The random numbers of one execution.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t execution) : seed_(seed), execution_(execution) {}
  std::uint64_t bits() { return random_bits(seed_, execution_, next_++); }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(bits() % count); }
  bool chance(std::size_t one_in) { return below(one_in) == 0; }

 private:
  std::uint64_t seed_, execution_, next_ = 0;
};

class Mutator {
 public:
  Mutator(std::vector<std::string> tokens, std::size_t max_length);
  // One input of the corpus with a few changes: bytes flipped and set, numbers at which something
  // ends, tokens, blocks copied, repeated, moved and cut, the end of another input.
  std::string mutate(Random& random, const std::vector<std::string>& corpus) const;

 private:
  void change(Random& random, const std::vector<std::string>& corpus, std::string& text) const;

  std::vector<std::string> tokens_;
  std::size_t max_length_;
};

}  // namespace treelm::fuzz
