#include "backoff/table_quantizer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <tuple>

#include "backoff/table_compactor.h"
#include "bindings/bindings.h"

namespace treelm::bindings {

namespace {

// Number of values, sum of their changes, the largest of these.
using Change = std::tuple<std::uint64_t, double, double>;

Change numbers_of(const ValueChange& change) { return {change.values, change.sum, change.largest}; }

std::tuple<std::shared_ptr<const BackoffTable>, Change, Change> quantize_table(
    const BackoffTable& table, unsigned bits, std::size_t threads, const std::optional<nb::callable>& progress) {
  check_threads(threads);
  const ProgressCallback report = interruptible(progress);
  const Unlocked unlocked;
  QuantizedTable made = quantize(table, bits, threads, report);
  return {std::move(made.table), numbers_of(made.probabilities), numbers_of(made.weights)};
}

std::shared_ptr<const BackoffTable> compact_table(const BackoffTable& table, unsigned code_bits,
                                                  const std::string& folder,
                                                  const std::optional<nb::callable>& progress) {
  const ProgressCallback report = interruptible(progress);
  const Unlocked unlocked;
  return make_compact(table, code_bits, folder, report);
}

}  // namespace

void bind_table_quantizer(nb::module_& module) {
  module.def("quantize_table", &quantize_table, nb::arg("table"), nb::kw_only(), nb::arg("bits"), nb::arg("threads"),
             nb::arg("progress").none());
  module.def("compact_table", &compact_table, nb::arg("table"), nb::kw_only(), nb::arg("code_bits"), nb::arg("folder"),
             nb::arg("progress").none());
}

}  // namespace treelm::bindings
