// The counts of every node of a lattice: rows by context, with their total and their outcomes in
// ascending order. Nodes that differ in the topic only share their rows: an outcome has its count,
// and a list of topics with the count of each, so that a context is looked up once for all topics.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/progress.h"
#include "lattice/events.h"
#include "lattice/shape.h"
#include "lattice/stem_table.h"

namespace treelm {

class LatticeTables {
 public:
  // Takes all that was collected. The same as cut(least) afterwards, but a stem is cut as soon as no smaller
  // one is summed up from it any more, so that far less memory is needed.
  explicit LatticeTables(LatticeEvents& events, std::int64_t least = 0, const ProgressCallback& progress = no_progress);
  // Tables read from a file: everything is checked, Error(table) if they are not those of a lattice.
  LatticeTables(LatticeShape shape, std::vector<StemTable::Stored> stems);

  const LatticeShape& shape() const { return shape_; }
  const StemTable& stem(std::size_t stem) const { return stems_[stem]; }
  // The context of a stem in a row of all columns, or StemTable::none.
  std::uint32_t find_context(std::size_t stem, const std::uint32_t* columns) const {
    std::uint32_t key[max_lattice_columns];
    const std::vector<std::uint32_t>& wanted = shape_.stems()[stem];
    for (std::size_t i = 0; i < wanted.size(); ++i) key[i] = columns[wanted[i]];
    return stems_[stem].find(key);
  }
  std::size_t bytes() const;
  // How many distinct events a node counts.
  std::size_t types(std::size_t node) const;

  // New counts of the top stem, in its order; every other node is summed up from it. Models that
  // use these tables change with them.
  void refill(std::span<const std::int64_t> counts);
  // A copy without the types that have a count below `least` in their own node; Error(no_data) if
  // the last node keeps none.
  LatticeTables cut(std::int64_t least) const;

 private:
  LatticeTables(LatticeShape shape, std::vector<StemTable> stems)
      : shape_(std::move(shape)), stems_(std::move(stems)) {}
  template <std::size_t W>
  void build(LatticeEvents& events, std::int64_t least, const ProgressCallback& progress);
  // A stem without what is rare; Error(no_data) if nothing of the last node is left.
  StemTable::Stored frequent(const StemTable::Stored& stored, std::size_t stem, std::int64_t least) const;
  // Which stem another is summed up from, larger ones first.
  std::vector<std::size_t> order() const;
  std::size_t source(std::size_t stem) const;
  std::vector<std::uint32_t> places(std::size_t stem, std::size_t in) const;

  LatticeShape shape_;
  std::vector<StemTable> stems_;
};

}  // namespace treelm
