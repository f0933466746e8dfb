#include "headlex/model.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings/bindings.h"
#include "bindings/trees/events.h"

namespace treelm::bindings {

void bind_headlex(nb::module_& module) {
  nb::class_<HeadlexExtractor>(module, "HeadlexExtractor")
      .def(
          "__init__",
          [](HeadlexExtractor* self, std::shared_ptr<Profile> profile, std::shared_ptr<WordEncoder> encoder,
             bool training) { new (self) HeadlexExtractor(std::move(profile), std::move(encoder), training); },
          nb::arg("profile"), nb::arg("encoder"), nb::kw_only(), nb::arg("training"))
      .def(
          "count",
          [](HeadlexExtractor& self, const nb::list& batches, const nb::list& counters, std::size_t threads) {
            check_counters(counters, headlex::columns);
            count_rows(self, batches, counters, threads);
          },
          nb::arg("batches"), nb::arg("counters"), nb::kw_only(), nb::arg("threads"))
      .def_prop_ro("labels", [](const HeadlexExtractor& self) { return strings(self.labels()); })
      .def_prop_ro("no_word", &HeadlexExtractor::no_word)
      .def_prop_ro("sentences", &HeadlexExtractor::sentences)
      .def_prop_ro("tokens", &HeadlexExtractor::tokens);
  nb::class_<HeadlexModel>(module, "HeadlexModel")
      .def(
          "__init__",
          [](HeadlexModel* self, const std::vector<std::string>& labels, const Array<bool>& is_child,
             const std::vector<std::shared_ptr<BackoffTable>>& tables, std::shared_ptr<WordEncoder> encoder,
             std::shared_ptr<TreeRecipe> recipe) {
            new (self) HeadlexModel(labels, {is_child.data(), is_child.data() + is_child.size()},
                                    {tables.begin(), tables.end()}, std::move(encoder), std::move(recipe));
          },
          nb::kw_only(), nb::arg("labels"), nb::arg("is_child"), nb::arg("tables"), nb::arg("encoder"),
          nb::arg("recipe"))
      .def(
          "score",
          [](const HeadlexModel& self, const PackedTrees& trees, const Array<std::uint64_t>& starts,
             std::size_t threads) {
            check_threads(threads);
            ListScores scores;
            {
              const Unlocked unlocked;
              scores = score_headlex(self, trees, span_of(starts), threads);
            }
            return scores_of(std::move(scores));
          },
          nb::arg("trees"), nb::arg("starts"), nb::kw_only(), nb::arg("threads"))
      .def(
          "score_each",
          [](const HeadlexModel& self, const nb::list& batches, std::size_t threads) {
            return score_each(batches, threads, [&](const PackedTrees& trees, std::span<const std::uint64_t> starts) {
              return score_headlex(self, trees, starts, 1);
            });
          },
          nb::arg("batches"), nb::kw_only(), nb::arg("threads"));
}

}  // namespace treelm::bindings
