#include "trees/fragments.h"

#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings/bindings.h"

namespace treelm::bindings {

namespace {

RuleTrees trees_of(const Array<std::int64_t>& starts, const Array<std::int32_t>& rules,
                   const Array<std::int32_t>& labels, const Array<std::int32_t>& sizes) {
  return {span_of(starts), span_of(rules), span_of(labels), span_of(sizes)};
}

// Fragments of trees by Gibbs sampling: where each begins, rules and open children, counts.
nb::tuple sample(const Array<std::int64_t>& starts, const Array<std::int32_t>& rules, const Array<std::int32_t>& labels,
                 const Array<std::int32_t>& sizes, const Array<double>& rule_log_probs, std::size_t label_count,
                 double concentration, double stop, std::uint64_t sweeps, std::uint64_t seed,
                 const std::optional<nb::callable>& progress) {
  Fragments fragments;
  {
    const ProgressCallback report = interruptible(progress);
    const Unlocked unlocked;
    fragments = sample_fragments(trees_of(starts, rules, labels, sizes), span_of(rule_log_probs), label_count,
                                 {concentration, stop, sweeps, seed}, report);
  }
  return nb::make_tuple(give(std::move(fragments.starts)), give(std::move(fragments.tokens)),
                        give(std::move(fragments.counts)));
}

// The best cuts of trees: first fragment of each, fragments, heights, numbers of open children.
nb::tuple derive(const FragmentCover& cover, const Array<std::int64_t>& starts, const Array<std::int32_t>& rules,
                 const Array<std::int32_t>& labels, const Array<std::int32_t>& sizes, std::size_t threads,
                 const std::optional<nb::callable>& progress) {
  check_threads(threads);
  Derivations found;
  {
    const ProgressCallback report = interruptible(progress);
    const Unlocked unlocked;
    found = cover.derive(trees_of(starts, rules, labels, sizes), threads, report);
  }
  return nb::make_tuple(give(std::move(found.starts)), give(std::move(found.fragments)), give(std::move(found.heights)),
                        give(std::move(found.open)));
}

}  // namespace

void bind_tree_fragments(nb::module_& module) {
  module.def("sample_fragments", &sample, nb::kw_only(), nb::arg("starts"), nb::arg("rules"), nb::arg("labels"),
             nb::arg("sizes"), nb::arg("rule_log_probs"), nb::arg("label_count"), nb::arg("concentration"),
             nb::arg("stop"), nb::arg("sweeps"), nb::arg("seed"), nb::arg("progress") = nb::none());
  nb::class_<FragmentCover>(module, "FragmentCover")
      .def(
          "__init__",
          [](FragmentCover* self, const Array<std::int64_t>& starts, const Array<std::int32_t>& tokens,
             const Array<std::uint64_t>& counts, const Array<std::int32_t>& rule_labels, std::size_t label_count) {
            new (self)
                FragmentCover(span_of(starts), span_of(tokens), span_of(counts), span_of(rule_labels), label_count);
          },
          nb::kw_only(), nb::arg("starts"), nb::arg("tokens"), nb::arg("counts"), nb::arg("rule_labels"),
          nb::arg("label_count"))
      .def("derive", &derive, nb::kw_only(), nb::arg("starts"), nb::arg("rules"), nb::arg("labels"), nb::arg("sizes"),
           nb::arg("threads"), nb::arg("progress") = nb::none());
}

}  // namespace treelm::bindings
