// The search for the best translation of a sentence: stacks of hypotheses by the number of source words that they
// cover (Koehn, Och & Marcu 2003), extended by phrase after phrase, or cell by cell of cubes (Huang & Chiang 2007).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hashed_places.h"
#include "translation/coverage.h"
#include "translation/features.h"
#include "translation/model_reader.h"
#include "translation/phrase_memo.h"
#include "translation/phrase_options.h"
#include "translation/phrase_table.h"

namespace treelm {

inline constexpr std::size_t longest_source = 4000;

struct SearchLimits {
  std::size_t stack_size = 200;   // hypotheses kept in a stack
  double log_threshold = 0;       // those worse than the best by more are dropped; not above 0
  std::int64_t distortion = 6;    // words a jump may be long; -1 for any
  std::size_t phrase_length = 7;  // source words
  bool early_discard = false;     // give up what looks bad before models are asked
  bool cube = false;              // cube pruning
  std::size_t pop_limit = 1000;   // cells taken for a stack
  std::size_t coverage_pops = 1;  // and at least so many for a coverage
  double seconds = 0;             // for a sentence, 0 for any
  std::size_t bytes = 0;          // the same
};

// What many searches share.
struct SearchSetup {
  std::shared_ptr<const PhraseTable> table;
  std::vector<std::shared_ptr<const SearchModel>> models;
  std::vector<double> weights;
  FeaturePlaces places;
  SearchLimits limits;
  std::shared_ptr<PhraseOptions> options;
};

struct SearchHypothesis {
  double score = 0;
  const PhraseOption* option = nullptr;
  std::uint32_t coverage = 0;
  std::uint32_t first = 0, end = 0;  // the source words of its last phrase
  std::uint32_t previous = 0;
  std::uint32_t alternative = none;  // one that a search need not tell from it, and worse
};

struct SearchCounts {
  std::uint64_t hypotheses = 0, recombined = 0, discarded = 0, model_reads = 0, model_repeats = 0, pops = 0;
};

enum class SearchCut : std::uint8_t { none, time, memory };

class PhraseSearch {
 public:
  explicit PhraseSearch(std::shared_ptr<const SearchSetup> setup);

  // Searches; with alternatives, lists of translations can be taken from it afterwards.
  void run(std::span<const std::string> source, bool alternatives);

  // An end of the search: a hypothesis that covers everything, and its score with the ends of the models.
  struct Final {
    std::uint32_t hypothesis;
    double score;
  };
  std::span<const Final> finals() const { return finals_; }
  const SearchHypothesis& operator[](std::uint32_t hypothesis) const { return hypotheses_[hypothesis]; }
  std::size_t size() const { return hypotheses_.size(); }
  const SearchSetup& setup() const { return *setup_; }
  const Coverages& coverages() const { return coverages_; }
  std::string_view word(std::uint32_t id) const;
  // All feature values of the step to a hypothesis, and of its end, are added to `values`.
  void add_features(std::uint32_t hypothesis, std::span<double> values) const;
  void add_end_features(std::uint32_t hypothesis, std::span<double> values);

  bool relaxed() const { return relaxed_; }
  SearchCut cut() const { return cut_; }
  const SearchCounts& counts() const { return counts_; }

 private:
  struct Stack {
    std::vector<std::uint32_t> members;
    std::vector<std::uint64_t> hashes;  // of the members, while hypotheses come in
    HashedPlaces places;
    double best = 0, cut = 0;
    bool last = false;

    void begin(bool is_last);
  };
  struct Span {
    std::uint32_t first, end;
    std::span<const PhraseOption> options;
  };
  // A way to extend hypotheses of one coverage and end.
  struct Step {
    const Span* span;
    std::uint32_t coverage;  // after it
    double jump;             // weighted
    double future;
  };
  struct Edge {
    Step step;
    std::span<const std::uint32_t> rows;  // hypotheses, the best first
  };
  struct Cell {
    double estimate;
    std::uint32_t edge, row, column;
    bool read;  // by the models that are quick to ask
  };
  struct Popped {
    std::uint32_t from;
    Step step;
    const PhraseOption* option;
  };

  void collect_options(std::span<const std::string> source);
  void search(std::int64_t distortion);
  void search_stacks(std::int64_t distortion);
  void search_cubes(std::int64_t distortion);
  void fill_by_cubes(std::size_t target);
  template <class Visit>
  void each_step(std::uint32_t coverage, std::uint32_t end, std::int64_t distortion, const Visit& visit);
  // Tries hypotheses with options; models that are asked in batches are asked first, about all of them.
  void extend_all(std::span<const Popped> all);
  void ask_batches(std::span<const Popped> all);
  double base_score(const Popped& popped) const;
  // The score by the first models in the order, so many of them; less is asked if it is below `cut` anyway.
  double score_by(std::size_t models, const Popped& popped, double cut);
  double reordering_score(std::uint32_t from, std::uint32_t first, std::uint32_t end, const PhraseOption& option) const;
  void extend(const Popped& popped);
  const ModelPart* read(std::size_t model, const Popped& popped);
  ModelPart answer(std::size_t model, ModelState state, const PhraseOption& option);
  void insert(Stack& stack, const SearchHypothesis& made);
  std::uint32_t append(const SearchHypothesis& made);
  std::uint64_t key_hash(const SearchHypothesis& made) const;
  bool same_key(const SearchHypothesis& made, std::uint32_t other) const;
  double total(std::uint32_t hypothesis) const {
    return hypotheses_[hypothesis].score + coverages_.future(hypotheses_[hypothesis].coverage);
  }
  bool before(std::uint32_t one, std::uint32_t other) const;
  bool target_less(std::uint32_t one, std::uint32_t other) const;
  void prune(Stack& stack);
  void tighten(Stack& stack);
  void forget_states(std::size_t stack);
  bool out_of_bounds();
  std::size_t bytes() const;
  void finish();

  std::shared_ptr<const SearchSetup> setup_;
  ModelReaders readers_;
  std::vector<std::size_t> order_;  // models, the cheap ones first
  std::vector<bool> may_gain_;      // by place in the order: whether this or a later model can raise a score
  std::size_t dear_from_;           // place in the order of the first that is slow to ask
  std::size_t batches_from_;        // and of the first that is asked in batches
  ModelPart answer_;                // the last one of a model that is as quick as remembering
  std::vector<PhraseMemo> memos_;
  bool alternatives_ = false, relaxed_ = false;
  SearchCut cut_ = SearchCut::none;
  std::chrono::steady_clock::time_point began_;
  SearchCounts counts_;

  std::size_t length_ = 0;
  std::vector<std::string> own_words_;
  std::vector<std::uint32_t> source_ids_, own_ids_;
  std::vector<PhraseOption> copies_;
  std::vector<Span> spans_;             // by first word and length, where there are options
  std::vector<std::uint32_t> span_at_;  // place in these, or `none`
  FutureScores future_;
  Coverages coverages_;
  std::vector<SearchHypothesis> hypotheses_;
  std::vector<ModelPart> parts_, made_parts_;  // one for each model and hypothesis; and those of a new one
  std::vector<Stack> stacks_;
  std::vector<Final> finals_;
  std::vector<Popped> tried_;
  std::vector<std::vector<Edge>> edges_;             // by target stack
  std::vector<std::vector<std::uint32_t>> grouped_;  // members of each stack, group by group
  std::vector<Cell> cells_;
  std::vector<std::uint32_t> pops_of_;  // by coverage
  std::vector<PhraseReading> readings_;
  std::vector<std::uint32_t> reading_targets_;
  std::vector<ModelState> reading_states_, live_;
  mutable std::vector<std::uint32_t> one_string_, other_string_;
};

}  // namespace treelm
