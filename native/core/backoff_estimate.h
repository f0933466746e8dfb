// From level counts to a back-off table: p_j = mass_j + gamma_j p_{j+1}, for any way to set the masses.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backoff_table.h"
#include "continuation.h"
#include "table_builder.h"

namespace treelm {

// How the counts of one level become masses.
struct LevelPlan {
  // Discounting: (N - D(N)) / S, with D for counts of one, two, and three or more.
  std::array<double, 3> discounts{};
  // Linear interpolation instead, if there are weights: by bucket of the context's count.
  std::vector<double> weights;
  bool bucket_by_ratio = false;  // of count per type
  std::uint32_t min_count = 1;   // entries with fewer tokens are left out
};

struct EstimatePlan {
  std::vector<LevelPlan> levels;
  TableShape shape;              // without its regions
  std::span<const double> base;  // per entry of the last level, where the base is not uniform
};

// 1, 2, 3-4, 5-8, ... are buckets 0, 1, 2, 3, ...
unsigned count_bucket(std::uint64_t total, std::uint64_t types);

// `progress(done, all)` is called now and then with entries; it may throw to stop the work.
using ProgressCallback = std::function<void(std::uint64_t, std::uint64_t)>;

std::shared_ptr<const BackoffTable> estimate(const ChainCounts& counts, const EstimatePlan& plan,
                                             const ProgressCallback& progress);

}  // namespace treelm
