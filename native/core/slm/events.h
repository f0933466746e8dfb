// What is counted in parses: rows of predictor, tagger and constructor with fixed-point counts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "slm/search.h"

namespace treelm {

struct SlmEventRows {
  std::vector<std::uint32_t> columns;
  std::vector<std::uint32_t> outcomes;
  std::vector<std::int64_t> counts;  // multiples of 2^-30
};

struct SlmEvents {
  SlmEventRows words, tags, moves;
  std::vector<std::int64_t> topics;  // by topic of the mixture: how many words it is held responsible for
};

// A parse of the sentence and its share of the probability of all that are counted.
struct WeightedParse {
  std::span<const std::uint16_t> actions;
  double weight = 0;
};

// A number as a multiple of 2^-30, halves to even; throws unless it is one of 0 to 2^33.
std::int64_t fixed_point(double value);

// Adds the events of a sentence; equal events of its parses become one row. With topics every word is
// shared out over those of the mixture, which needs the current predictor.
void count_parses(const SlmSearch& search, std::span<const std::uint32_t> words, std::span<const WeightedParse> parses,
                  TopicShares mixture, SlmEvents& events);

// The same without a model, for given parses. `word_shares` has a row for each word with
// its shares of the topics of the mixture; the end of the sentence has those of the mixture.
void count_parses(const SlmShape& shape, std::span<const std::uint32_t> words, std::span<const WeightedParse> parses,
                  TopicShares mixture, std::span<const double> word_shares, SlmEvents& events);

}  // namespace treelm
