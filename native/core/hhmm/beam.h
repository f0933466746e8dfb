// The parser state of an HHMM after some words: the stacks of a beam and their weights, never changed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hhmm/grammar.h"

namespace treelm {

// Stacks share what they have in common: the elements above the deepest one are the nodes of a tree, so that
// equal tails are one node. Node 0 is the empty tail. Nodes stand in the order of their depth, then of their
// parent, active and awaited symbol; stacks in the order of node and active symbol. Equal beams are therefore
// equal arrays. The awaited tag of the deepest element has been read and is forgotten. Words before are kept where the
// grammar asks for them, the latest first; they are the same for all stacks.
struct HhmmBeam {
  struct Node {
    std::uint32_t parent, active, awaited;
    bool operator==(const Node&) const = default;
  };
  struct Stack {
    std::uint32_t node, active;
    bool operator==(const Stack&) const = default;
  };
  bool initial = false;  // before the first word
  bool single = false;   // weights are those of 32 bits
  std::vector<Node> nodes{{0, 0, 0}};
  std::vector<Stack> stacks;
  std::vector<double> weights;
  std::vector<std::uint32_t> before;
  std::uint64_t hash = 0;

  void set_hash();
  bool same(const HhmmBeam& other) const;
  std::size_t bytes() const;
  std::vector<std::uint8_t> node_depths() const;

  std::string to_bytes() const;
  // Throws Error(table) unless these are the bytes of a beam in its one order; symbols are not looked at.
  static HhmmBeam from_bytes(std::string_view data);
  // Whether a grammar can have made it.
  bool fits(const HhmmGrammar& grammar) const;
};

using SharedBeam = std::shared_ptr<const HhmmBeam>;

// How hypotheses are told apart when a decoder merges them.
struct BeamKey {
  enum class Kind : std::uint8_t { exact, quantised, best, ignore };
  Kind kind = Kind::exact;
  std::uint32_t best = 0;
};

// 16 bytes: equal for beams that may be merged.
std::array<std::uint64_t, 2> beam_key(const HhmmBeam& beam, BeamKey key);

// Places of the stacks, the heaviest first; ties in the order of the symbols of whole stacks.
std::vector<std::uint32_t> heaviest_stacks(const HhmmBeam& beam, std::size_t count);

// Active and awaited symbols from the top of the stack down, and the active symbol of the deepest element.
std::vector<std::uint32_t> stack_symbols(const HhmmBeam& beam, HhmmBeam::Stack stack);

// Numbers about a beam that experiments ask for.
struct BeamMeasures {
  double entropy = 0;     // over stacks, in bits
  double mean_depth = 0;  // elements in use, the weighted mean
  double best_depth = 0;  // elements in use in the heaviest stack
  double stacks = 0;
};

BeamMeasures measure(const HhmmBeam& beam);

}  // namespace treelm
