#include "trees/tree_ranker.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/starts.h"
#include "base/thread_pool.h"
#include "trees/rank_features.h"
#include "trees/worker.h"

namespace treelm {

namespace {

constexpr std::size_t parts = 8;  // of the gradient, whatever the number of threads

std::size_t piece_of(std::size_t count, std::size_t threads) {
  return std::clamp<std::size_t>(count / (4 * threads), 1, 256);
}

void check_features(std::span<const std::uint64_t> features) {
  if (std::ranges::adjacent_find(features, std::greater_equal<>()) != features.end())
    throw Error(ErrorCode::argument, "features must ascend");
  if (features.size() >= none) throw Error(ErrorCode::argument, "there are too many features");
}

// Different features of a tree, and how often each occurs.
struct CountedFeatures {
  std::vector<std::uint64_t> hashes;
  std::vector<std::uint32_t> counts;

  void count(std::vector<std::uint64_t>& found) {
    std::ranges::sort(found);
    for (std::size_t i = 0; i < found.size();) {
      std::size_t end = i;
      while (end < found.size() && found[end] == found[i]) ++end;
      hashes.push_back(found[i]);
      counts.push_back(static_cast<std::uint32_t>(end - i));
      i = end;
    }
  }
};

// The optimizer stops where the slope has become so small, or a step gains so little; a step must gain a share of what
// the slope promises, or it is halved.
constexpr double stop_at = 1e-5, least_gain = 1e-7, sufficient = 1e-4;
constexpr int most_tries = 30;
constexpr std::size_t remembered_steps = 6;

double dot(const std::vector<double>& one, const std::vector<double>& two) {
  double sum = 0;
  for (std::size_t i = 0; i < one.size(); ++i) sum += one[i] * two[i];
  return sum;
}

// The last steps of L-BFGS, from which the second derivatives are guessed (Nocedal and Wright 2006, algorithm 7.4).
class Curvature {
 public:
  bool empty() const { return steps_.empty(); }

  // `change` is that of the slope over a step.
  void add(std::vector<double> step, std::vector<double> change) {
    const double product = dot(step, change);
    if (product <= 1e-12 * dot(change, change)) return;
    if (steps_.size() == remembered_steps) steps_.erase(steps_.begin());
    steps_.push_back({std::move(step), std::move(change), product});
  }

  // Turns a slope into a step.
  void apply(std::vector<double>& slope) const {
    std::vector<double> shares(steps_.size());
    for (std::size_t i = steps_.size(); i-- > 0;) {
      shares[i] = dot(steps_[i].step, slope) / steps_[i].product;
      for (std::size_t j = 0; j < slope.size(); ++j) slope[j] -= shares[i] * steps_[i].change[j];
    }
    if (!steps_.empty()) {
      const double scale = steps_.back().product / dot(steps_.back().change, steps_.back().change);
      for (double& each : slope) each *= scale;
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const double back = shares[i] - dot(steps_[i].change, slope) / steps_[i].product;
      for (std::size_t j = 0; j < slope.size(); ++j) slope[j] += back * steps_[i].step[j];
    }
  }

 private:
  struct Step {
    std::vector<double> step, change;
    double product;
  };
  std::vector<Step> steps_;
};

// Drops the features that all trees have equally often.
void drop_shared(std::span<CountedFeatures> trees) {
  struct Seen {
    std::uint64_t hash;
    std::uint32_t count, trees;
  };
  std::vector<Seen> seen;
  HashedPlaces places;
  const auto find = [&](std::uint64_t hash) {
    return places.find(hash, [&](std::uint32_t place) { return seen[place].hash == hash; });
  };
  for (const CountedFeatures& tree : trees) {
    for (std::size_t i = 0; i < tree.hashes.size(); ++i) {
      const std::uint32_t place = find(tree.hashes[i]);
      if (place != HashedPlaces::none) {
        seen[place].trees += seen[place].count == tree.counts[i] ? 1 : 0;
        continue;
      }
      seen.push_back({tree.hashes[i], tree.counts[i], 1});
      places.add(static_cast<std::uint32_t>(seen.size() - 1), [&](std::uint32_t at) { return seen[at].hash; });
    }
  }
  for (CountedFeatures& tree : trees) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < tree.hashes.size(); ++i) {
      if (seen[find(tree.hashes[i])].trees == trees.size()) continue;
      tree.hashes[kept] = tree.hashes[i];
      tree.counts[kept++] = tree.counts[i];
    }
    tree.hashes.resize(kept);
    tree.counts.resize(kept);
  }
}

}  // namespace

TreeRanker::TreeRanker(std::vector<std::uint64_t> features, std::vector<float> weights)
    : features_(std::move(features)), weights_(std::move(weights)) {
  if (features_.size() != weights_.size()) throw Error(ErrorCode::argument, "not every feature has a weight");
  check_features(features_);
  shift_ = 64 - std::clamp(static_cast<int>(std::bit_width(features_.size())), 1, 28);
  begin_.assign((std::size_t{1} << (64 - shift_)) + 1, 0);
  for (const std::uint64_t feature : features_) ++begin_[(feature >> shift_) + 1];
  for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
}

float TreeRanker::weight(std::uint64_t feature) const {
  const std::size_t first = feature >> shift_;
  const auto begin = features_.begin() + begin_[first], end = features_.begin() + begin_[first + 1];
  // A file made by somebody else may have all of its features in one place.
  const auto found = std::lower_bound(begin, end, feature);
  return found == end || *found != feature ? 0.0f : weights_[static_cast<std::size_t>(found - features_.begin())];
}

std::vector<double> TreeRanker::score(const PackedTrees& trees, const Profile& profile, std::size_t threads) const {
  const std::vector<std::uint32_t> heads = find_heads(trees, profile);
  std::vector<double> scores(trees.tree_count());
  ThreadPool pool(threads);
  const std::size_t piece = piece_of(scores.size(), pool.size());
  pool.map((scores.size() + piece - 1) / piece, [&](std::size_t i, std::size_t) {
    RankFeatures features(trees, heads);
    std::vector<std::uint64_t> found;
    for (std::size_t tree = i * piece; tree < std::min(scores.size(), (i + 1) * piece); ++tree) {
      poll_interrupt();
      features.find(tree, found);
      double sum = 0;
      for (const std::uint64_t each : found) sum += weight(each);
      scores[tree] = sum;
    }
  });
  return scores;
}

void RankingLists::append(std::span<const std::uint64_t> hashes, std::span<const std::uint32_t> counts) {
  const auto list = static_cast<std::uint32_t>(size());
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const std::uint64_t hash = hashes[i];
    std::uint32_t feature = places_.find(hash, [&](std::uint32_t place) { return features_[place] == hash; });
    if (feature == HashedPlaces::none) {
      if (features_.size() + 1 >= none) throw Error(ErrorCode::argument, "there are too many features");
      feature = static_cast<std::uint32_t>(features_.size());
      features_.push_back(hash);
      lists_.push_back(0);
      last_list_.push_back(none);
      places_.add(feature, [&](std::uint32_t at) { return features_[at]; });
    }
    if (last_list_[feature] != list) {
      last_list_[feature] = list;
      ++lists_[feature];
    }
    entries_.push_back({feature, counts[i]});
  }
  entry_start_.push_back(entries_.size());
}

void RankingLists::add(const PackedTrees& trees, const Profile& profile, std::span<const std::uint64_t> starts,
                       std::span<const double> scores, std::span<const std::uint8_t> best, std::size_t threads) {
  if (is_kept_) throw Error(ErrorCode::argument, "features were chosen: nothing can be added");
  check_starts(starts, trees.tree_count(), "the starts of lists do not fit the trees");
  if (scores.size() != trees.tree_count() || best.size() != trees.tree_count())
    throw Error(ErrorCode::argument, "not every tree has a score and says whether it is the best");
  for (std::size_t list = 0; list + 1 < starts.size(); ++list) {
    bool any = false;
    for (std::uint64_t tree = starts[list]; tree < starts[list + 1]; ++tree) {
      if (!std::isfinite(scores[tree])) throw Error(ErrorCode::argument, "a tree has no finite score");
      any |= best[tree] != 0;
    }
    if (!any) throw Error(ErrorCode::argument, "a list has no tree that is the best");
  }
  const std::vector<std::uint32_t> heads = find_heads(trees, profile);
  std::vector<CountedFeatures> counted(trees.tree_count());
  ThreadPool pool(threads);
  pool.map(starts.size() - 1, [&](std::size_t list, std::size_t) {
    RankFeatures features(trees, heads);
    std::vector<std::uint64_t> found;
    for (std::uint64_t tree = starts[list]; tree < starts[list + 1]; ++tree) {
      poll_interrupt();
      features.find(tree, found);
      counted[tree].count(found);
    }
    drop_shared(std::span(counted).subspan(starts[list], starts[list + 1] - starts[list]));
  });
  for (std::size_t list = 0; list + 1 < starts.size(); ++list) {
    for (std::uint64_t tree = starts[list]; tree < starts[list + 1]; ++tree) {
      append(counted[tree].hashes, counted[tree].counts);
      score_.push_back(scores[tree]);
      best_.push_back(best[tree] != 0 ? 1 : 0);
    }
    list_start_.push_back(score_.size());
  }
}

std::vector<std::uint64_t> RankingLists::frequent(std::uint32_t least) const {
  std::vector<std::uint64_t> found;
  for (std::size_t feature = 0; feature < lists_.size(); ++feature)
    if (lists_[feature] >= least) found.push_back(features_[feature]);
  std::ranges::sort(found);
  return found;
}

void RankingLists::keep(std::span<const std::uint64_t> features) {
  if (is_kept_) throw Error(ErrorCode::argument, "features were chosen before");
  check_features(features);
  std::vector<std::uint32_t> number(features_.size(), none);
  for (std::size_t feature = 0; feature < features_.size(); ++feature) {
    const auto place = std::ranges::lower_bound(features, features_[feature]);
    if (place != features.end() && *place == features_[feature])
      number[feature] = static_cast<std::uint32_t>(place - features.begin());
  }
  std::size_t kept = 0;
  std::uint64_t begin = 0;
  for (std::size_t tree = 0; tree < score_.size(); ++tree) {
    const std::uint64_t end = entry_start_[tree + 1];
    for (; begin < end; ++begin)
      if (number[entries_[begin].feature] != none)
        entries_[kept++] = {number[entries_[begin].feature], entries_[begin].count};
    entry_start_[tree + 1] = kept;
  }
  entries_.resize(kept);
  entries_.shrink_to_fit();
  features_.assign(features.begin(), features.end());
  lists_ = {};
  last_list_ = {};
  places_ = {};
  is_kept_ = true;
}

void RankingLists::check_weights(std::size_t weights) const {
  if (!is_kept_ || weights != features_.size())
    throw Error(ErrorCode::argument, "there must be a weight for each feature that was chosen");
}

double RankingLists::score_of(std::size_t tree, std::span<const double> weights) const {
  double sum = score_[tree];
  for (std::uint64_t i = entry_start_[tree]; i < entry_start_[tree + 1]; ++i)
    sum += weights[entries_[i].feature] * entries_[i].count;
  return sum;
}

double RankingLists::loss(std::span<const double> weights, std::vector<double>& gradient, std::size_t threads) const {
  check_weights(weights.size());
  std::vector<std::vector<double>> sums(parts);
  std::vector<double> losses(parts, 0.0);
  ThreadPool pool(threads);
  pool.map(parts, [&](std::size_t part, std::size_t) {
    std::vector<double>& sum = sums[part];
    sum.assign(weights.size(), 0.0);
    std::vector<double> scores;
    for (std::size_t list = size() * part / parts; list < size() * (part + 1) / parts; ++list) {
      poll_interrupt();
      const std::uint64_t first = list_start_[list], last = list_start_[list + 1];
      scores.clear();
      double highest = -std::numeric_limits<double>::infinity();
      for (std::uint64_t tree = first; tree < last; ++tree) {
        scores.push_back(score_of(tree, weights));
        highest = std::max(highest, scores.back());
      }
      double all = 0, good = 0;
      for (std::uint64_t tree = first; tree < last; ++tree) {
        double& share = scores[tree - first];
        share = std::exp(share - highest);
        all += share;
        if (best_[tree]) good += share;
      }
      good = std::max(good, std::numeric_limits<double>::min());
      losses[part] += std::log(all) - std::log(good);
      for (std::uint64_t tree = first; tree < last; ++tree) {
        const double share = scores[tree - first];
        const double slope = share / all - (best_[tree] ? share / good : 0.0);
        for (std::uint64_t i = entry_start_[tree]; i < entry_start_[tree + 1]; ++i)
          sum[entries_[i].feature] += slope * entries_[i].count;
      }
    }
  });
  gradient.assign(weights.size(), 0.0);
  double total = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    total += losses[part];
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += sums[part][i];
  }
  return total;
}

std::vector<double> RankingLists::fit(std::vector<double> weights, double regularization, std::size_t iterations,
                                      std::size_t threads) const {
  const auto evaluate = [&](const std::vector<double>& at, std::vector<double>& slope) {
    const double value = loss(at, slope, threads);
    for (std::size_t i = 0; i < at.size(); ++i) slope[i] += regularization * at[i];
    return value + regularization / 2 * dot(at, at);
  };
  std::vector<double> slope, next, next_slope, direction;
  Curvature curvature;
  double value = evaluate(weights, slope);
  const double enough = stop_at * std::max(1.0, std::sqrt(dot(slope, slope)));
  for (std::size_t iteration = 0; iteration < iterations; ++iteration) {
    if (std::sqrt(dot(slope, slope)) <= enough) break;
    direction = slope;
    curvature.apply(direction);
    double falling = dot(direction, slope);
    if (!(falling > 0)) {  // what was learned of the surface misleads: go straight down
      curvature = {};
      direction = slope;
      falling = dot(slope, slope);
    }
    double step = curvature.empty() ? 1.0 / std::max(1.0, std::sqrt(falling)) : 1.0, next_value = value;
    int tries = 0;
    for (; tries < most_tries; ++tries, step /= 2) {
      next = weights;
      for (std::size_t i = 0; i < next.size(); ++i) next[i] -= step * direction[i];
      next_value = evaluate(next, next_slope);
      if (next_value <= value - sufficient * step * falling) break;
    }
    if (tries == most_tries) break;
    for (std::size_t i = 0; i < next.size(); ++i) {
      direction[i] = next[i] - weights[i];
      slope[i] = next_slope[i] - slope[i];
    }
    curvature.add(std::move(direction), std::move(slope));
    const double gain = value - next_value;
    weights.swap(next);
    slope = next_slope;
    value = next_value;
    if (gain <= least_gain * std::abs(value)) break;
  }
  return weights;
}

std::vector<std::uint32_t> RankingLists::choose(std::span<const double> weights) const {
  check_weights(weights.size());
  std::vector<std::uint32_t> chosen;
  for (std::size_t list = 0; list < size(); ++list) {
    std::uint64_t best = list_start_[list];
    double highest = -std::numeric_limits<double>::infinity();
    for (std::uint64_t tree = best; tree < list_start_[list + 1]; ++tree) {
      const double score = score_of(tree, weights);
      if (score <= highest) continue;
      highest = score;
      best = tree;
    }
    chosen.push_back(static_cast<std::uint32_t>(best - list_start_[list]));
  }
  return chosen;
}

}  // namespace treelm
