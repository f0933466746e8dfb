// The shape of a lattice of back-off contexts: which columns of an event each node looks at, and
// which smaller nodes it is smoothed with. A chain is a lattice with one parent per node.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace treelm {

inline constexpr std::size_t max_lattice_nodes = 64;
inline constexpr std::size_t max_lattice_parents = 7;
inline constexpr std::size_t max_lattice_columns = 32;
// Counts are whole multiples of 2^-30, so that sums do not depend on their order.
inline constexpr int count_bits = 30;
inline constexpr double count_unit = 0x1.0p-30;

// At this size a float64 has no binary places: adding it rounds to a whole number, half to even.
inline constexpr double whole_numbers = 6755399441055744.0;  // 1.5 * 2^52

// A count below 2^20 in fixed point.
inline std::int64_t fixed_count(double count) {
  return std::bit_cast<std::int64_t>(count * (1 << count_bits) + whole_numbers) -
         std::bit_cast<std::int64_t>(whole_numbers);
}

struct LatticeNode {
  std::vector<std::uint32_t> columns;  // the context, most important first; a topic stands last
  std::vector<std::uint32_t> parents;  // earlier nodes with a part of the context
};

class LatticeShape {
 public:
  // The first node has no context and the uniform distribution below it; the last is the one asked
  // for, and looks at all columns. With `topics` the last column is a topic, which has no more than
  // 65,536 values. Throws Error(chain) for anything else.
  LatticeShape(std::size_t columns, std::uint32_t outcomes, bool topics, std::vector<LatticeNode> nodes);

  std::size_t columns() const { return columns_; }
  std::uint32_t outcomes() const { return outcomes_; }
  bool topics() const { return topics_; }
  const std::vector<LatticeNode>& nodes() const { return nodes_; }
  std::size_t size() const { return nodes_.size(); }
  std::size_t parents() const { return parents_; }  // most of a node

  // Nodes that differ in the topic only share a stem: their columns without it.
  const std::vector<std::vector<std::uint32_t>>& stems() const { return stems_; }
  std::size_t stem(std::size_t node) const { return stem_of_[node]; }
  bool with_topic(std::size_t node) const { return with_topic_[node] != 0; }
  std::size_t top_stem() const { return stem_of_.back(); }
  // Whether any node of a stem looks at the topic.
  bool stem_has_topic(std::size_t stem) const { return stem_has_topic_[stem] != 0; }

 private:
  void check() const;

  std::size_t columns_, parents_ = 1;
  std::uint32_t outcomes_;
  bool topics_;
  std::vector<LatticeNode> nodes_;
  std::vector<std::vector<std::uint32_t>> stems_;
  std::vector<std::size_t> stem_of_;
  std::vector<char> with_topic_, stem_has_topic_;
};

}  // namespace treelm
