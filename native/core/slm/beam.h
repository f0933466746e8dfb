// Partial parses of the words so far, as the search of a structured language model holds them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "slm/shape.h"

namespace treelm {

// An exposed head and the one to its left; the first of a beam is <s>, which lies on itself.
struct SlmHead {
  std::uint32_t below = 0;
  std::uint32_t word = 0;
  std::uint32_t label = 0;
  std::uint64_t hash = 0;  // of it and all heads below
};

// The last action of a hypothesis and the place of those before it; the first is none.
struct SlmAction {
  std::uint32_t before = 0;
  std::uint32_t action = 0;
};

struct SlmHypothesis {
  double score = 0;  // natural logarithm
  std::uint32_t top = 0;
  std::uint32_t depth = 0;  // heads above <s>
  std::uint32_t moves = 0;  // that were not null, since the start of the sentence
  std::uint32_t actions = 0;
};

// Hypotheses by number of moves, then by falling score.
struct SlmBeam {
  std::vector<SlmHead> heads;
  std::vector<SlmAction> actions;  // only where the search keeps them
  std::vector<SlmHypothesis> hypotheses;
  std::vector<std::uint32_t> words;  // those before the next, the last one first
  bool initial = true;

  // Drops heads that no hypothesis reaches; the order of the others stays.
  void compact();
  bool same(const SlmBeam& other) const;
  std::uint64_t hash() const;
  std::string to_bytes() const;
  // Throws if the bytes are not a beam.
  static SlmBeam from_bytes(std::string_view data);
  // Whether all words and labels are those of a model of this shape.
  bool fits(const SlmShape& shape) const;
};

SlmBeam initial_beam(const SlmShape& shape);
std::uint64_t head_hash(std::uint64_t below, std::uint32_t word, std::uint32_t label);
// Negative, zero or positive: stacks by their heads from the top, word before label.
int compare_heads(const std::vector<SlmHead>& heads, std::uint32_t first, std::uint32_t second);

// All actions up to a place, in order.
void actions_before(const std::vector<SlmAction>& actions, std::uint32_t place, std::vector<std::uint32_t>& path);

}  // namespace treelm
