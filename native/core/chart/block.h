// Sixteen numbers that loops handle at once, as vectors where the compiler has them.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <vector>

namespace treelm {

template <class T>
class BlockAllocator {
 public:
  using value_type = T;

  BlockAllocator() = default;
  template <class U>
  BlockAllocator(const BlockAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
    return static_cast<T*>(::operator new(count * sizeof(T), alignment));
  }
  void deallocate(T* memory, std::size_t) noexcept { ::operator delete(memory, alignment); }

  friend bool operator==(const BlockAllocator&, const BlockAllocator&) { return true; }

 private:
  static constexpr std::align_val_t alignment{64};
};

// Numbers that begin where a line of the cache begins.
template <class Real>
using BlockVector = std::vector<Real, BlockAllocator<Real>>;

template <class Real>
struct Block {
  static constexpr std::size_t lanes = 16;
#if defined(__GNUC__)
  typedef Real Part __attribute__((vector_size(64)));
#else
  typedef Real Part;
#endif
  static constexpr std::size_t parts = lanes * sizeof(Real) / sizeof(Part);
  Part part[parts];

  [[gnu::always_inline]] inline static Block load(const Real* from) {
    Block made;
    std::memcpy(&made, from, sizeof made);
    return made;
  }
  [[gnu::always_inline]] inline void store(Real* to) const { std::memcpy(to, this, sizeof *this); }
  [[gnu::always_inline]] inline void clear() {
    for (Part& value : part) value = Part{};
  }
  // Adds a * b.
  [[gnu::always_inline]] inline void add(Real a, const Block& b) {
    for (std::size_t i = 0; i < parts; ++i) part[i] += a * b.part[i];
  }
  [[gnu::always_inline]] inline void add(const Block& a, const Block& b) {
    for (std::size_t i = 0; i < parts; ++i) part[i] += a.part[i] * b.part[i];
  }
  // In an order that does not depend on the width of vectors.
  [[gnu::always_inline]] inline Real sum() const {
    Real all[lanes];
    store(all);
    Real eight[8], four[4];
    for (std::size_t i = 0; i < 8; ++i) eight[i] = all[i] + all[i + 8];
    for (std::size_t i = 0; i < 4; ++i) four[i] = eight[i] + eight[i + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
  }
};

}  // namespace treelm
