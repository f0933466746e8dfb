// Where the pieces of a flat array begin.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace treelm {

// Whether starts rise from 0 to `size`: piece i is [starts[i], starts[i + 1]).
template <class Starts>
bool starts_fit(const Starts& starts, std::size_t size) {
  return starts.size() != 0 && *starts.begin() == 0 && static_cast<std::size_t>(*(starts.end() - 1)) == size &&
         std::is_sorted(starts.begin(), starts.end());
}

// Throws Error(argument) with a message unless they do.
template <class Starts>
void check_starts(const Starts& starts, std::size_t size, const char* message) {
  if (!starts_fit(starts, size)) throw Error(ErrorCode::argument, message);
}

}  // namespace treelm
