// Of the stores that may come next those that are kept, and the beam they make.
#include <algorithm>
#include <tuple>

#include "hhmm/expansion.h"

namespace treelm {

void StoreExpansion::prune() {
  auto& found = work_.candidates_;
  if (options_.ratio > 0) std::erase_if(found, [this](const Candidate& each) { return each.value < threshold_; });
  if (found.size() <= options_.beam) return;
  const auto last = found.begin() + static_cast<std::ptrdiff_t>(options_.beam) - 1;
  std::nth_element(found.begin(), last, found.end(), [this](const Candidate& a, const Candidate& b) {
    return a.value != b.value ? a.value > b.value : symbols_of(a) < symbols_of(b);
  });
  threshold_ = std::max(threshold_, last->value);
  found.resize(options_.beam);
}

std::vector<std::uint32_t> StoreExpansion::symbols_of(const Candidate& candidate) const {
  std::vector<std::uint32_t> symbols = store_symbols(beam_, {candidate.node, candidate.top});
  if (candidate.active != no_symbol) {
    symbols.back() = candidate.active;
    symbols.push_back(candidate.awaited);
    symbols.push_back(candidate.top);
  }
  return symbols;
}

std::pair<std::shared_ptr<HhmmBeam>, double> StoreExpansion::new_beam() {
  prune();
  auto made = std::make_shared<HhmmBeam>();
  made->single = options_.single;
  const auto& found = work_.candidates_;
  const auto old_nodes = static_cast<std::uint32_t>(beam_.nodes.size());
  std::vector<std::uint8_t> used(old_nodes, 0);
  used[0] = 1;
  for (const Candidate& each : found)
    for (std::uint32_t node = each.node; !used[node]; node = beam_.nodes[node].parent) used[node] = 1;

  // Nodes by depth: those of the old beam that are still needed, and those of new elements.
  struct Planned {
    HhmmBeam::Node node;
    std::uint32_t source;  // node of the old beam, or a candidate after all of these
  };
  const std::uint32_t deepest = grammar_.depth() + 1;
  std::vector<std::vector<std::uint32_t>> by_depth(deepest + 1);
  for (std::uint32_t node = 1; node < old_nodes; ++node)
    if (used[node]) by_depth[depths_[node]].push_back(node);
  for (std::uint32_t i = 0; i < found.size(); ++i)
    if (found[i].active != no_symbol) by_depth[depths_[found[i].node] + 1u].push_back(old_nodes + i);
  std::vector<std::uint32_t> place(old_nodes + found.size(), 0);
  std::vector<Planned> planned;
  for (const auto& sources : by_depth) {
    planned.clear();
    for (const std::uint32_t source : sources) {
      const bool is_old = source < old_nodes;
      const HhmmBeam::Node old = is_old ? beam_.nodes[source] : HhmmBeam::Node{};
      const Candidate* each = is_old ? nullptr : &found[source - old_nodes];
      planned.push_back({is_old ? HhmmBeam::Node{place[old.parent], old.active, old.awaited}
                                : HhmmBeam::Node{place[each->node], each->active, each->awaited},
                         source});
    }
    std::sort(planned.begin(), planned.end(), [](const Planned& a, const Planned& b) {
      return std::tie(a.node.parent, a.node.active, a.node.awaited) <
             std::tie(b.node.parent, b.node.active, b.node.awaited);
    });
    for (std::size_t i = 0; i < planned.size(); ++i) {
      if (i == 0 || !(planned[i].node == planned[i - 1].node)) made->nodes.push_back(planned[i].node);
      place[planned[i].source] = static_cast<std::uint32_t>(made->nodes.size()) - 1;
    }
  }

  std::vector<std::pair<std::uint64_t, double>> stores;  // node and top
  stores.reserve(found.size());
  for (std::uint32_t i = 0; i < found.size(); ++i) {
    const std::uint32_t node = found[i].active == no_symbol ? place[found[i].node] : place[old_nodes + i];
    stores.emplace_back(std::uint64_t{node} << 32 | found[i].top, found[i].value);
  }
  std::sort(stores.begin(), stores.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  double kept = 0;
  for (const auto& [store, value] : stores) kept += value;
  made->stores.reserve(stores.size());
  made->weights.reserve(stores.size());
  for (const auto& [store, value] : stores) {
    made->stores.push_back({static_cast<std::uint32_t>(store >> 32), static_cast<std::uint32_t>(store)});
    const double weight = value / kept;
    made->weights.push_back(options_.single ? static_cast<double>(static_cast<float>(weight)) : weight);
  }
  made->set_hash();
  return {made, kept};
}

}  // namespace treelm
