// Steps of an HHMM that were taken before, and one copy of each state.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "hhmm/search.h"

namespace treelm {

struct HhmmCounters {
  std::uint64_t advances = 0, cache_hits = 0, restarts = 0, stacks = 0;
  std::uint64_t unique_states = 0, bytes_states = 0;
  double seconds = 0;
};

// Least recently used steps go first. Safe for threads.
class HhmmCache {
 public:
  explicit HhmmCache(std::size_t bytes) : capacity_(bytes) {}

  std::optional<HhmmStep> find(const SharedBeam& beam, std::uint32_t word);
  // Remembers a step; returns it with the one copy of its state.
  HhmmStep insert(const SharedBeam& beam, std::uint32_t word, HhmmStep step, double seconds);
  HhmmCounters counters() const;
  void reset_counters();
  void clear();

 private:
  struct Key {
    SharedBeam beam;
    std::uint32_t word;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct KeyEqual {
    bool operator()(const Key& a, const Key& b) const;
  };
  struct Entry {
    Key key;
    HhmmStep step;
    std::size_t bytes;
  };
  SharedBeam intern(const SharedBeam& beam);
  void forget_dead();

  std::size_t capacity_, bytes_ = 0;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the latest first
  std::unordered_map<Key, std::list<Entry>::iterator, KeyHash, KeyEqual> places_;
  std::unordered_multimap<std::uint64_t, std::weak_ptr<const HhmmBeam>> states_;
  std::size_t clean_at_ = 1024;
  HhmmCounters counters_;
};

}  // namespace treelm
