#include "chart/weighted_chart.h"

#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings/bindings.h"

namespace treelm::bindings {

namespace {

// The best trees of many sentences: scores, branching, first nodes, symbols in preorder, rules of nodes.
nb::tuple weighted_trees(std::uint32_t symbols, const Matrix<std::int32_t>& rules, const Array<double>& weights,
                         const Array<double>& root_weights, const Array<std::int32_t>& tags,
                         const Array<double>& tag_weights, const Array<std::int64_t>& tag_starts,
                         const Array<std::int64_t>& sentence_starts, std::size_t threads,
                         const std::optional<nb::callable>& progress, bool plain) {
  check_columns(rules.shape(1), 3);
  check_threads(threads);
  WeightedTrees trees;
  {
    const ProgressCallback report = interruptible(progress);
    const Unlocked unlocked;
    const WeightedChart chart({symbols, span_of(rules), span_of(weights), span_of(root_weights)});
    trees = chart.parse({{span_of(tags), span_of(tag_weights), span_of(tag_starts)}, span_of(sentence_starts)}, threads,
                        report, plain);
  }
  return nb::make_tuple(give(std::move(trees.scores)), give(std::move(trees.branching)), give(std::move(trees.starts)),
                        give(std::move(trees.symbols)), give(std::move(trees.rules)));
}

}  // namespace

void bind_weighted_chart(nb::module_& module) {
  module.def("best_weighted_trees", &weighted_trees, nb::kw_only(), nb::arg("symbols"), nb::arg("rules"),
             nb::arg("weights"), nb::arg("root_weights"), nb::arg("tags"), nb::arg("tag_weights"),
             nb::arg("tag_starts"), nb::arg("sentence_starts"), nb::arg("threads"), nb::arg("progress") = nb::none(),
             nb::arg("plain") = false);
}

}  // namespace treelm::bindings
