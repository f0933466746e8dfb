// What the predictor says about the next word, over all partial parses.
#include <algorithm>
#include <cmath>

#include "slm/search.h"

namespace treelm {

double SlmSearch::predict(std::span<const std::uint32_t> columns, std::uint32_t word, TopicShares mixture,
                          Workspace& work) const {
  if (topics_ == 0) return parts_.predictor->prob(columns.data(), word);
  work.topic_row.resize(mixture.topics.size());
  parts_.predictor->topic_probs(columns.data(), word, mixture.topics.data(), mixture.topics.size(),
                                work.topic_row.data());
  double sum = 0;
  for (std::size_t i = 0; i < mixture.topics.size(); ++i) sum += mixture.shares[i] * work.topic_row[i];
  return sum;
}

void SlmSearch::find_frontier(const SlmBeam& beam, Workspace& work) const {
  const std::size_t before = shape_.order - 1, length = shape_.predictor_columns();
  work.frontier.clear(length);
  work.frontier_shares.clear();
  work.context_of.clear();
  work.key.resize(length);
  std::copy(beam.words.begin(), beam.words.end(), work.key.begin());
  double best = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const SlmHypothesis& hypothesis : beam.hypotheses) best = std::max(best, hypothesis.score);
  for (const SlmHypothesis& hypothesis : beam.hypotheses) {
    std::uint32_t at = hypothesis.top;
    for (std::size_t j = 0; j < shape_.heads; ++j, at = beam.heads[at].below)
      work.key[before + j] = shape_.head_value(beam.heads[at].word, beam.heads[at].label);
    const auto [place, is_new] = work.frontier.insert(work.key);
    if (is_new) work.frontier_shares.push_back(0);
    const double share = std::exp(hypothesis.score - best);
    work.frontier_shares[place] += share;
    sum += share;
    work.context_of.push_back(place);
  }
  for (double& share : work.frontier_shares) share /= sum;
}

SlmFrontier SlmSearch::frontier(const SlmBeam& beam, Workspace& work) const {
  find_frontier(beam, work);
  SlmFrontier found;
  for (std::size_t place = 0; place < work.frontier.size(); ++place) {
    const auto key = work.frontier.key(place);
    found.columns.insert(found.columns.end(), key.begin(), key.end());
  }
  found.shares = work.frontier_shares;
  return found;
}

double SlmSearch::predict_word(const SlmBeam& beam, std::uint32_t word, TopicShares mixture, bool every_topic,
                               Workspace& work) const {
  find_frontier(beam, work);
  const std::size_t size = work.frontier.size();
  work.frontier_probs.resize(size);
  if (every_topic) {
    work.topic_sums.assign(topics_, 0.0);
    work.topic_row.resize(topics_);
    for (auto topic = static_cast<std::uint32_t>(work.all_topics.size()); topic < topics_; ++topic)
      work.all_topics.push_back(topic);
  }
  double sum = 0;
  for (std::size_t place = 0; place < size; ++place) {
    const double share = work.frontier_shares[place];
    double prob = 0;
    if (every_topic) {
      parts_.predictor->topic_probs(work.frontier.key(place).data(), word, work.all_topics.data(), topics_,
                                    work.topic_row.data());
      for (std::size_t topic = 0; topic < topics_; ++topic) work.topic_sums[topic] += share * work.topic_row[topic];
      for (std::size_t i = 0; i < mixture.topics.size(); ++i)
        prob += mixture.shares[i] * work.topic_row[mixture.topics[i]];
    } else {
      prob = predict(work.frontier.key(place), word, mixture, work);
    }
    work.frontier_probs[place] = prob;
    sum += share * prob;
  }
  return sum;
}

double SlmSearch::finish(const SlmBeam& beam, TopicShares mixture, Workspace& work) const {
  return std::min(0.0, std::log(predict_word(beam, shape_.end(), mixture, false, work)));
}

namespace {

TopicShares largest_topics(TopicMixture& mixture, std::size_t keep, std::vector<double>& shares) {
  const std::vector<std::uint32_t>& topics = mixture.largest(keep);
  shares.clear();
  double sum = 0;
  for (const std::uint32_t topic : topics) sum += mixture.shares()[topic];
  for (const std::uint32_t topic : topics) shares.push_back(mixture.shares()[topic] / sum);
  return {topics, shares};
}

}  // namespace

double SlmSearch::advance(SlmBeam& beam, std::uint32_t word, TopicMixture& mixture, std::size_t keep, double rate,
                          Workspace& work) const {
  const TopicShares largest = largest_topics(mixture, keep, work.kept_shares);
  const double prob = predict_word(beam, word, largest, true, work);
  mixture.update(work.topic_sums, rate);
  extend(beam, word, prob, work, false);
  return std::min(0.0, std::log(prob));
}

double SlmSearch::finish(const SlmBeam& beam, TopicMixture& mixture, std::size_t keep, double rate,
                         Workspace& work) const {
  const TopicShares largest = largest_topics(mixture, keep, work.kept_shares);
  const double prob = predict_word(beam, shape_.end(), largest, true, work);
  mixture.update(work.topic_sums, rate);
  return std::min(0.0, std::log(prob));
}

std::vector<double> SlmSearch::topic_probs(const SlmBeam& beam, std::uint32_t word, Workspace& work) const {
  predict_word(beam, word, {}, true, work);
  return work.topic_sums;
}

std::vector<double> SlmSearch::distribution(const SlmBeam& beam, TopicShares mixture, Workspace& work) const {
  find_frontier(beam, work);
  std::vector<double> all(shape_.words + 1, 0.0), row(shape_.words + 1);
  std::vector<std::uint32_t> columns;
  for (std::size_t place = 0; place < work.frontier.size(); ++place) {
    const auto key = work.frontier.key(place);
    columns.assign(key.begin(), key.end());
    const auto add = [&](double share) {
      parts_.predictor->distribution(columns.data(), row.data());
      for (std::size_t word = 0; word < all.size(); ++word) all[word] += share * row[word];
    };
    if (topics_ == 0) add(work.frontier_shares[place]);
    columns.push_back(0);
    for (std::size_t i = 0; topics_ > 0 && i < mixture.topics.size(); ++i) {
      columns.back() = mixture.topics[i];
      add(work.frontier_shares[place] * mixture.shares[i]);
    }
  }
  return all;
}

}  // namespace treelm
