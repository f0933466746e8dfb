// Rules of a grammar with latent annotations: every symbol A has k_A subcategories, and a rule A -> B C is
// a dense block of k_A x k_B x k_C numbers (unary k_A x k_B, lexical k_A). The blocks of all rules lie one
// behind the other in one flat array, which functions here take apart.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace treelm {

inline constexpr std::int32_t no_symbol = -1;

// Symbols of a rule; `left` and `right` are no_symbol for lexical rules, `right` for unary ones.
struct LatentRule {
  std::int32_t parent = 0;
  std::int32_t left = no_symbol;
  std::int32_t right = no_symbol;
};

inline constexpr std::int32_t max_substates = 1024;

// Where the block of each rule lies, given the number of subcategories of every symbol.
class RuleBlocks {
 public:
  // Throws Error(argument) for symbols out of range, and Error(too_large) beyond what memory can hold.
  RuleBlocks(std::span<const LatentRule> rules, std::span<const std::int32_t> substates);

  std::size_t size() const { return rules_.size(); }
  std::size_t total() const { return starts_.back(); }
  std::size_t start(std::size_t rule) const { return starts_[rule]; }
  const LatentRule& rule(std::size_t rule) const { return rules_[rule]; }
  std::size_t rows(std::size_t rule) const { return count(rules_[rule].parent); }
  std::size_t left(std::size_t rule) const { return count(rules_[rule].left); }
  std::size_t right(std::size_t rule) const { return count(rules_[rule].right); }
  // Combinations of subcategories of the children.
  std::size_t columns(std::size_t rule) const { return left(rule) * right(rule); }
  // First subcategory of a symbol among those of all symbols, and their number.
  std::size_t first_substate(std::int32_t symbol) const { return first_[static_cast<std::size_t>(symbol)]; }
  std::size_t substates() const { return first_.back(); }
  std::size_t symbols() const { return first_.size() - 1; }
  std::size_t count(std::int32_t symbol) const {
    if (symbol == no_symbol) return 1;
    const auto index = static_cast<std::size_t>(symbol);
    return first_[index + 1] - first_[index];
  }

 private:
  std::span<const LatentRule> rules_;
  std::vector<std::size_t> first_, starts_;
};

// Throws Error(argument) unless there are as many weights as the blocks hold, finite and not negative.
void check_weights(const RuleBlocks& blocks, std::span<const double> weights, ThreadPool& pool);

// Calls body(first, last) for parts of [0, size) that do not depend on the number of threads.
template <typename Body>
void for_each_part(std::size_t size, ThreadPool& pool, const Body& body) {
  constexpr std::size_t part = std::size_t{1} << 13;
  pool.map((size + part - 1) / part,
           [&](std::size_t i, std::size_t) { body(i * part, std::min(size, (i + 1) * part)); });
}

// The split of every symbol but `root` in two (specification (3.1)): copies, divided by the combinations of
// children, times 1 + noise * U(-1, 1), then normalised. The random numbers depend on (seed, stream) and on
// the place in the array only.
std::vector<double> split_rules(const RuleBlocks& before, const RuleBlocks& after, std::span<const double> weights,
                                double noise, std::uint64_t seed, std::uint64_t stream);

// The weights after some subcategories became one: `target` gives the number of each afterwards, and `share` what
// its rules count there. Throws Error(argument) unless `target` leads from `before` to `after`.
std::vector<double> merge_rules(const RuleBlocks& before, const RuleBlocks& after, std::span<const double> weights,
                                std::span<const std::int32_t> target, std::span<const double> share);

// Relative frequencies of counts for every subcategory of a parent, in place; what falls below `filter` becomes 0.
// A subcategory without counts keeps what it has in `previous`.
void normalize_rules(const RuleBlocks& blocks, std::span<double> counts, std::span<const double> previous,
                     double filter, ThreadPool& pool);

// Every weight moved towards the mean over the subcategories of its parent that are of the same group,
// neighbours all, (6.1), in place; with `others` it is the mean over the other ones.
void smooth_rules(const RuleBlocks& blocks, std::span<double> weights, std::span<const std::int32_t> groups,
                  bool others, double phrasal_share, double lexical_share, ThreadPool& pool);

// The sum of `counts` over the rules of every subcategory.
std::vector<double> substate_totals(const RuleBlocks& blocks, std::span<const double> counts);

}  // namespace treelm
