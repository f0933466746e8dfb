// Many sentences at once, by the threads of a pool.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/starts.h"
#include "base/thread_pool.h"

namespace treelm {

// Calls body(sentence, its words, worker) for every sentence, in any order but that of so many in a row. Throws
// Error(argument) unless the starts of the sentences fit the words.
template <class Body>
void for_each_sentence(std::span<const std::uint32_t> words, std::span<const std::uint64_t> starts, ThreadPool& pool,
                       const Body& body, std::size_t in_a_row = 1) {
  check_starts(starts, words.size(), "the starts of sentences do not fit the words");
  const std::size_t sentences = starts.size() - 1;
  pool.map((sentences + in_a_row - 1) / in_a_row, [&](std::size_t piece, std::size_t worker) {
    const std::size_t end = std::min(sentences, (piece + 1) * in_a_row);
    for (std::size_t sentence = piece * in_a_row; sentence < end; ++sentence)
      body(sentence, words.subspan(starts[sentence], starts[sentence + 1] - starts[sentence]), worker);
  });
}

}  // namespace treelm
