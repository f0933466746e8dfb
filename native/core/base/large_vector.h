// Vectors for hundreds of megabytes: their memory is not cleared before it is written, and lies in
// large pages where the system has them, so that random access costs one miss and not two.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace treelm {

void* allocate_large(std::size_t bytes);
void free_large(void* memory, std::size_t bytes) noexcept;

template <class T>
class LargeAllocator {
 public:
  using value_type = T;

  LargeAllocator() = default;
  template <class U>
  LargeAllocator(const LargeAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
    return static_cast<T*>(allocate_large(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept { free_large(memory, count * sizeof(T)); }

  // resize(n) leaves plain numbers as they are: whoever resizes fills them.
  template <class U>
  void construct(U* place) {
    if constexpr (std::is_trivially_default_constructible_v<U>)
      ::new (static_cast<void*>(place)) U;
    else
      ::new (static_cast<void*>(place)) U();
  }
  template <class U, class... Arguments>
  void construct(U* place, Arguments&&... arguments) {
    ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
  }

  friend bool operator==(const LargeAllocator&, const LargeAllocator&) { return true; }
};

template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace treelm
