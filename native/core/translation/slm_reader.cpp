#include "translation/slm_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/hashed_places.h"
#include "base/random.h"
#include "translation/phrase_table.h"

namespace treelm {

namespace {

class SlmSearchReader : public ModelReader {
 public:
  SlmSearchReader(const SlmSearch& search, std::shared_ptr<const WordMap> words, std::span<const double> unigrams,
                  TopicShares mixture, std::size_t state_bytes)
      : search_(search), words_(std::move(words)), unigrams_(unigrams), mixture_(mixture), state_bytes_(state_bytes) {}

  void begin(std::span<const std::string> own_words) override {
    words_.begin(own_words);
    states_.clear();
    state_places_.clear();
    steps_.clear();
    step_places_.clear();
    bytes_ = 0;
    initial_ = place_of(initial_beam(search_.shape()));
  }
  ModelState initial() override { return initial_; }

  void read(PhraseReading& phrase) override {
    auto state = static_cast<std::uint32_t>(phrase.state);
    phrase.log_prob = 0;
    for (const std::uint32_t word : phrase.words)
      phrase.log_prob += advance(state, words_.id(word, states_[state].beam->initial));
    phrase.state = state;
  }

  double finish(ModelState state) override {
    return std::max(log_floor, search_.finish(*states_[state].beam, mixture_, work_));
  }
  // A state in use is never forgotten, so equal ones among these have one place.
  std::uint64_t key(ModelState state) override { return state; }

  double estimate(std::span<const std::uint32_t> words) override {
    double sum = 0;
    for (std::size_t at = 0; at < words.size(); ++at)
      sum += std::max(log_floor, unigrams_[words_.id(words[at], at == 0)]);
    return sum;
  }

  Cost cost() const override { return Cost::parse; }
  std::size_t bytes() const override { return bytes_; }
  bool needs_room() const override { return bytes_ > state_bytes_; }

  void keep_only(std::span<const ModelState> live) override {
    std::vector<bool> is_live(states_.size(), false);
    for (const ModelState state : live) is_live[state] = true;
    is_live[initial_] = true;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (is_live[i] || !states_[i].beam) continue;
      bytes_ -= bytes_of(*states_[i].beam);
      states_[i].beam.reset();
    }
  }

 private:
  struct State {
    std::unique_ptr<const SlmBeam> beam;  // nothing once it is forgotten
    std::uint64_t hash;
  };
  struct KnownStep {
    std::uint32_t state, word, next;
    double log_prob;
    std::uint64_t hash() const { return mix64(std::uint64_t{state} << 32 | word); }
  };

  static std::size_t bytes_of(const SlmBeam& beam) {
    return sizeof beam + beam.heads.capacity() * sizeof(SlmHead) + beam.hypotheses.capacity() * sizeof(SlmHypothesis) +
           beam.words.capacity() * sizeof(std::uint32_t);
  }

  double advance(std::uint32_t& state, std::uint32_t word) {
    const KnownStep wanted{state, word, 0, 0};
    std::uint32_t place = step_places_.find(
        wanted.hash(), [&](std::uint32_t at) { return steps_[at].state == state && steps_[at].word == word; });
    if (place == HashedPlaces::none || !states_[steps_[place].next].beam) {
      SlmBeam beam = *states_[state].beam;
      const double log_prob = std::max(log_floor, search_.advance(beam, word, mixture_, work_, false));
      const KnownStep made{state, word, place_of(std::move(beam)), log_prob};
      if (place != HashedPlaces::none) {
        steps_[place] = made;  // the state it led to had been forgotten
      } else {
        place = static_cast<std::uint32_t>(steps_.size());
        steps_.push_back(made);
        step_places_.add(place, [&](std::uint32_t at) { return steps_[at].hash(); });
      }
    }
    state = steps_[place].next;
    return steps_[place].log_prob;
  }

  // The one place of equal beams.
  std::uint32_t place_of(SlmBeam beam) {
    const std::uint64_t hash = beam.hash();
    const std::uint32_t known = state_places_.find(hash, [&](std::uint32_t at) {
      return states_[at].hash == hash && states_[at].beam && states_[at].beam->same(beam);
    });
    if (known != HashedPlaces::none) return known;
    const auto place = static_cast<std::uint32_t>(states_.size());
    beam.heads.shrink_to_fit();
    beam.hypotheses.shrink_to_fit();
    states_.push_back({std::make_unique<const SlmBeam>(std::move(beam)), hash});
    state_places_.add(place, [&](std::uint32_t at) { return states_[at].hash; });
    bytes_ += bytes_of(*states_.back().beam);
    return place;
  }

  const SlmSearch& search_;
  SlmSearch::Workspace work_;
  SentenceWords words_;
  std::span<const double> unigrams_;
  TopicShares mixture_;
  std::size_t state_bytes_, bytes_ = 0;
  std::uint32_t initial_ = 0;
  std::vector<State> states_;
  std::vector<KnownStep> steps_;
  HashedPlaces state_places_, step_places_;
};

}  // namespace

SlmSearchModel::SlmSearchModel(std::shared_ptr<const SlmSearch> search, std::shared_ptr<const WordMap> words,
                               std::vector<double> unigrams, FixedTopics topics, std::size_t state_bytes)
    : search_(std::move(search)),
      words_(std::move(words)),
      unigrams_(std::move(unigrams)),
      topics_(std::move(topics)),
      state_bytes_(state_bytes) {
  if (unigrams_.size() < search_->shape().words)
    throw Error(ErrorCode::argument, "every word needs a probability of its own");
}

std::unique_ptr<ModelReader> SlmSearchModel::reader() const {
  return std::make_unique<SlmSearchReader>(*search_, words_, unigrams_, TopicShares{topics_.topics, topics_.shares},
                                           state_bytes_);
}

}  // namespace treelm
