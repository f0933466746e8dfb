#include "translation/hhmm_reader.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/hashed_places.h"
#include "base/random.h"
#include "translation/phrase_table.h"

namespace treelm {

namespace {

class HhmmSearchReader : public ModelReader {
 public:
  HhmmSearchReader(const std::shared_ptr<const HhmmGrammar>& grammar, std::shared_ptr<const WordMap> words,
                   const HhmmOptions& options, BeamKey key, std::size_t state_bytes)
      : search_(grammar, options), work_(*grammar), words_(std::move(words)), key_(key), state_bytes_(state_bytes) {}

  void begin(std::span<const std::string> own_words) override {
    words_.begin(own_words);
    states_.clear();
    state_places_.clear();
    keys_.clear();
    key_places_.clear();
    steps_.clear();
    step_places_.clear();
    bytes_ = 0;
    initial_ = place_of(search_.initial());
  }
  ModelState initial() override { return initial_; }

  void read(PhraseReading& phrase) override {
    auto state = static_cast<std::uint32_t>(phrase.state);
    phrase.log_prob = 0;
    for (const std::uint32_t word : phrase.words)
      phrase.log_prob += advance(state, words_.id(word, states_[state].beam->initial));
    phrase.state = state;
  }

  double finish(ModelState state) override { return std::max(log_floor, search_.finish(*states_[state].beam, work_)); }
  std::uint64_t key(ModelState state) override { return states_[state].key; }

  double estimate(std::span<const std::uint32_t> words) override {
    double sum = 0;
    for (const std::uint32_t word : words)
      sum += std::max(log_floor, std::log(search_.grammar().unigram(words_.id(word, false))));
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
      bytes_ -= states_[i].beam->bytes();
      states_[i].beam.reset();
    }
  }

 private:
  struct State {
    SharedBeam beam;  // nothing once it is forgotten
    std::uint64_t hash;
    std::uint64_t key;
  };
  struct KnownStep {
    std::uint32_t state, word, next;
    double log_prob;
    std::uint64_t hash() const { return mix64(std::uint64_t{state} << 32 | word); }
  };
  using Key = std::array<std::uint64_t, 2>;

  double advance(std::uint32_t& state, std::uint32_t word) {
    const KnownStep wanted{state, word, 0, 0};
    std::uint32_t place = step_places_.find(
        wanted.hash(), [&](std::uint32_t at) { return steps_[at].state == state && steps_[at].word == word; });
    if (place == HashedPlaces::none || !states_[steps_[place].next].beam) {
      const HhmmStep step = search_.advance(*states_[state].beam, word, work_);
      const KnownStep made{state, word, place_of(step.beam), std::max(log_floor, step.log_prob)};
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
  std::uint32_t place_of(const SharedBeam& beam) {
    const std::uint32_t known = state_places_.find(beam->hash, [&](std::uint32_t at) {
      return states_[at].hash == beam->hash && states_[at].beam && states_[at].beam->same(*beam);
    });
    if (known != HashedPlaces::none) return known;
    const auto place = static_cast<std::uint32_t>(states_.size());
    states_.push_back({beam, beam->hash, key_of(*beam)});
    state_places_.add(place, [&](std::uint32_t at) { return states_[at].hash; });
    bytes_ += beam->bytes();
    return place;
  }

  std::uint64_t key_of(const HhmmBeam& beam) {
    const Key key = beam_key(beam, key_);
    const auto hash_of = [&](const Key& each) { return mix64(each[0] ^ mix64(each[1])); };
    const std::uint32_t known = key_places_.find(hash_of(key), [&](std::uint32_t at) { return keys_[at] == key; });
    if (known != HashedPlaces::none) return known;
    const auto place = static_cast<std::uint32_t>(keys_.size());
    keys_.push_back(key);
    key_places_.add(place, [&](std::uint32_t at) { return hash_of(keys_[at]); });
    return place;
  }

  HhmmSearch search_;
  HhmmWorkspace work_;
  SentenceWords words_;
  BeamKey key_;
  std::size_t state_bytes_, bytes_ = 0;
  std::uint32_t initial_ = 0;
  std::vector<State> states_;
  std::vector<Key> keys_;
  std::vector<KnownStep> steps_;
  HashedPlaces state_places_, key_places_, step_places_;
};

}  // namespace

HhmmSearchModel::HhmmSearchModel(std::shared_ptr<const HhmmGrammar> grammar, std::shared_ptr<const WordMap> words,
                                 HhmmOptions options, BeamKey key, std::size_t state_bytes)
    : grammar_(std::move(grammar)), words_(std::move(words)), options_(options), key_(key), state_bytes_(state_bytes) {}

std::unique_ptr<ModelReader> HhmmSearchModel::reader() const {
  return std::make_unique<HhmmSearchReader>(grammar_, words_, options_, key_, state_bytes_);
}

}  // namespace treelm
