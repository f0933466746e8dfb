#include "translation/mixture_reader.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hashed_places.h"
#include "base/random.h"
#include "translation/phrase_table.h"

namespace treelm {

namespace {

// Rows of so many numbers, each kept once.
class NumberRows {
 public:
  explicit NumberRows(std::size_t width) : width_(width) {}
  void clear() {
    numbers_.clear();
    places_.clear();
  }
  std::uint32_t place_of(std::span<const std::uint64_t> row) {
    const std::uint32_t known = places_.find(
        hash(row), [&](std::uint32_t at) { return std::equal(row.begin(), row.end(), (*this)[at].begin()); });
    if (known != HashedPlaces::none) return known;
    const auto place = static_cast<std::uint32_t>(numbers_.size() / width_);
    numbers_.insert(numbers_.end(), row.begin(), row.end());
    places_.add(place, [&](std::uint32_t at) { return hash((*this)[at]); });
    return place;
  }
  std::span<const std::uint64_t> operator[](std::size_t place) const {
    return {numbers_.data() + place * width_, width_};
  }
  std::size_t bytes() const { return numbers_.size() * sizeof(std::uint64_t) + places_.bytes(); }

 private:
  static std::uint64_t hash(std::span<const std::uint64_t> row) {
    std::uint64_t sum = 0;
    for (const std::uint64_t each : row) sum = mix64(sum ^ each);
    return sum;
  }

  std::size_t width_;
  std::vector<std::uint64_t> numbers_;
  HashedPlaces places_;
};

// A state is a row of those of the parts.
class MixtureSearchReader : public ModelReader {
 public:
  MixtureSearchReader(std::vector<std::unique_ptr<ModelReader>> parts, const std::vector<double>& log_weights)
      : parts_(std::move(parts)),
        log_weights_(log_weights),
        states_(parts_.size()),
        keys_(parts_.size()),
        row_(parts_.size()),
        said_(parts_.size()),
        before_(parts_.size()) {}

  void begin(std::span<const std::string> own_words) override {
    for (const auto& part : parts_) part->begin(own_words);
    states_.clear();
    keys_.clear();
  }
  ModelState initial() override {
    for (std::size_t i = 0; i < parts_.size(); ++i) row_[i] = parts_[i]->initial();
    return states_.place_of(row_);
  }
  Cost cost() const override {
    Cost most = Cost::look_up;
    for (const auto& part : parts_) most = std::max(most, part->cost());
    return most;
  }

  void read(PhraseReading& phrase) override {
    const auto before = states_[phrase.state];
    std::copy(before.begin(), before.end(), row_.begin());
    phrase.log_prob = 0;
    for (const std::uint32_t& word : phrase.words) {
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        PhraseReading own{row_[i], {&word, 1}};
        parts_[i]->read(own);
        row_[i] = own.state;
        said_[i] = own.log_prob;
      }
      phrase.log_prob += mixed();
    }
    phrase.state = states_.place_of(row_);
  }

  double finish(ModelState state) override {
    for (std::size_t i = 0; i < parts_.size(); ++i) said_[i] = parts_[i]->finish(states_[state][i]);
    return mixed();
  }
  std::uint64_t key(ModelState state) override {
    for (std::size_t i = 0; i < parts_.size(); ++i) row_[i] = parts_[i]->key(states_[state][i]);
    return keys_.place_of(row_);
  }

  double estimate(std::span<const std::uint32_t> words) override {
    double sum = 0;
    std::fill(before_.begin(), before_.end(), 0.0);
    for (std::size_t end = 1; end <= words.size(); ++end) {
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        const double so_far = parts_[i]->estimate(words.first(end));
        said_[i] = so_far - before_[i];
        before_[i] = so_far;
      }
      sum += mixed();
    }
    return sum;
  }

  std::size_t bytes() const override {
    std::size_t sum = states_.bytes() + keys_.bytes();
    for (const auto& part : parts_) sum += part->bytes();
    return sum;
  }
  bool needs_room() const override {
    return std::any_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->needs_room(); });
  }
  void keep_only(std::span<const ModelState> live) override {
    std::vector<ModelState> own;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i]->needs_room()) continue;
      own.clear();
      for (const ModelState state : live) own.push_back(states_[state][i]);
      parts_[i]->keep_only(own);
    }
  }

 private:
  // The log of the weighted sum of what the parts said.
  double mixed() const {
    double largest = log_weights_[0] + said_[0], sum = 0;
    for (std::size_t i = 1; i < said_.size(); ++i) largest = std::max(largest, log_weights_[i] + said_[i]);
    for (std::size_t i = 0; i < said_.size(); ++i) sum += std::exp(log_weights_[i] + said_[i] - largest);
    return std::max(log_floor, largest + std::log(sum));
  }

  std::vector<std::unique_ptr<ModelReader>> parts_;
  const std::vector<double>& log_weights_;
  NumberRows states_, keys_;
  std::vector<std::uint64_t> row_;
  std::vector<double> said_, before_;
};

}  // namespace

MixtureSearchModel::MixtureSearchModel(std::vector<std::shared_ptr<const SearchModel>> parts,
                                       std::vector<double> weights)
    : parts_(std::move(parts)) {
  if (parts_.empty() || parts_.size() != weights.size())
    throw Error(ErrorCode::argument, "a mixture needs parts, and one weight for each");
  for (const double weight : weights) {
    if (!(weight > 0 && weight <= 1)) throw Error(ErrorCode::argument, "a weight is not above 0 and at most 1");
    log_weights_.push_back(std::log(weight));
  }
}

std::unique_ptr<ModelReader> MixtureSearchModel::reader() const {
  std::vector<std::unique_ptr<ModelReader>> readers;
  for (const auto& part : parts_) readers.push_back(part->reader());
  return std::make_unique<MixtureSearchReader>(std::move(readers), log_weights_);
}

}  // namespace treelm
