// Many sentences at once, by the threads of a pool.
#pragma once

#include <cstdint>
#include <span>

#include "base/starts.h"
#include "base/thread_pool.h"

namespace treelm {

// Calls body(sentence, its words, worker) for every sentence, in any order. Throws Error(argument) unless the starts of
// the sentences fit the words.
template <class Body>
void for_each_sentence(std::span<const std::uint32_t> words, std::span<const std::uint64_t> starts, ThreadPool& pool,
                       const Body& body) {
  check_starts(starts, words.size(), "the starts of sentences do not fit the words");
  pool.map(starts.size() - 1, [&](std::size_t sentence, std::size_t worker) {
    body(sentence, words.subspan(starts[sentence], starts[sentence + 1] - starts[sentence]), worker);
  });
}

}  // namespace treelm
