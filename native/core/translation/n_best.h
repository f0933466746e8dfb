// The best derivations of a search, one after the other, each worked out when it is asked for (Huang & Chiang 2005,
// algorithm 3), and what is told about them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "translation/search.h"

namespace treelm {

class Derivations {
 public:
  explicit Derivations(const PhraseSearch& search);

  // The hypotheses of the next best derivation, the last one first; false if there is none.
  bool next(std::vector<std::uint32_t>& steps);
  // The end that it reaches.
  std::uint32_t last_node() const { return last_; }

 private:
  // A way to a hypothesis: the arc is it or one of its alternatives; before it lies the derivation of that rank.
  struct Way {
    double score;
    std::uint32_t arc, rank;
  };
  struct Node {
    std::vector<Way> best, waiting;  // waiting is a heap
    bool begun = false;
  };
  static bool worse(const Way& a, const Way& b);
  static void push(Node& node, const Way& way);
  Node& node_of(std::uint32_t hypothesis);
  // Whether a hypothesis has a derivation of this rank; it is then among the best of its node.
  bool find(std::uint32_t hypothesis, std::uint32_t rank);

  const PhraseSearch& search_;
  std::vector<std::uint32_t> place_;  // of the node of a hypothesis
  std::vector<Node> nodes_;
  std::vector<Way> ends_;  // a heap: the arc is a final one
  bool has_last_ = false;
  Way last_end_{};
  std::uint32_t last_ = 0;
};

// A translation with everything that is said about it.
struct TranslationEntry {
  std::string words;
  std::vector<double> features;
  double score = 0;       // of these features
  std::string alignment;  // pairs source-target
};

// The best translations of a search, `count` at most; `distinct` gives each string once.
std::vector<TranslationEntry> best_translations(PhraseSearch& search, std::size_t count, bool distinct,
                                                bool alignments);

// All hypotheses that lead to an end, a line for each, in the manner of Moses.
std::string search_graph(const PhraseSearch& search, std::uint64_t sentence);

}  // namespace treelm
