#include "lattice/stem_table.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "lattice/events.h"

namespace treelm {

namespace {

// Tables from which something was cut, or which are of two models.
Error not_nested() { return Error(ErrorCode::table, "a smaller context of a lattice lacks events of a larger one"); }

}  // namespace

std::int64_t TopicCounts::find(std::uint32_t topic) const {
  const std::uint16_t* end = topics + size;
  const std::uint16_t* found = std::lower_bound(topics, end, topic);
  return found != end && *found == topic ? counts[found - topics] : 0;
}

StemTable::StemTable(Stored stored) : stored_(std::move(stored)) {
  index();
  sum_up();
}

std::size_t StemTable::slot_of(const std::uint32_t* key) const {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < stored_.width; ++i) hash = mix64(hash ^ key[i]);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = static_cast<std::size_t>(hash) & mask;
  while (slots_[slot] != none && !std::equal(key, key + stored_.width, this->key(slots_[slot])))
    slot = (slot + 1) & mask;
  return slot;
}

void StemTable::index() {
  const std::size_t contexts = stored_.begin.empty() ? 0 : stored_.begin.size() - 1;
  if (contexts >= none) throw Error(ErrorCode::too_large, "a lattice has too many contexts");
  slots_.resize(std::bit_ceil(contexts + contexts / 2 + 1));
  std::fill(slots_.begin(), slots_.end(), none);
  for (std::uint32_t context = 0; context < contexts; ++context) slots_[slot_of(key(context))] = context;
}

// Totals follow from the entries.
void StemTable::sum_up() {
  const std::size_t contexts = stored_.begin.empty() ? 0 : stored_.begin.size() - 1;
  totals_.resize(contexts);
  const bool with_topics = has_topics();
  context_topic_begin_.clear();
  context_topics_.clear();
  context_topic_totals_.clear();
  if (with_topics) context_topic_begin_.push_back(0);
  std::vector<std::int64_t> sums(with_topics ? 65536 : 0, -1);
  std::vector<std::uint16_t> seen;
  for (std::uint32_t context = 0; context < contexts; ++context) {
    std::int64_t total = 0;
    seen.clear();
    for (std::uint64_t entry = begin(context); entry < end(context); ++entry) {
      total = add_counts(total, stored_.counts[entry]);
      if (!with_topics) continue;
      const TopicCounts topics = entry_topics(entry);
      for (std::size_t i = 0; i < topics.size; ++i) {
        std::int64_t& sum = sums[topics.topics[i]];
        if (sum < 0) {
          seen.push_back(topics.topics[i]);
          sum = 0;
        }
        sum = add_counts(sum, topics.counts[i]);
      }
    }
    totals_[context] = total;
    if (!with_topics) continue;
    std::sort(seen.begin(), seen.end());
    for (const std::uint16_t topic : seen) {
      context_topics_.push_back(topic);
      context_topic_totals_.push_back(sums[topic]);
      sums[topic] = -1;
    }
    if (context_topics_.size() >= none)
      throw Error(ErrorCode::too_large, "a lattice has too many contexts with topics");
    context_topic_begin_.push_back(static_cast<std::uint32_t>(context_topics_.size()));
  }
  context_topic_begin_.shrink_to_fit();
  context_topics_.shrink_to_fit();
  context_topic_totals_.shrink_to_fit();
}

std::size_t StemTable::bytes() const {
  const auto size = [](const auto& values) { return values.capacity() * sizeof(values[0]); };
  return size(stored_.keys) + size(stored_.begin) + size(stored_.outcomes) + size(stored_.counts) +
         size(stored_.topic_begin) + size(stored_.topics) + size(stored_.topic_counts) + size(totals_) +
         size(context_topic_begin_) + size(context_topics_) + size(context_topic_totals_) + size(slots_);
}

std::uint32_t StemTable::find(const std::uint32_t* key) const {
  if (contexts() == 0) return none;
  return slots_[slot_of(key)];
}

std::uint64_t StemTable::find(std::uint32_t context, std::uint32_t outcome) const {
  const std::uint32_t* outcomes = stored_.outcomes.data();
  const std::uint32_t* last = outcomes + end(context);
  // A context that has been followed by everything holds each outcome at its own place.
  const std::uint64_t own = begin(context) + outcome;
  if (own < end(context) && outcomes[own] == outcome) return own;
  const std::uint32_t* found = std::lower_bound(outcomes + begin(context), last, outcome);
  return found != last && *found == outcome ? static_cast<std::uint64_t>(found - outcomes) : no_entry;
}

TopicCounts StemTable::entry_topics(std::uint64_t entry) const {
  const std::size_t first = stored_.topic_begin[entry], last = stored_.topic_begin[entry + 1];
  return {stored_.topics.data() + first, stored_.topic_counts.data() + first, last - first};
}

TopicCounts StemTable::context_topics(std::uint32_t context) const {
  const std::size_t first = context_topic_begin_[context], last = context_topic_begin_[context + 1];
  return {context_topics_.data() + first, context_topic_totals_.data() + first, last - first};
}

void StemTable::refill(std::span<const std::int64_t> counts) {
  if (counts.size() != (has_topics() ? topic_entries() : entries()))
    throw Error(ErrorCode::argument, "there must be one new count for every type of the last node");
  if (std::any_of(counts.begin(), counts.end(), [](std::int64_t count) { return count < 0; }))
    throw Error(ErrorCode::argument, "an event has a negative count");
  if (!has_topics()) {
    std::copy(counts.begin(), counts.end(), stored_.counts.begin());
  } else {
    std::copy(counts.begin(), counts.end(), stored_.topic_counts.begin());
    for (std::uint64_t entry = 0; entry < entries(); ++entry) {
      const TopicCounts topics = entry_topics(entry);
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < topics.size; ++i) sum = add_counts(sum, topics.counts[i]);
      stored_.counts[entry] = sum;
    }
  }
  sum_up();
}

void StemTable::refill_from(const StemTable& larger, std::span<const std::uint32_t> from) {
  std::fill(stored_.counts.begin(), stored_.counts.end(), 0);
  std::fill(stored_.topic_counts.begin(), stored_.topic_counts.end(), 0);
  std::vector<std::uint32_t> wanted(width());
  for (std::uint32_t context = 0; context < larger.contexts(); ++context) {
    for (std::size_t i = 0; i < from.size(); ++i) wanted[i] = larger.key(context)[from[i]];
    const std::uint32_t own = find(wanted.data());
    if (own == none) throw not_nested();
    const std::uint32_t* place = stored_.outcomes.data() + begin(own);
    const std::uint32_t* last = stored_.outcomes.data() + end(own);
    for (std::uint64_t entry = larger.begin(context); entry < larger.end(context); ++entry) {
      place = std::lower_bound(place, last, larger.stored_.outcomes[entry]);
      if (place == last || *place != larger.stored_.outcomes[entry]) throw not_nested();
      const auto to = static_cast<std::size_t>(place - stored_.outcomes.data());
      stored_.counts[to] = add_counts(stored_.counts[to], larger.stored_.counts[entry]);
      if (!has_topics()) continue;
      const TopicCounts topics = larger.entry_topics(entry);
      const std::uint16_t* topic = stored_.topics.data() + stored_.topic_begin[to];
      const std::uint16_t* topic_end = stored_.topics.data() + stored_.topic_begin[to + 1];
      for (std::size_t i = 0; i < topics.size; ++i) {
        topic = std::lower_bound(topic, topic_end, topics.topics[i]);
        if (topic == topic_end || *topic != topics.topics[i]) throw not_nested();
        std::int64_t& count = stored_.topic_counts[static_cast<std::size_t>(topic - stored_.topics.data())];
        count = add_counts(count, topics.counts[i]);
      }
    }
  }
  sum_up();
}

StemTable::Stored StemTable::cut(const Stored& stored, std::int64_t least) {
  const bool with_topics = !stored.topic_begin.empty();
  const auto keeps = [least](std::int64_t count) { return count >= least; };
  Stored kept;
  kept.width = stored.width;
  // Counted first, so that no array is larger than it must be.
  const auto entries = static_cast<std::size_t>(std::count_if(stored.counts.begin(), stored.counts.end(), keeps));
  kept.outcomes.reserve(entries);
  kept.counts.reserve(entries);
  kept.begin.push_back(0);
  if (with_topics) {
    const auto topics = std::count_if(stored.topic_counts.begin(), stored.topic_counts.end(), keeps);
    kept.topics.reserve(static_cast<std::size_t>(topics));
    kept.topic_counts.reserve(static_cast<std::size_t>(topics));
    kept.topic_begin.reserve(entries + 1);
    kept.topic_begin.push_back(0);
  }
  const std::size_t contexts = stored.begin.empty() ? 0 : stored.begin.size() - 1;
  for (std::size_t context = 0; context < contexts; ++context) {
    for (std::uint64_t entry = stored.begin[context]; entry < stored.begin[context + 1]; ++entry) {
      if (!keeps(stored.counts[entry])) continue;
      kept.outcomes.push_back(stored.outcomes[entry]);
      kept.counts.push_back(stored.counts[entry]);
      if (!with_topics) continue;
      for (std::size_t i = stored.topic_begin[entry]; i < stored.topic_begin[entry + 1]; ++i)
        if (keeps(stored.topic_counts[i])) {
          kept.topics.push_back(stored.topics[i]);
          kept.topic_counts.push_back(stored.topic_counts[i]);
        }
      kept.topic_begin.push_back(static_cast<std::uint32_t>(kept.topics.size()));
    }
    if (kept.outcomes.size() == kept.begin.back()) continue;
    const std::uint32_t* key = stored.keys.data() + context * stored.width;
    kept.keys.insert(kept.keys.end(), key, key + stored.width);
    kept.begin.push_back(kept.outcomes.size());
  }
  return kept;
}

}  // namespace treelm
