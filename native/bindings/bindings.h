// What the binding files share: conversions between C++ vectors and numpy arrays, error mapping.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/progress.h"

namespace nb = nanobind;

namespace treelm::bindings {

template <typename T>
using Array = nb::ndarray<nb::numpy, const T, nb::ndim<1>, nb::c_contig>;

template <typename T>
using Matrix = nb::ndarray<nb::numpy, const T, nb::ndim<2>, nb::c_contig>;

// A matrix of `columns` columns that owns `values`; `rows` matters where there are no columns.
template <typename T>
Matrix<T> give_rows(std::vector<T> values, std::size_t columns, std::size_t rows = 0) {
  auto* held = new std::vector<T>(std::move(values));
  nb::capsule owner(held, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
  return Matrix<T>(held->data(), {columns == 0 ? rows : held->size() / columns, columns}, owner);
}

template <typename A>
auto span_of(const A& array) {
  return std::span(array.data(), array.size());
}

inline void check_columns(std::size_t found, std::size_t expected) {
  if (found != expected)
    throw Error(ErrorCode::argument,
                "rows have " + std::to_string(found) + " columns, and " + std::to_string(expected) + " were expected");
}

inline void check_threads(std::size_t threads) {
  if (threads < 1 || threads > 1024) throw Error(ErrorCode::argument, "threads must lie between 1 and 1024");
}

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

// Ctrl-C stops the work of the thread that calls this, with or without the interpreter's lock.
inline void hear_signals() {
  const nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// Gives the interpreter's lock away while it lives; kernels that poll then hear Ctrl-C.
class Unlocked {
 public:
  Unlocked() = default;

 private:
  nb::gil_scoped_release release_;
  Interruptible interruptible_{hear_signals};
};

// Runs `work` without the interpreter's lock.
template <class Work>
auto released(const Work& work) {
  const Unlocked unlocked;
  return work();
}

// Tells `progress`, which lives at least as long, and checks for Ctrl-C.
inline ProgressCallback interruptible(const std::optional<nb::callable>& progress) {
  return [&progress](std::uint64_t done, std::uint64_t all) {
    const nb::gil_scoped_acquire acquire;
    hear_signals();
    if (progress) (*progress)(done, all);
  };
}

void bind_arpa(nb::module_& module);
void bind_backoff(nb::module_& module);
void bind_binary_trees(nb::module_& module);
void bind_chart(nb::module_& module);
void bind_counts(nb::module_& module);
void bind_envelopes(nb::module_& module);
void bind_event_templates(nb::module_& module);
void bind_hhmm(nb::module_& module);
void bind_headlex(nb::module_& module);
void bind_k_best(nb::module_& module);
void bind_lattice(nb::module_& module);
void bind_mira(nb::module_& module);
void bind_phrases(nb::module_& module);
void bind_plsa(nb::module_& module);
void bind_profile(nb::module_& module);
void bind_ngram_reader(nb::module_& module);
void bind_packed_forest(nb::module_& module);
void bind_packed_trees(nb::module_& module);
void bind_phrase_decoder(nb::module_& module);
void bind_phrase_table(nb::module_& module);
void bind_search_models(nb::module_& module);
void bind_table_quantizer(nb::module_& module);
void bind_slm(nb::module_& module);
void bind_split_merge(nb::module_& module);
void bind_tree_stream(nb::module_& module);
void bind_tree_fragments(nb::module_& module);
void bind_tree_ranker(nb::module_& module);
void bind_treelet(nb::module_& module);
void bind_word_encoder(nb::module_& module);
void bind_weighted_chart(nb::module_& module);
void bind_words(nb::module_& module);

}  // namespace treelm::bindings
