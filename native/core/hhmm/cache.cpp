#include "hhmm/cache.h"

#include <algorithm>

#include "base/random.h"

namespace treelm {

namespace {

constexpr std::size_t entry_overhead = 256;

}  // namespace

std::size_t HhmmCache::KeyHash::operator()(const Key& key) const {
  return static_cast<std::size_t>(mix64(key.beam->hash ^ key.word));
}

bool HhmmCache::KeyEqual::operator()(const Key& a, const Key& b) const {
  return a.word == b.word && (a.beam == b.beam || a.beam->same(*b.beam));
}

std::optional<HhmmStep> HhmmCache::find(const SharedBeam& beam, std::uint32_t word) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find({beam, word});
  if (found == places_.end()) return std::nullopt;
  ++counters_.cache_hits;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->step;
}

HhmmStep HhmmCache::insert(const SharedBeam& beam, std::uint32_t word, HhmmStep step, double seconds) {
  const std::lock_guard lock(mutex_);
  ++counters_.advances;
  counters_.restarts += step.restarted;
  counters_.stacks += step.beam->stacks.size();
  counters_.seconds += seconds;
  step.beam = intern(step.beam);
  const Key key{beam, word};
  const std::size_t size = step.beam->bytes() + entry_overhead;
  if (places_.contains(key) || size > capacity_) return step;
  entries_.push_front({key, step, size});
  places_.emplace(key, entries_.begin());
  bytes_ += size;
  while (bytes_ > capacity_) {
    bytes_ -= entries_.back().bytes;
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return step;
}

SharedBeam HhmmCache::intern(const SharedBeam& beam) {
  const auto [first, last] = states_.equal_range(beam->hash);
  for (auto place = first; place != last; ++place)
    if (SharedBeam known = place->second.lock(); known && known->same(*beam)) return known;
  if (states_.size() >= clean_at_) forget_dead();
  states_.emplace(beam->hash, beam);
  return beam;
}

void HhmmCache::forget_dead() {
  std::erase_if(states_, [](const auto& item) { return item.second.expired(); });
  clean_at_ = std::max<std::size_t>(1024, 2 * states_.size());
}

HhmmCounters HhmmCache::counters() const {
  const std::lock_guard lock(mutex_);
  HhmmCounters found = counters_;
  for (const auto& [hash, state] : states_)
    if (const SharedBeam known = state.lock()) {
      ++found.unique_states;
      found.bytes_states += known->bytes();
    }
  return found;
}

void HhmmCache::reset_counters() {
  const std::lock_guard lock(mutex_);
  counters_ = {};
}

void HhmmCache::clear() {
  const std::lock_guard lock(mutex_);
  places_.clear();
  entries_.clear();
  states_.clear();
  bytes_ = 0;
}

}  // namespace treelm
