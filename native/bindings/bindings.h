// What the binding files share: conversions between C++ vectors and numpy arrays, error mapping.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <vector>

namespace nb = nanobind;

namespace treelm::bindings {

template <typename T>
using Array = nb::ndarray<nb::numpy, const T, nb::ndim<1>, nb::c_contig>;

// A read-only numpy view of `values`, which `owner` keeps alive.
template <typename T>
Array<T> view(const std::vector<T>& values, nb::handle owner) {
  return Array<T>(values.data(), {values.size()}, owner);
}

// A numpy array that owns `values`.
template <typename T>
Array<T> give(std::vector<T> values) {
  auto* held = new std::vector<T>(std::move(values));
  nb::capsule owner(held, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
  return Array<T>(held->data(), {held->size()}, owner);
}

template <typename T>
std::vector<T> copy(const Array<T>& array) {
  return std::vector<T>(array.data(), array.data() + array.size());
}

void bind_profile(nb::module_& module);
void bind_packed_trees(nb::module_& module);
void bind_tree_stream(nb::module_& module);
void bind_words(nb::module_& module);

}  // namespace treelm::bindings
