// Asks for memory that will be read soon, so that it comes while something else is done.
#pragma once

namespace treelm {

inline void prefetch([[maybe_unused]] const void* place) {
#if defined(__GNUC__)
  __builtin_prefetch(place);
  __asm__ volatile("");  // GCC drops calls of functions that do nothing but this
#endif
}

// The same for memory that will be written.
inline void prefetch_to_write([[maybe_unused]] const void* place) {
#if defined(__GNUC__)
  __builtin_prefetch(place, 1);
  __asm__ volatile("");
#endif
}

}  // namespace treelm
