// Sums over all chains of unary rules. Symbols that lie on a common cycle are solved together by
// elimination; the rest follows from the symbols below.
#include <algorithm>
#include <map>

#include "base/components.h"
#include "base/error.h"
#include "chart/grammar.h"

namespace treelm {

namespace {

using Block = std::vector<double>;
using Row = std::map<std::uint32_t, Block>;  // child -> k_A x k_C

struct Work {
  const GrammarArrays& arrays;
  std::vector<Row> rules;    // by parent
  std::vector<Row> closure;  // by parent

  std::size_t count(std::uint32_t symbol) const { return static_cast<std::size_t>(arrays.substates[symbol]); }
  void solve(const std::vector<std::uint32_t>& component);
};

// out (a x c) += left (a x b) * right (b x c)
void add_product(Block& out, const Block& left, const Block& right, std::size_t a, std::size_t b, std::size_t c) {
  out.resize(a * c);
  for (std::size_t i = 0; i < a; ++i) {
    for (std::size_t j = 0; j < b; ++j) {
      const double weight = left[i * b + j];
      if (weight == 0) continue;
      for (std::size_t k = 0; k < c; ++k) out[i * c + k] += weight * right[j * c + k];
    }
  }
}

void Work::solve(const std::vector<std::uint32_t>& component) {
  // What leaves the component by one rule, and goes on below.
  std::vector<Row> leaving(component.size());
  std::vector<std::size_t> start(component.size() + 1);
  for (std::size_t i = 0; i < component.size(); ++i) start[i + 1] = start[i] + count(component[i]);
  const std::size_t n = start.back();
  Block inner(n * n);
  bool has_cycle = false;
  for (std::size_t i = 0; i < component.size(); ++i) {
    const std::uint32_t parent = component[i];
    for (const auto& [child, block] : rules[parent]) {
      const auto at = std::find(component.begin(), component.end(), child);
      if (at != component.end()) {
        has_cycle = true;
        const std::size_t column = start[static_cast<std::size_t>(at - component.begin())];
        for (std::size_t x = 0; x < count(parent); ++x)
          for (std::size_t y = 0; y < count(child); ++y)
            inner[(start[i] + x) * n + column + y] = block[x * count(child) + y];
        continue;
      }
      Block& direct = leaving[i][child];
      direct.resize(block.size());
      for (std::size_t k = 0; k < block.size(); ++k) direct[k] += block[k];
      for (const auto& [below, chain] : closure[child])
        add_product(leaving[i][below], block, chain, count(parent), count(child), count(below));
    }
  }
  if (!has_cycle) {
    closure[component[0]] = std::move(leaving[0]);
    return;
  }
  Block inverse;
  if (!invert_rest(std::move(inner), n, inverse))
    throw Error(ErrorCode::argument,
                "the unary rules have cycles whose chains do not grow less probable, so they have no sum");
  for (std::size_t i = 0; i < component.size(); ++i) {
    Row& row = closure[component[i]];
    const std::size_t rows = count(component[i]);
    for (std::size_t j = 0; j < component.size(); ++j) {
      const std::size_t columns = count(component[j]);
      Block part(rows * columns);
      for (std::size_t x = 0; x < rows; ++x)
        for (std::size_t y = 0; y < columns; ++y) part[x * columns + y] = inverse[(start[i] + x) * n + start[j] + y];
      for (const auto& [below, block] : leaving[j]) add_product(row[below], part, block, rows, columns, count(below));
      if (i == j)
        for (std::size_t x = 0; x < rows; ++x) part[x * columns + x] -= 1;  // the empty chain is none
      row[component[j]] = std::move(part);
    }
  }
}

}  // namespace

std::vector<Chain> unary_closure(const GrammarArrays& arrays) {
  const std::size_t symbols = arrays.substates.size();
  Work work{arrays, std::vector<Row>(symbols), std::vector<Row>(symbols)};
  std::vector<std::vector<std::uint32_t>> children(symbols);
  std::size_t at = 0;
  for (std::size_t rule = 0; rule < arrays.unary_rules.size() / 2; ++rule) {
    const auto parent = static_cast<std::uint32_t>(arrays.unary_rules[2 * rule]);
    const auto child = static_cast<std::uint32_t>(arrays.unary_rules[2 * rule + 1]);
    const auto block = arrays.unary_weights.subspan(at, work.count(parent) * work.count(child));
    work.rules[parent][child].assign(block.begin(), block.end());
    children[parent].push_back(child);
    at += block.size();
  }
  for (const auto& component : strong_components(children)) work.solve(component);
  std::vector<Chain> chains;
  for (std::uint32_t parent = 0; parent < symbols; ++parent) {
    for (auto& [child, weights] : work.closure[parent]) {
      for (double& weight : weights) weight = std::max(weight, 0.0);  // rounding of the elimination
      if (std::any_of(weights.begin(), weights.end(), [](double weight) { return weight > 0; }))
        chains.push_back({parent, child, std::move(weights)});
    }
  }
  std::stable_sort(chains.begin(), chains.end(), [](const Chain& a, const Chain& b) { return a.child < b.child; });
  return chains;
}

}  // namespace treelm
