#include "base/large_vector.h"

#include <cstdlib>
#include <mutex>

#include "base/kept_blocks.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace treelm {

#if defined(__linux__)

namespace {

// From this size on memory comes straight from the system.
constexpr std::size_t large = std::size_t{4} << 20;
constexpr std::size_t large_page = std::size_t{2} << 20;

std::size_t rounded(std::size_t bytes) { return (bytes + large_page - 1) / large_page * large_page; }

void* map_large(std::size_t wanted) {
  // A mapping begins anywhere; cut it so that it begins at a large page.
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

// The blocks that are kept. It is never destroyed: vectors may outlive everything else.
class Blocks {
 public:
  static Blocks& all() {
    static auto* const blocks = new Blocks;
    return *blocks;
  }

  void keep() {
    const std::lock_guard lock(mutex_);
    ++keepers_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--keepers_ == 0) release();
  }
  void release_all() {
    const std::lock_guard lock(mutex_);
    release();
  }
  // Memory of the smallest block that has so much, or none.
  void* take(std::size_t wanted) {
    const std::lock_guard lock(mutex_);
    std::size_t best = count_, all = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      all += blocks_[i].bytes;
      if (blocks_[i].bytes >= wanted && (best == count_ || blocks_[i].bytes < blocks_[best].bytes)) best = i;
    }
    if (best == count_) {
      if (all >= wanted) release();
      return nullptr;
    }
    Block& block = blocks_[best];
    void* const memory = block.memory;
    block.memory += wanted;
    block.bytes -= wanted;
    if (block.bytes == 0) block = blocks_[--count_];
    return memory;
  }
  bool put(void* memory, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    if (keepers_ == 0 || count_ == most) return false;
    blocks_[count_++] = {static_cast<char*>(memory), bytes};
    return true;
  }

 private:
  struct Block {
    char* memory;
    std::size_t bytes;
  };
  static constexpr std::size_t most = 64;

  void release() {
    for (std::size_t i = 0; i < count_; ++i) munmap(blocks_[i].memory, blocks_[i].bytes);
    count_ = 0;
  }

  std::mutex mutex_;
  std::size_t keepers_ = 0, count_ = 0;
  Block blocks_[most];
};

}  // namespace

KeptBlocks::KeptBlocks() { Blocks::all().keep(); }
KeptBlocks::~KeptBlocks() { Blocks::all().leave(); }
void KeptBlocks::release() { Blocks::all().release_all(); }

void* allocate_large(std::size_t bytes) {
  if (bytes < large) return ::operator new(bytes);
  const std::size_t wanted = rounded(bytes);
  void* const kept = Blocks::all().take(wanted);
  return kept != nullptr ? kept : map_large(wanted);
}

void free_large(void* memory, std::size_t bytes) noexcept {
  if (bytes < large) {
    ::operator delete(memory);
    return;
  }
  if (!Blocks::all().put(memory, rounded(bytes))) munmap(memory, rounded(bytes));
}

#else

KeptBlocks::KeptBlocks() = default;
KeptBlocks::~KeptBlocks() = default;
void KeptBlocks::release() {}

void* allocate_large(std::size_t bytes) { return ::operator new(bytes); }
void free_large(void* memory, std::size_t) noexcept { ::operator delete(memory); }

#endif

}  // namespace treelm
