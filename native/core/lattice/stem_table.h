// The counts of the contexts made of some columns of an event, with and without topics.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "base/large_vector.h"

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

}  // namespace treelm
