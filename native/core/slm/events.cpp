#include "slm/events.h"

#include <cmath>

#include "slm/replay.h"

namespace treelm {

namespace {

// Rows of one sentence, each once.
class SentenceRows {
 public:
  explicit SentenceRows(std::size_t columns) { table_.clear(columns + 1); }

  void add(std::span<const std::uint32_t> columns, std::uint32_t outcome, std::int64_t count) {
    key_.assign(columns.begin(), columns.end());
    key_.push_back(outcome);
    const auto [place, is_new] = table_.insert(key_);
    if (is_new) counts_.push_back(0);
    counts_[place] += count;
  }

  void move_to(SlmEventRows& rows) const {
    for (std::size_t place = 0; place < table_.size(); ++place) {
      const auto key = table_.key(place);
      rows.columns.insert(rows.columns.end(), key.begin(), key.end() - 1);
      rows.outcomes.push_back(key.back());
      rows.counts.push_back(counts_[place]);
    }
  }

 private:
  ContextTable table_;
  std::vector<std::uint32_t> key_;
  std::vector<std::int64_t> counts_;
};

struct Counter {
  const SlmShape& shape;
  const SlmSearch* search;  // none: topics as `word_shares` has them
  std::span<const double> word_shares;
  TopicShares mixture;
  SlmEvents& events;
  SentenceRows words, tags, moves;
  double weight = 0;
  std::int64_t whole = 0;
  std::size_t place = 0;  // of the word in its sentence
  std::vector<double> shares;
  std::vector<std::uint32_t> columns;

  Counter(const SlmShape& of, const SlmSearch* with, std::span<const double> given, TopicShares topics, SlmEvents& to)
      : shape(of),
        search(with),
        word_shares(given),
        mixture(topics),
        events(to),
        words(of.predictor_columns() + (topics.topics.empty() ? 0 : 1)),
        tags(of.tagger_columns()),
        moves(of.constructor_columns()) {}

  void word(std::span<const std::uint32_t> context, std::uint32_t outcome) {
    const std::size_t topics = mixture.topics.size();
    if (topics == 0) {
      words.add(context, outcome, whole);
      return;
    }
    shares.assign(mixture.shares.begin(), mixture.shares.end());
    const std::size_t first = topics * place++;
    if (search == nullptr) {
      if (first + topics <= word_shares.size())
        shares.assign(word_shares.begin() + static_cast<std::ptrdiff_t>(first),
                      word_shares.begin() + static_cast<std::ptrdiff_t>(first + topics));
    } else {
      search->parts().predictor->topic_probs(context.data(), outcome, mixture.topics.data(), topics, shares.data());
      for (std::size_t i = 0; i < topics; ++i) shares[i] *= mixture.shares[i];
    }
    double sum = 0;
    for (const double share : shares) sum += share;
    columns.assign(context.begin(), context.end());
    columns.push_back(0);
    for (std::size_t i = 0; i < topics; ++i) {
      const std::int64_t count = fixed_point(sum > 0 ? weight * shares[i] / sum : weight * mixture.shares[i]);
      columns.back() = mixture.topics[i];
      words.add(columns, outcome, count);
      events.topics[i] += count;
    }
  }
  void tag(std::span<const std::uint32_t> context, std::uint32_t outcome) { tags.add(context, outcome, whole); }
  void move(std::span<const std::uint32_t> context, std::uint32_t outcome, MoveChoice) {
    moves.add(context, outcome, whole);
  }
};

void count(const SlmShape& shape, const SlmSearch* search, std::span<const double> word_shares,
           std::span<const std::uint32_t> words, std::span<const WeightedParse> parses, TopicShares mixture,
           SlmEvents& events) {
  events.topics.resize(mixture.topics.size(), 0);
  Counter counter(shape, search, word_shares, mixture, events);
  for (const WeightedParse& parse : parses) {
    counter.place = 0;
    counter.weight = parse.weight;
    counter.whole = fixed_point(parse.weight);
    replay(shape, words, parse.actions, counter);
  }
  counter.words.move_to(events.words);
  counter.tags.move_to(events.tags);
  counter.moves.move_to(events.moves);
}

}  // namespace

std::int64_t fixed_point(double value) {
  if (!(value >= 0 && value < 0x1.0p33)) throw Error(ErrorCode::argument, "a count is negative, too large or NaN");
  return std::llrint(value * 0x1.0p30);
}

void count_parses(const SlmSearch& search, std::span<const std::uint32_t> words, std::span<const WeightedParse> parses,
                  TopicShares mixture, SlmEvents& events) {
  count(search.shape(), &search, {}, words, parses, mixture, events);
}

void count_parses(const SlmShape& shape, std::span<const std::uint32_t> words, std::span<const WeightedParse> parses,
                  TopicShares mixture, std::span<const double> word_shares, SlmEvents& events) {
  count(shape, nullptr, word_shares, words, parses, mixture, events);
}

}  // namespace treelm
