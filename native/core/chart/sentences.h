// Many sentences at once, by the threads of a pool.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

#include "base/starts.h"
#include "base/thread_pool.h"

namespace treelm {

// Calls body(sentence, its words, worker) for every sentence, in any order, and `check`, which may throw, after every
// few. Throws Error(argument) unless the starts of the sentences fit the words.
template <class Body>
void for_each_sentence(std::span<const std::uint32_t> words, std::span<const std::uint64_t> starts, ThreadPool& pool,
                       const std::function<void()>& check, const Body& body) {
  constexpr std::size_t sentences_at_once = 64;
  check_starts(starts, words.size(), "the starts of sentences do not fit the words");
  const std::size_t count = starts.size() - 1;
  for (std::size_t first = 0; first < count; first += sentences_at_once) {
    pool.map(std::min(sentences_at_once, count - first), [&](std::size_t index, std::size_t worker) {
      const std::size_t sentence = first + index;
      body(sentence, words.subspan(starts[sentence], starts[sentence + 1] - starts[sentence]), worker);
    });
    check();
  }
}

}  // namespace treelm
