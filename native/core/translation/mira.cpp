#include "translation/mira.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/hashed_places.h"
#include "base/interrupt.h"
#include "base/starts.h"

namespace treelm {

namespace {

constexpr std::size_t orders = 4;
// Places among the statistics of BLEU, behind matches and n-grams of each order.
constexpr std::size_t length_place = 2 * orders, reference_place = length_place + 1, bleu_columns = reference_place + 1;
constexpr double lowest = -std::numeric_limits<double>::infinity();

std::uint64_t hash_of_row(const std::int64_t* row, std::size_t columns) {
  std::uint64_t hash = 0x9E3779B97F4A7C15u;
  for (std::size_t i = 0; i < columns; ++i) {
    hash = (hash ^ static_cast<std::uint64_t>(row[i])) * 0xBF58476D1CE4E5B9u;
    hash ^= hash >> 29;
  }
  return hash;
}

// BLEU of a sentence and a background as a share of the words of the references.
double bleu_worth(const std::vector<double>& together) {
  double sum = 0;
  for (std::size_t i = 0; i < orders; ++i) {
    const double matches = together[i], all = together[orders + i];
    sum += matches > 0 && all > 0 ? std::log(matches / all) : lowest;
  }
  const double length = together[length_place], reference = together[reference_place];
  const double penalty = length > 0 ? std::min(0.0, 1 - reference / length) : lowest;
  return std::exp(sum / orders + penalty) * reference;
}

struct Hypothesis {
  std::size_t row = 0;
  double score = 0, worth = 0;
};

// The highest of several; the first of equal ones.
struct Best : Hypothesis {
  void offer(double value, const Hypothesis& which) {
    if (any_ && !(value > value_)) return;
    any_ = true;
    value_ = value;
    static_cast<Hypothesis&>(*this) = which;
  }

 private:
  bool any_ = false;
  double value_ = 0;
};

}  // namespace

MiraLists::MiraLists(std::vector<double> features, std::vector<std::int64_t> starts,
                     std::span<const std::int64_t> statistics, TuningMetric metric)
    : features_(std::move(features)), starts_(std::move(starts)), metric_(metric) {
  const std::size_t rows = starts_.empty() ? 0 : static_cast<std::size_t>(std::max<std::int64_t>(0, starts_.back()));
  check_starts(starts_, rows, "lists do not cover the hypotheses");
  if (std::ranges::adjacent_find(starts_) != starts_.end()) throw Error(ErrorCode::argument, "a list is empty");
  if (rows == 0 || features_.size() % rows != 0 || statistics.size() % rows != 0)
    throw Error(ErrorCode::argument, "not every hypothesis has features and statistics");
  feature_count_ = features_.size() / rows;
  columns_ = statistics.size() / rows;
  if (metric_ == TuningMetric::bleu ? columns_ != bleu_columns : columns_ == 0)
    throw Error(ErrorCode::argument, "the statistics are not those of the metric");
  number_kinds(statistics);
}

void MiraLists::number_kinds(std::span<const std::int64_t> statistics) {
  kind_.reserve(static_cast<std::size_t>(starts_.back()));
  HashedPlaces places;
  std::vector<const std::int64_t*> found;
  for (std::size_t list = 0; list < size(); ++list) {
    if (list % 256 == 0) poll_interrupt();
    found.clear();
    places.clear();
    for (std::int64_t i = starts_[list]; i < starts_[list + 1]; ++i) {
      const std::int64_t* row = statistics.data() + static_cast<std::size_t>(i) * columns_;
      const auto is_it = [&](std::uint32_t place) { return std::equal(row, row + columns_, found[place]); };
      std::uint32_t kind = places.find(hash_of_row(row, columns_), is_it);
      if (kind == HashedPlaces::none) {
        kind = static_cast<std::uint32_t>(found.size());
        found.push_back(row);
        places.add(kind, [&](std::uint32_t place) { return hash_of_row(found[place], columns_); });
        for (std::size_t column = 0; column < columns_; ++column) kinds_.push_back(static_cast<double>(row[column]));
      }
      kind_.push_back(kind);
    }
    kind_start_.push_back(kind_start_.back() + found.size());
  }
}

std::vector<double> MiraLists::pass(std::span<const std::int64_t> order, std::span<const double> mobility,
                                    const MiraOptions& options, MiraState& state) const {
  if (mobility.size() != feature_count_ || state.weights.size() != feature_count_ ||
      state.background.size() != columns_)
    throw Error(ErrorCode::argument, "not every feature has a weight, or not every statistic a sum");
  std::vector<double> total(feature_count_, 0.0), worth, together(columns_), apart(feature_count_);
  std::size_t done = 0;
  for (const std::int64_t each : order) {
    if (each < 0 || static_cast<std::size_t>(each) >= size()) throw Error(ErrorCode::argument, "there is no such list");
    if (done++ % 256 == 0) poll_interrupt();
    const auto list = static_cast<std::size_t>(each);
    const double* const kinds = kinds_.data() + kind_start_[list] * columns_;
    worth.clear();
    for (std::size_t kind = 0; kind < kind_start_[list + 1] - kind_start_[list]; ++kind) {
      const double* const own = kinds + kind * columns_;
      if (metric_ == TuningMetric::word_errors) {
        worth.push_back(-own[0]);  // errors add up, whatever the background
        continue;
      }
      for (std::size_t i = 0; i < columns_; ++i) together[i] = state.background[i] + own[i];
      worth.push_back(bleu_worth(together));
    }
    Best hope, fear, chosen;
    const auto first = static_cast<std::size_t>(starts_[list]), last = static_cast<std::size_t>(starts_[list + 1]);
    for (std::size_t row = first; row < last; ++row) {
      const double* const own = features_.data() + row * feature_count_;
      double score = 0;
      for (std::size_t i = 0; i < feature_count_; ++i) score += own[i] * state.weights[i];
      const double good = worth[kind_[row]];
      hope.offer(score + good, {row, score, good});
      fear.offer(score - good, {row, score, good});
      chosen.offer(score, {row, score, good});
    }
    double size = 0;
    for (std::size_t i = 0; i < feature_count_; ++i) {
      apart[i] = features_[hope.row * feature_count_ + i] - features_[fear.row * feature_count_ + i];
      size += apart[i] * apart[i] * mobility[i];
    }
    const double lacking = (hope.worth - fear.worth) - (hope.score - fear.score);
    if (lacking > 0 && size > 0) {
      const double step = std::min(options.most_step, lacking / size);
      for (std::size_t i = 0; i < feature_count_; ++i) state.weights[i] += step * apart[i] * mobility[i];
    }
    const double* const taken = kinds + kind_[chosen.row] * columns_;
    for (std::size_t i = 0; i < columns_; ++i) state.background[i] = options.decay * (state.background[i] + taken[i]);
    for (std::size_t i = 0; i < feature_count_; ++i) total[i] += state.weights[i];
  }
  return total;
}

}  // namespace treelm
