#include "base/release_pages.h"

#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace treelm {

void release_pages([[maybe_unused]] const void* from, [[maybe_unused]] const void* to) {
#if defined(__linux__)
  // Whole large pages only: a part of one is not worth taking it apart.
  constexpr std::uintptr_t page = std::uintptr_t{2} << 20;
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(from) + page - 1) / page * page;
  const std::uintptr_t last = reinterpret_cast<std::uintptr_t>(to) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
#endif
}

}  // namespace treelm
