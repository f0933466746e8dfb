#include "latent/rules.h"

#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/random.h"

namespace treelm {

namespace {

// Far beyond any grammar: 32 GiB of weights.
constexpr std::size_t max_weights = std::size_t{1} << 32;

std::size_t row_start(const RuleBlocks& blocks, std::size_t rule) {
  return blocks.first_substate(blocks.rule(rule).parent);
}

void check_size(const RuleBlocks& blocks, std::size_t size) {
  if (size != blocks.total())
    throw Error(ErrorCode::argument,
                "there are " + std::to_string(size) + " weights, and the rules need " + std::to_string(blocks.total()));
}

// Adds what the rows of a rule's block hold to the totals of the parent's subcategories.
void add_row_sums(const RuleBlocks& blocks, std::size_t rule, std::span<const double> counts,
                  std::span<double> totals) {
  const std::size_t columns = blocks.columns(rule);
  const double* at = counts.data() + blocks.start(rule);
  for (std::size_t x = 0; x < blocks.rows(rule); ++x, at += columns) {
    // Four sums, because one alone would wait for every addition.
    double sums[4] = {0, 0, 0, 0};
    std::size_t j = 0;
    for (; j + 4 <= columns; j += 4)
      for (std::size_t i = 0; i < 4; ++i) sums[i] += at[j + i];
    for (; j < columns; ++j) sums[0] += at[j];
    totals[row_start(blocks, rule) + x] += (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}

// The rules of every symbol, so that threads can share the work without sharing sums.
std::vector<std::vector<std::size_t>> rules_by_parent(const RuleBlocks& blocks) {
  std::vector<std::vector<std::size_t>> rules(blocks.symbols());
  for (std::size_t r = 0; r < blocks.size(); ++r) rules[static_cast<std::size_t>(blocks.rule(r).parent)].push_back(r);
  return rules;
}

}  // namespace

RuleBlocks::RuleBlocks(std::span<const LatentRule> rules, std::span<const std::int32_t> substates) : rules_(rules) {
  first_.reserve(substates.size() + 1);
  first_.push_back(0);
  for (const std::int32_t count : substates) {
    if (count < 1 || count > max_substates)
      throw Error(ErrorCode::argument, "a symbol has " + std::to_string(count) + " subcategories; from 1 to " +
                                           std::to_string(max_substates) + " are possible");
    first_.push_back(first_.back() + static_cast<std::size_t>(count));
  }
  const auto symbols = static_cast<std::int32_t>(substates.size());
  starts_.reserve(rules.size() + 1);
  starts_.push_back(0);
  for (std::size_t r = 0; r < rules.size(); ++r) {
    const auto& [parent, left, right] = rules[r];
    if (parent < 0 || parent >= symbols || left < no_symbol || left >= symbols || right < no_symbol ||
        right >= symbols || (left == no_symbol && right != no_symbol))
      throw Error(ErrorCode::argument, "rule " + std::to_string(r) + " has a symbol that is out of range");
    starts_.push_back(starts_.back() + rows(r) * columns(r));
    if (starts_.back() > max_weights) throw Error(ErrorCode::too_large, "the grammar has too many subcategories");
  }
}

void check_weights(const RuleBlocks& blocks, std::span<const double> weights, ThreadPool& pool) {
  check_size(blocks, weights.size());
  for_each_part(weights.size(), pool, [&](std::size_t first, std::size_t last) {
    bool good = true;
    for (std::size_t i = first; i < last; ++i)
      good &= weights[i] >= 0 && weights[i] <= std::numeric_limits<double>::max();
    if (!good) throw Error(ErrorCode::argument, "a weight is negative, NaN or infinite");
  });
}

std::vector<double> substate_totals(const RuleBlocks& blocks, std::span<const double> counts) {
  check_size(blocks, counts.size());
  std::vector<double> totals(blocks.substates(), 0.0);
  for (std::size_t r = 0; r < blocks.size(); ++r) add_row_sums(blocks, r, counts, totals);
  return totals;
}

std::vector<double> split_rules(const RuleBlocks& before, const RuleBlocks& after, std::span<const double> weights,
                                double noise, std::uint64_t seed, std::uint64_t stream) {
  ThreadPool alone(1);
  check_weights(before, weights, alone);
  if (!(noise >= 0 && noise < 1)) throw Error(ErrorCode::argument, "the noise must lie in [0, 1)");
  if (before.symbols() != after.symbols() || before.size() != after.size())
    throw Error(ErrorCode::argument, "a split must change neither symbols nor rules");
  for (std::size_t s = 0; s < before.symbols(); ++s) {
    const auto symbol = static_cast<std::int32_t>(s);
    if (after.count(symbol) != before.count(symbol) && after.count(symbol) != 2 * before.count(symbol))
      throw Error(ErrorCode::argument, "a split must double the subcategories of a symbol or leave them alone");
  }
  std::vector<double> result(after.total());
  std::uint64_t place = 0;
  for (std::size_t r = 0; r < after.size(); ++r) {
    const std::size_t parents = after.rows(r) / before.rows(r), lefts = after.left(r) / before.left(r),
                      rights = after.right(r) / before.right(r);
    const double share = 1.0 / static_cast<double>(lefts * rights);
    const double* from = weights.data() + before.start(r);
    for (std::size_t x = 0; x < after.rows(r); ++x)
      for (std::size_t y = 0; y < after.left(r); ++y)
        for (std::size_t z = 0; z < after.right(r); ++z, ++place) {
          const double old = from[((x / parents) * before.left(r) + y / lefts) * before.right(r) + z / rights];
          const double nudge = 2 * random_uniform(seed, stream, place) - 1;
          result[place] = old == 0 ? 0 : old * share * (1 + noise * nudge);
        }
  }
  normalize_rules(after, result, result, 0, alone);
  return result;
}

std::vector<double> merge_rules(const RuleBlocks& before, const RuleBlocks& after, std::span<const double> weights,
                                std::span<const std::int32_t> target, std::span<const double> share) {
  ThreadPool alone(1);
  check_weights(before, weights, alone);
  if (before.symbols() != after.symbols() || before.size() != after.size() || target.size() != before.substates() ||
      share.size() != before.substates())
    throw Error(ErrorCode::argument, "a merge must change neither symbols nor rules");
  for (std::size_t s = 0; s < before.symbols(); ++s) {
    const auto symbol = static_cast<std::int32_t>(s);
    const auto first = static_cast<std::int64_t>(after.first_substate(symbol));
    const auto last = first + static_cast<std::int64_t>(after.count(symbol));
    for (std::size_t x = 0; x < before.count(symbol); ++x) {
      const std::int32_t to = target[before.first_substate(symbol) + x];
      if (to < first || to >= last) throw Error(ErrorCode::argument, "a merge must stay within its symbol");
    }
  }
  // Place of a subcategory among those of its symbol afterwards.
  const auto place = [&](std::int32_t symbol, std::size_t x) {
    if (symbol == no_symbol) return std::size_t{0};
    return static_cast<std::size_t>(target[before.first_substate(symbol) + x]) - after.first_substate(symbol);
  };
  std::vector<double> result(after.total(), 0.0);
  for (std::size_t r = 0; r < before.size(); ++r) {
    const auto& [parent, left, right] = before.rule(r);
    const double* from = weights.data() + before.start(r);
    double* to = result.data() + after.start(r);
    for (std::size_t x = 0; x < before.rows(r); ++x) {
      const double part = share[before.first_substate(parent) + x];
      for (std::size_t y = 0; y < before.left(r); ++y) {
        double* row = to + (place(parent, x) * after.left(r) + place(left, y)) * after.right(r);
        for (std::size_t z = 0; z < before.right(r); ++z) row[place(right, z)] += part * *from++;
      }
    }
  }
  return result;
}

void normalize_rules(const RuleBlocks& blocks, std::span<double> counts, std::span<const double> previous,
                     double filter, ThreadPool& pool) {
  check_size(blocks, counts.size());
  check_size(blocks, previous.size());
  const std::vector<std::vector<std::size_t>> rules = rules_by_parent(blocks);
  std::vector<double> totals(blocks.substates(), 0.0);
  pool.map(rules.size(), [&](std::size_t symbol, std::size_t) {
    for (const std::size_t r : rules[symbol]) add_row_sums(blocks, r, counts, totals);
    for (std::size_t x = 0; x < blocks.count(static_cast<std::int32_t>(symbol)); ++x)
      if (!std::isfinite(totals[blocks.first_substate(static_cast<std::int32_t>(symbol)) + x]))
        throw Error(ErrorCode::not_a_number, "the counts of a subcategory do not add up to a finite number");
    for (const std::size_t r : rules[symbol]) {
      const std::size_t columns = blocks.columns(r);
      std::size_t at = blocks.start(r);
      for (std::size_t x = 0; x < blocks.rows(r); ++x, at += columns) {
        const double total = totals[row_start(blocks, r) + x];
        if (total > 0) {
          for (std::size_t j = at; j < at + columns; ++j) {
            const double share = counts[j] / total;
            counts[j] = share < filter ? 0.0 : share;
          }
        } else {
          for (std::size_t j = at; j < at + columns; ++j) counts[j] = previous[j];
        }
      }
    }
  });
}

void smooth_rules(const RuleBlocks& blocks, std::span<double> weights, std::span<const std::int32_t> groups,
                  bool others, double phrasal_share, double lexical_share, ThreadPool& pool) {
  check_size(blocks, weights.size());
  if (groups.size() != blocks.substates()) throw Error(ErrorCode::argument, "every subcategory needs one group");
  for (const double share : {phrasal_share, lexical_share})
    if (!(share >= 0 && share <= 1)) throw Error(ErrorCode::argument, "a share of smoothing must lie in [0, 1]");
  const std::vector<std::vector<std::size_t>> rules = rules_by_parent(blocks);
  pool.map(rules.size(), [&](std::size_t symbol, std::size_t) {
    std::vector<double> sum;
    const std::int32_t* group = groups.data() + blocks.first_substate(static_cast<std::int32_t>(symbol));
    for (const std::size_t r : rules[symbol]) {
      const std::size_t rows = blocks.rows(r), columns = blocks.columns(r);
      const double share = blocks.rule(r).left == no_symbol ? lexical_share : phrasal_share;
      for (std::size_t first = 0, last; first < rows; first = last) {
        for (last = first + 1; last < rows && group[last] == group[first];) ++last;
        if (last - first == 1) continue;
        const auto size = static_cast<double>(last - first);
        const double all = others ? share / (size - 1) : share / size, own = 1 - share - (others ? all : 0);
        double* block = weights.data() + blocks.start(r);
        sum.assign(columns, 0.0);
        for (std::size_t x = first; x < last; ++x)
          for (std::size_t j = 0; j < columns; ++j) sum[j] += block[x * columns + j];
        for (std::size_t x = first; x < last; ++x)
          for (std::size_t j = 0; j < columns; ++j)
            block[x * columns + j] = own * block[x * columns + j] + all * sum[j];
      }
    }
  });
}

}  // namespace treelm
