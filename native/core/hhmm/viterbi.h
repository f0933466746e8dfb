// The best tree of the right-corner HHMM, found word by word with a beam.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hhmm/context_view.h"
#include "hhmm/grammar.h"
#include "hhmm/word.h"

namespace treelm {

// What happened before a word: a left child was completed and found its parent, in the same element (`within`)
// or in the one above (`across`); then the word came, below `awaited` or as `awaited` itself.
struct StackMove {
  enum class Kind : std::uint8_t { start, within, across };
  Kind kind;
  std::uint32_t parent, awaited, tag;
};

struct StackParse {
  double log_prob = 0;  // of the tree and the words, their end included
  // Trees that tie, each a move for every word; none if the beam lost all.
  std::vector<std::vector<StackMove>> derivations;
};

inline constexpr std::size_t most_tied_derivations = 1000;

class StackViterbi {
 public:
  // `beam` stacks are kept after each word.
  StackViterbi(const HhmmGrammar& grammar, std::size_t beam);

  // Words of the grammar.
  StackParse parse(std::span<const std::uint32_t> words);

 private:
  struct Tail {
    std::uint32_t parent, active, awaited, depth;
  };
  struct Back {
    std::uint32_t from;
    StackMove move;
  };
  struct Item {
    double value;
    std::uint32_t tail, top;
    std::size_t first_back, backs;
  };
  struct Candidate {
    double value;
    std::uint32_t tail, active, awaited, top;  // active is no_symbol where there is no new element
    Back back;
  };

  void expand(const Item& item, std::uint32_t place);
  void emit(std::uint32_t tail, std::uint32_t active, double value, Back back);
  void add(const Candidate& candidate);
  void compact();
  void settle(std::vector<Item>& items);
  std::uint32_t tail_of(const Candidate& candidate);
  void collect(const std::vector<std::vector<Item>>& items, const std::vector<std::uint32_t>& finals,
               StackParse& found) const;
  double tolerance() const;

  const HhmmGrammar& grammar_;
  std::size_t beam_;
  WordView word_;
  ContextView context_;
  std::vector<Tail> tails_;
  std::vector<std::vector<std::uint32_t>> children_;  // of each tail
  std::vector<Back> backs_;
  std::vector<Candidate> candidates_;
  double log_scale_ = 0, threshold_ = 0;
};

}  // namespace treelm
