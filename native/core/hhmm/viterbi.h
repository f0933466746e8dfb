// The best trees of the right-corner HHMM, found word by word with a beam: of whole sentences, and of their beginnings.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

// A way to build a stack: the moves that built it, and what it was after each word.
struct StackHistory {
  struct Step {
    std::uint64_t id;    // of the derivation so far, among all after the same word
    std::uint64_t rank;  // of its probability among those that were kept, from 0
    double log_prob;     // of the words so far and the derivation, whatever comes next
    StackMove move;
  };
  double log_prob = 0;
  std::size_t first = 0;    // the word with which it begins: not the first one after the beam lost all
  std::vector<Step> steps;  // one per word from `first` on
};

struct PartialParses {
  // After each word the best ways to build a stack, the best first.
  std::vector<std::vector<StackHistory>> words;
  // The best ways to end the sentence after the last word.
  std::vector<StackHistory> whole;
};

class StackViterbi {
 public:
  // `beam` stacks are kept after each word.
  StackViterbi(const HhmmGrammar& grammar, std::size_t beam);

  StackParse parse(std::span<const std::vector<Emission>> words);
  // The `count` best derivations after each word; as many are kept for each stack. Where the beam loses all, the
  // search begins again at that word, with any tag if the word has none; probabilities then count from there.
  PartialParses partial_parses(std::span<const std::vector<Emission>> words, std::size_t count);

 private:
  struct Tail {
    std::uint32_t parent, active, awaited, depth;
  };
  struct Back {
    std::uint32_t from;
    StackMove move;
    double value = 0;  // that of the best way to come here from there
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

  void begin();
  void read(std::span<const Emission> word, std::vector<std::vector<Item>>& items);
  void read_first(std::span<const Emission> word);
  // Calls `found` with the place of every stack after which the sentence can end, and with the probability to do so.
  template <class Found>
  void find_ends(const std::vector<Item>& items, const Found& found) const {
    for (std::uint32_t place = 0; place < items.size(); ++place) {
      const Item& item = items[place];
      const double expected = item.tail == 0 ? grammar_.progeny(grammar_.row(1, 0), item.top) : 0.0;
      if (!(expected > 0)) continue;
      const auto [first, last] = grammar_.by_parent(0, item.top);
      for (std::size_t rule = first; rule < last; ++rule) found(place, grammar_.cross_values(0)[rule] / expected);
    }
  }
  void expand(const Item& item, std::uint32_t place);
  void emit(std::uint32_t tail, std::uint32_t active, double value, Back back);
  void add(const Candidate& candidate);
  void compact();
  void settle(std::vector<Item>& items);
  std::uint32_t tail_of(const Candidate& candidate);
  void collect(const std::vector<std::vector<Item>>& items, const std::vector<std::uint32_t>& finals,
               StackParse& found) const;
  double tolerance() const;

  struct Way;
  using Ways = std::vector<std::vector<Way>>;  // by item
  void read_again(std::span<const Emission> word, std::vector<Item>& items);
  Ways ways_of(const std::vector<Item>& items, const std::vector<Item>* before, const Ways* ways_before,
               std::size_t count) const;

  const HhmmGrammar& grammar_;
  std::size_t beam_;
  WordView word_;
  std::vector<Tail> tails_;
  std::vector<std::vector<std::uint32_t>> children_;  // of each tail
  std::vector<Back> backs_;
  std::vector<Candidate> candidates_;
  double log_scale_ = 0, threshold_ = 0;
  std::size_t ways_ = 0;  // that are kept for each stack beside those that tie with the best
};

}  // namespace treelm
