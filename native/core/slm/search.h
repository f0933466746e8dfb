// Synchronous multi-stack search of a structured language model (Chelba and Jelinek 2000).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "lattice/model.h"
#include "slm/beam.h"
#include "slm/contexts.h"
#include "topics/em.h"

namespace treelm {

struct SlmOptions {
  std::size_t stack_size = 10;                                 // 0: all
  double threshold = std::numeric_limits<double>::infinity();  // nats below the best of a stack
  double beam = 0;                                             // smallest probability of a tag or adjoining move
  bool merge = false;                                          // sum hypotheses of one stack with the same heads
};

// The topics of a document and their shares; none for a model without topics.
struct TopicShares {
  std::span<const std::uint32_t> topics;
  std::span<const double> shares;
};

// What the word predictor sees, summed over hypotheses that look the same to it.
struct SlmFrontier {
  std::vector<std::uint32_t> columns;  // rows of predictor_columns()
  std::vector<double> shares;          // of the probability of all hypotheses; they add up to 1
};

struct SlmParse {
  double score = 0;                    // ln P(words, parse)
  std::vector<std::uint16_t> actions;  // as `replay` takes them
};

struct SlmParts {
  std::shared_ptr<const LatticeModel> predictor, tagger, constructor;
};

class SlmSearch {
 public:
  // Everything that grows with use, one for each thread.
  struct Workspace;

  SlmSearch(const SlmShape& shape, SlmParts parts, const SlmOptions& options, std::size_t topics);

  const SlmShape& shape() const { return shape_; }
  const SlmOptions& options() const { return options_; }
  const SlmParts& parts() const { return parts_; }
  std::size_t topics() const { return topics_; }

  // Puts a word behind a beam and returns ln P(word | beam). With `keep` actions are kept and scores stay ln
  // P(words, parse); without, hypotheses are weighed against each other only.
  double advance(SlmBeam& beam, std::uint32_t word, TopicShares mixture, Workspace& work, bool keep) const;
  double finish(const SlmBeam& beam, TopicShares mixture, Workspace& work) const;
  // The same in a document whose topics follow its words: by the largest `keep` topics, and the mixture moves
  // on by `rate`.
  double advance(SlmBeam& beam, std::uint32_t word, TopicMixture& mixture, std::size_t keep, double rate,
                 Workspace& work) const;
  double finish(const SlmBeam& beam, TopicMixture& mixture, std::size_t keep, double rate, Workspace& work) const;
  SlmFrontier frontier(const SlmBeam& beam, Workspace& work) const;
  // P(outcome | beam) for all outcomes.
  std::vector<double> distribution(const SlmBeam& beam, TopicShares mixture, Workspace& work) const;
  // What each topic gives a word or the end, summed over hypotheses.
  std::vector<double> topic_probs(const SlmBeam& beam, std::uint32_t word, Workspace& work) const;
  // The best complete parses of a sentence, by falling score, then by their actions.
  std::vector<SlmParse> best_parses(std::span<const std::uint32_t> words, std::size_t count, TopicShares mixture,
                                    Workspace& work) const;
  // ln P(words, parse) of a given parse.
  double score_parse(std::span<const std::uint32_t> words, std::span<const std::uint16_t> actions, TopicShares mixture,
                     Workspace& work) const;
  // P(word | columns), topics summed out.
  double predict(std::span<const std::uint32_t> columns, std::uint32_t word, TopicShares mixture,
                 Workspace& work) const;

 private:
  struct Candidate;
  void find_frontier(const SlmBeam& beam, Workspace& work) const;
  // P(word | beam); fills the probabilities of the frontier, and with `every_topic` those of all topics.
  double predict_word(const SlmBeam& beam, std::uint32_t word, TopicShares mixture, bool every_topic,
                      Workspace& work) const;
  void extend(SlmBeam& beam, std::uint32_t word, double prob, Workspace& work, bool keep) const;
  void tag_word(const SlmBeam& beam, std::uint32_t word, Workspace& work) const;
  void construct(SlmBeam& beam, Workspace& work, bool keep) const;
  void settle(SlmBeam& beam, std::size_t first, Workspace& work, bool keep) const;
  static void weigh(SlmBeam& beam);
  static bool earlier_actions(const SlmBeam& beam, std::uint32_t one, std::uint32_t two, Workspace& work);
  void prune(std::vector<Candidate>& stack, const SlmBeam& beam, Workspace& work, bool keep) const;
  const MoveList& moves_of(const SlmBeam& beam, std::uint32_t top, MoveChoice choice, Workspace& work) const;
  const TagList& tags_of(const SlmBeam& beam, std::uint32_t top, std::uint32_t word, Workspace& work) const;

  SlmShape shape_;
  SlmParts parts_;
  SlmOptions options_;
  std::size_t topics_;
};

struct SlmSearch::Candidate {
  double score;
  std::uint64_t hash;
  std::uint32_t below, word, label, depth, actions, action, unaries;
};

struct SlmSearch::Workspace {
  ContextTable frontier, tag_contexts, move_contexts;
  std::vector<double> frontier_shares, frontier_probs, row, topic_row, topic_sums, kept_shares;
  std::vector<std::uint32_t> all_topics;
  std::vector<std::uint32_t> context_of;  // by hypothesis: place in the frontier
  std::vector<TagList> tag_lists;
  std::vector<MoveList> move_lists;
  std::vector<std::vector<Candidate>> stacks;
  std::vector<std::uint32_t> key, path, other_path;
  std::uint32_t tagged_word = 0xFFFFFFFF;
};

}  // namespace treelm
