// From level counts to a back-off table: p_j = mass_j + gamma_j p_{j+1}, for any way to set the masses.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backoff/continuation.h"
#include "backoff/table.h"
#include "backoff/table_builder.h"
#include "base/progress.h"

namespace treelm {

class SequenceCounts;
class StreamedCounts;

// 1, 2, 3-4, 5-8, ... are buckets 0, 1, 2, 3, ...
unsigned count_bucket(std::uint64_t total, std::uint64_t types);

// How the counts of one level become masses.
struct LevelPlan {
  // Discounting: (N - D(N)) / S, with D for counts of one, two, and three or more.
  std::array<double, 3> discounts{};
  // Linear interpolation instead, if there are weights: by bucket of the context's count.
  std::vector<double> weights;
  bool bucket_by_ratio = false;  // of count per type
  std::uint32_t min_count = 1;   // entries with fewer tokens are left out

  double discounted(std::uint32_t count) const;
  // What a count less its discount is divided by.
  double divisor(const ContextCounts& context) const;
  // What a context leaves to the level below, if none of its entries is left out.
  double weight(const ContextCounts& context) const;

 private:
  double linear(const ContextCounts& context) const;
};

// A context some of whose entries are left out; they come in the order of their outcomes.
struct PrunedContext {
  double kept_mass = 0;
  std::uint32_t whole = 0, left = 0;

  void add(const LevelPlan& plan, std::uint32_t count, double divisor, bool kept) {
    ++whole;
    if (!kept) return;
    ++left;
    kept_mass += plan.discounted(count) / divisor;
  }
  // The weight, given that of the whole context.
  double weight(double of_all) const {
    if (left == whole) return of_all;
    return left == 0 ? 1.0 : std::max(0.0, 1.0 - kept_mass);
  }
};

struct EstimatePlan {
  std::vector<LevelPlan> levels;
  TableShape shape;              // without its regions
  std::span<const double> base;  // per entry of the last level, where the base is not uniform
};

// Throws Error unless the plan fits the counts.
template <class Counts>
void check_plan(const Counts& counts, const EstimatePlan& plan);

std::shared_ptr<const BackoffTable> estimate(const ChainCounts& counts, const EstimatePlan& plan,
                                             const ProgressCallback& progress);
// The same for word sequences; what no other copy of the counts needs is let go of on the way.
std::shared_ptr<const BackoffTable> estimate(SequenceCounts counts, const EstimatePlan& plan,
                                             const ProgressCallback& progress);
// The same table, byte for byte, within the memory limit of the counts.
std::shared_ptr<const BackoffTable> estimate(const StreamedCounts& counts, const EstimatePlan& plan,
                                             const ProgressCallback& progress);

}  // namespace treelm
