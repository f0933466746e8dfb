#include "chart/left_corners.h"

#include <algorithm>
#include <map>

#include "base/components.h"
#include "base/error.h"

namespace treelm {

namespace {

constexpr std::size_t most_members = 4096;  // the elimination needs a square of them

}  // namespace

LeftCorners::LeftCorners(const ChartGrammar<double>& grammar) : leaving_(grammar.symbols()) {
  // Weight of a symbol as the first child of a phrase, whatever stands to its right.
  std::vector<std::map<std::uint32_t, double>> first(grammar.symbols());
  for (std::uint32_t child = 0; child < grammar.symbols(); ++child)
    for (const ParentRule& rule : grammar.unary_rules(child)) first[rule.parent][child] += *grammar.unary_block(rule);
  for (std::uint32_t pair = 0; pair < grammar.pairs(); ++pair)
    for (const ParentRule& rule : grammar.rules_of_pair(pair))
      first[rule.parent][grammar.pair_left(pair)] += *grammar.binary_block(rule);
  std::vector<std::vector<std::uint32_t>> children(grammar.symbols());
  for (std::uint32_t parent = 0; parent < grammar.symbols(); ++parent)
    for (const auto& [child, weight] : first[parent])
      if (weight > 0) children[parent].push_back(child);
  auto found = strong_components(children);
  std::reverse(found.begin(), found.end());
  std::vector<std::uint32_t> place(grammar.symbols()), owner(grammar.symbols());
  for (std::uint32_t number = 0; number < found.size(); ++number) {
    auto& members = found[number];
    const std::size_t n = members.size();
    if (n > most_members)
      throw Error(ErrorCode::argument, "too many phrases of the grammar are left corners of each other for prefixes");
    Component component;
    for (std::size_t i = 0; i < n; ++i)
      owner[members[i]] = number + 1, place[members[i]] = static_cast<std::uint32_t>(i);
    std::vector<double> inner(n * n);
    bool has_cycle = false;
    for (std::size_t i = 0; i < n; ++i) {
      for (const std::uint32_t child : children[members[i]]) {
        const double weight = first[members[i]][child];
        if (owner[child] == number + 1)
          inner[i * n + place[child]] = weight, has_cycle = true;
        else
          leaving_[members[i]].push_back({child, weight});
      }
    }
    if (has_cycle && !invert_rest(std::move(inner), n, component.sums))
      throw Error(ErrorCode::argument, "the grammar recurses to the left for ever, so prefixes have no sum");
    component.members = std::move(members);
    components_.push_back(std::move(component));
  }
}

std::uint64_t LeftCorners::add(std::vector<double>& weights) const {
  std::uint64_t work = 0;
  std::vector<double> sums;
  for (const Component& component : components_) {
    const std::size_t n = component.members.size();
    if (!component.sums.empty()) {
      sums.assign(n, 0.0);
      for (std::size_t i = 0; i < n; ++i) {
        const double weight = weights[component.members[i]];
        if (weight == 0) continue;
        const double* row = component.sums.data() + i * n;
        for (std::size_t j = 0; j < n; ++j) sums[j] += weight * row[j];
        work += n;
      }
      for (std::size_t i = 0; i < n; ++i) weights[component.members[i]] = std::max(sums[i], 0.0);
    }
    for (const std::uint32_t member : component.members) {
      const double weight = weights[member];
      if (weight == 0) continue;
      for (const Edge& edge : leaving_[member]) weights[edge.child] += weight * edge.weight;
      work += leaving_[member].size();
    }
  }
  return work;
}

}  // namespace treelm
