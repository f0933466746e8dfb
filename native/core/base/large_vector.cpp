#include "base/large_vector.h"

#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace treelm {

namespace {

// From this size on memory comes straight from the system.
constexpr std::size_t large = std::size_t{4} << 20;
#if defined(__linux__)
constexpr std::size_t large_page = std::size_t{2} << 20;

std::size_t rounded(std::size_t bytes) { return (bytes + large_page - 1) / large_page * large_page; }
#endif

}  // namespace

void* allocate_large(std::size_t bytes) {
#if defined(__linux__)
  if (bytes >= large) {
    // A mapping begins anywhere; cut it so that it begins at a large page.
    const std::size_t wanted = rounded(bytes);
    void* found =
        mmap(nullptr, wanted + large_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) throw std::bad_alloc();
    const auto begin = reinterpret_cast<std::size_t>(found);
    const std::size_t skip = (large_page - begin % large_page) % large_page;
    if (skip != 0) munmap(found, skip);
    if (large_page - skip != 0) munmap(reinterpret_cast<void*>(begin + skip + wanted), large_page - skip);
    void* memory = reinterpret_cast<void*>(begin + skip);
#if defined(MADV_HUGEPAGE)
    madvise(memory, wanted, MADV_HUGEPAGE);
#endif
    return memory;
  }
#endif
  return ::operator new(bytes);
}

void free_large(void* memory, std::size_t bytes) noexcept {
#if defined(__linux__)
  if (bytes >= large) {
    munmap(memory, rounded(bytes));
    return;
  }
#endif
  ::operator delete(memory);
}

}  // namespace treelm
