#include "lattice/shape.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace treelm {

namespace {

[[noreturn]] void wrong(const std::string& what) { throw Error(ErrorCode::chain, what); }

bool is_part(const std::vector<std::uint32_t>& part, const std::vector<std::uint32_t>& whole) {
  return part.size() < whole.size() &&
         std::all_of(
             part.begin(), part.end(),
             [&](std::uint32_t column) { return std::find(whole.begin(), whole.end(), column) != whole.end(); });
}

}  // namespace

LatticeShape::LatticeShape(std::size_t columns, std::uint32_t outcomes, bool topics, std::vector<LatticeNode> nodes)
    : columns_(columns), outcomes_(outcomes), topics_(topics), nodes_(std::move(nodes)) {
  check();
  for (const LatticeNode& node : nodes_) {
    parents_ = std::max(parents_, node.parents.size());
    const bool with_topic = topics_ && !node.columns.empty() && node.columns.back() == columns_ - 1;
    std::vector<std::uint32_t> stem(node.columns.begin(), node.columns.end() - (with_topic ? 1 : 0));
    const auto found = std::find(stems_.begin(), stems_.end(), stem);
    stem_of_.push_back(static_cast<std::size_t>(found - stems_.begin()));
    with_topic_.push_back(with_topic);
    if (found == stems_.end()) {
      stems_.push_back(std::move(stem));
      stem_has_topic_.push_back(0);
    }
    if (with_topic) stem_has_topic_[stem_of_.back()] = 1;
  }
}

void LatticeShape::check() const {
  if (columns_ > max_lattice_columns)
    wrong("a lattice has " + std::to_string(columns_) + " columns, and at most 32 fit");
  if (outcomes_ < 1) wrong("a lattice needs at least one outcome");
  if (topics_ && columns_ == 0) wrong("a lattice without columns has no topic");
  if (nodes_.empty() || nodes_.size() > max_lattice_nodes) wrong("a lattice has between 1 and 64 nodes");
  if (!nodes_.front().columns.empty() || !nodes_.front().parents.empty())
    wrong("the first node of a lattice has neither context nor parents");
  for (std::size_t v = 0; v < nodes_.size(); ++v) {
    const LatticeNode& node = nodes_[v];
    const std::string name = "node " + std::to_string(v) + " of the lattice ";
    for (std::size_t i = 0; i < node.columns.size(); ++i) {
      const std::uint32_t column = node.columns[i];
      if (column >= columns_) wrong(name + "looks at a column that does not exist");
      if (std::find(node.columns.begin(), node.columns.begin() + static_cast<std::ptrdiff_t>(i), column) !=
          node.columns.begin() + static_cast<std::ptrdiff_t>(i))
        wrong(name + "looks at a column twice");
      if (topics_ && column == columns_ - 1 && i + 1 != node.columns.size())
        wrong(name + "must have its topic at the end");
    }
    if (v > 0 && (node.parents.empty() || node.parents.size() > max_lattice_parents))
      wrong(name + "needs between 1 and 7 parents");
    for (const std::uint32_t parent : node.parents)
      if (parent >= v || !is_part(nodes_[parent].columns, node.columns))
        wrong(name + "has a parent that is not a part of it, or that comes later");
  }
  if (nodes_.back().columns.size() != columns_) wrong("the last node of a lattice must look at all columns");
}

}  // namespace treelm
