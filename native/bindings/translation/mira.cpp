#include "translation/mira.h"

#include <nanobind/stl/string.h>

#include <string>

#include "bindings/bindings.h"

namespace treelm::bindings {

namespace {

TuningMetric metric_of(const std::string& name) {
  if (name == "bleu") return TuningMetric::bleu;
  if (name == "wer") return TuningMetric::word_errors;
  throw Error(ErrorCode::argument, "there is no such metric");
}

// The sum of the weights after every list, the last weights, and the background that is left.
nb::tuple pass(const MiraLists& self, const Array<double>& weights, const Array<double>& background,
               const Array<std::int64_t>& order, const Array<double>& mobility, double most_step, double decay) {
  MiraState state{copy(weights), copy(background)};
  std::vector<double> total =
      released([&] { return self.pass(span_of(order), span_of(mobility), {most_step, decay}, state); });
  return nb::make_tuple(give(std::move(total)), give(std::move(state.weights)), give(std::move(state.background)));
}

}  // namespace

void bind_mira(nb::module_& module) {
  nb::class_<MiraLists>(module, "MiraLists")
      .def(
          "__init__",
          [](MiraLists* self, const Array<double>& features, const Array<std::int64_t>& starts,
             const Array<std::int64_t>& statistics, const std::string& metric) {
            const TuningMetric known = metric_of(metric);
            const Unlocked unlocked;
            new (self) MiraLists(copy(features), copy(starts), span_of(statistics), known);
          },
          nb::arg("features"), nb::arg("starts"), nb::arg("statistics"), nb::kw_only(), nb::arg("metric"))
      .def("__len__", &MiraLists::size)
      .def("run_pass", &pass, nb::arg("weights"), nb::arg("background"), nb::kw_only(), nb::arg("order"),
           nb::arg("mobility"), nb::arg("most_step"), nb::arg("decay"));
}

}  // namespace treelm::bindings
