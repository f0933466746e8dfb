// Gives memory back to the system before its owner does.
#pragma once

#include <cstddef>

#include "base/large_vector.h"

namespace treelm {

// What stands between the two places is not needed any more, and may be anything from now on.
void release_pages(const void* from, const void* to);

// The same for the items [from, to) of a vector.
template <class T>
void release_items(const LargeVector<T>& items, std::size_t from, std::size_t to) {
  release_pages(items.data() + from, items.data() + to);
}

}  // namespace treelm
