// Counts the n-grams of a text that is in memory: the events of a few words at a time are made, sorted and added up, so
// that nothing is merged and little more is held than the text and the result.
#pragma once

#include <cstdint>
#include <span>

#include "base/counter.h"
#include "base/progress.h"

namespace treelm {

// What EventCounter::add_sequences counts. Progress is told in events.
SortedEvents count_sequences(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> starts,
                             std::size_t columns, std::uint32_t end, std::uint32_t pad, std::size_t threads,
                             const ProgressCallback& progress = no_progress);

// Bytes that this takes for so many words in so many sequences, at most.
std::uint64_t memory_to_count(std::uint64_t words, std::uint64_t sequences, std::size_t columns, std::uint32_t largest,
                              std::size_t threads);

}  // namespace treelm
