// The counts of every node of a lattice: rows by context, with their total and their outcomes in
// ascending order. Nodes that differ in the topic only share their rows: an outcome has its count,
// and a list of topics with the count of each, so that a context is looked up once for all topics.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "base/large_vector.h"
#include "base/progress.h"
#include "lattice/events.h"
#include "lattice/shape.h"

namespace treelm {

// Counts of topics in ascending order of the topic.
struct TopicCounts {
  const std::uint16_t* topics = nullptr;
  const std::int64_t* counts = nullptr;
  std::size_t size = 0;

  // The count of a topic, 0 for one that is not there.
  std::int64_t find(std::uint32_t topic) const;
};

// One stem: the contexts made of its columns.
class StemTable {
 public:
  static constexpr std::uint32_t none = 0xFFFFFFFFu;
  static constexpr std::uint64_t no_entry = std::numeric_limits<std::uint64_t>::max();

  // What is stored; the rest follows from it.
  struct Stored {
    std::size_t width = 0;
    LargeVector<std::uint32_t> keys;         // contexts x width, ascending
    LargeVector<std::uint64_t> begin;        // contexts + 1: the first entry of each
    LargeVector<std::uint32_t> outcomes;     // by entry, ascending within a context
    LargeVector<std::int64_t> counts;        // by entry
    LargeVector<std::uint32_t> topic_begin;  // entries + 1, or nothing without topics
    LargeVector<std::uint16_t> topics;       // ascending within an entry
    LargeVector<std::int64_t> topic_counts;
  };

  StemTable() = default;
  explicit StemTable(Stored stored);

  const Stored& stored() const { return stored_; }
  bool has_topics() const { return !stored_.topic_begin.empty(); }
  std::size_t width() const { return stored_.width; }
  std::size_t contexts() const { return totals_.size(); }
  std::size_t entries() const { return stored_.outcomes.size(); }
  std::size_t topic_entries() const { return stored_.topics.size(); }
  std::size_t bytes() const;

  // The context with these `width()` columns, or none.
  std::uint32_t find(const std::uint32_t* key) const;
  // The entry of an outcome in a context, or no_entry.
  std::uint64_t find(std::uint32_t context, std::uint32_t outcome) const;
  std::int64_t total(std::uint32_t context) const { return totals_[context]; }
  std::int64_t count(std::uint64_t entry) const { return stored_.counts[entry]; }
  const std::uint32_t* key(std::uint32_t context) const { return stored_.keys.data() + context * stored_.width; }
  std::uint64_t begin(std::uint32_t context) const { return stored_.begin[context]; }
  std::uint64_t end(std::uint32_t context) const { return stored_.begin[context + 1]; }
  TopicCounts entry_topics(std::uint64_t entry) const;
  TopicCounts context_topics(std::uint32_t context) const;
  // Where the topics of an entry begin among all of the stem.
  std::uint32_t topic_place(std::uint64_t entry) const { return stored_.topic_begin[entry]; }

  // Sets all counts anew: by topic entry with topics, by entry without.
  void refill(std::span<const std::int64_t> counts);
  // Adds the counts of another stem, which has all columns of this one and more, where `from[i]`
  // is the place of column i there; all counts are set anew.
  void refill_from(const StemTable& larger, std::span<const std::uint32_t> from);
  // What has a count of `least` or more.
  static Stored cut(const Stored& stored, std::int64_t least);

 private:
  void index();
  void sum_up();
  std::size_t slot_of(const std::uint32_t* key) const;

  Stored stored_;
  LargeVector<std::int64_t> totals_;
  LargeVector<std::uint32_t> context_topic_begin_;
  LargeVector<std::uint16_t> context_topics_;
  LargeVector<std::int64_t> context_topic_totals_;
  LargeVector<std::uint32_t> slots_;
};

class LatticeTables {
 public:
  // Takes all that was collected. The same as cut(least) afterwards, but a stem is cut as soon as no smaller
  // one is summed up from it any more, so that far less memory is needed.
  explicit LatticeTables(LatticeEvents& events, std::int64_t least = 0, const ProgressCallback& progress = no_progress);
  // Tables that somebody read from a file: everything is checked, Error(table) if it is no lattice.
  LatticeTables(LatticeShape shape, std::vector<StemTable::Stored> stems);

  const LatticeShape& shape() const { return shape_; }
  const StemTable& stem(std::size_t stem) const { return stems_[stem]; }
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
