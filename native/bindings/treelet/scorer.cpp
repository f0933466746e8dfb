#include "treelet/scorer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "base/starts.h"
#include "bindings/bindings.h"
#include "bindings/trees/events.h"
#include "treelet/sampler.h"
#include "treelet/yield_model.h"

namespace treelm::bindings {

namespace {

std::vector<std::uint8_t> flags(const Array<bool>& given) { return {given.data(), given.data() + given.size()}; }

Array<double> probabilities(const YieldModel& self, const Array<std::uint32_t>& parents,
                            const Array<std::uint32_t>& symbols, const Array<std::uint64_t>& starts,
                            std::size_t threads) {
  check_threads(threads);
  if (starts.size() != parents.size() + 1) throw Error(ErrorCode::argument, "every parent needs a right-hand side");
  const auto at = span_of(starts);
  check_starts(at, symbols.size(), "the starts of right-hand sides do not fit the symbols");
  std::vector<double> out(parents.size());
  {
    const Unlocked unlocked;
    constexpr std::size_t piece = 4096;
    ThreadPool pool(threads);
    pool.map((out.size() + piece - 1) / piece, [&](std::size_t p, std::size_t) {
      for (std::size_t i = p * piece; i < std::min(out.size(), (p + 1) * piece); ++i)
        out[i] = self.probability(parents.data()[i], span_of(symbols).subspan(at[i], at[i + 1] - at[i]));
    });
  }
  return give(std::move(out));
}

void bind_yield_model(nb::module_& module) {
  nb::class_<YieldModel>(module, "YieldModel")
      .def(
          "__init__",
          [](YieldModel* self, std::shared_ptr<BackoffTable> conditional, std::shared_ptr<BackoffTable> unconditional,
             const Array<std::uint32_t>& symbol_of, std::uint32_t seen_symbols, bool unknown,
             const Array<bool>& seen_parents, double weight) {
            new (self) YieldModel(std::move(conditional), std::move(unconditional), copy(symbol_of), seen_symbols,
                                  unknown, flags(seen_parents), weight);
          },
          nb::arg("conditional"), nb::arg("unconditional"), nb::kw_only(), nb::arg("symbol_of"),
          nb::arg("seen_symbols"), nb::arg("unknown"), nb::arg("seen_parents"), nb::arg("weight"))
      .def("probabilities", &probabilities, nb::arg("parents"), nb::arg("symbols"), nb::arg("starts"), nb::kw_only(),
           nb::arg("threads"))
      .def(
          "log_probability",
          [](const YieldModel& self, std::uint32_t parent, const Array<std::uint32_t>& symbols) {
            return self.log_probability(parent, span_of(symbols));
          },
          nb::arg("parent"), nb::arg("symbols"));
}

void bind_yield_sampler(nb::module_& module) {
  nb::class_<YieldSampler>(module, "YieldSampler")
      .def(
          "__init__",
          [](YieldSampler* self, std::shared_ptr<YieldModel> model) { new (self) YieldSampler(std::move(model)); },
          nb::arg("model"))
      .def(
          "draw",
          [](const YieldSampler& self, std::uint32_t parent, std::uint64_t seed, std::uint64_t stream,
             std::uint64_t counter) {
            std::vector<std::uint32_t> labels;
            self.draw(parent, seed, stream, counter, labels);
            return labels;
          },
          nb::arg("parent"), nb::arg("seed"), nb::arg("stream"), nb::arg("counter"));
}

void bind_model(nb::module_& module) {
  nb::class_<TreeletModel>(module, "TreeletModel")
      .def(
          "__init__",
          [](TreeletModel* self, const std::vector<std::string>& labels, const Array<std::uint32_t>& yield_labels,
             const Array<std::uint64_t>& yield_starts, const Matrix<std::uint32_t>& rules,
             std::shared_ptr<BackoffTable> nonterminal, std::shared_ptr<BackoffTable> terminal,
             std::shared_ptr<YieldModel> base, std::shared_ptr<WordEncoder> encoder, std::shared_ptr<TreeRecipe> recipe,
             const std::vector<std::string>& marked_tags) {
            check_columns(rules.shape(1), 2);
            new (self) TreeletModel(labels, span_of(yield_labels), span_of(yield_starts), span_of(rules),
                                    std::move(nonterminal), std::move(terminal), std::move(base), std::move(encoder),
                                    std::move(recipe), marked_tags);
          },
          nb::kw_only(), nb::arg("labels"), nb::arg("yield_labels"), nb::arg("yield_starts"), nb::arg("rules"),
          nb::arg("nonterminal"), nb::arg("terminal"), nb::arg("base"), nb::arg("encoder"), nb::arg("recipe"),
          nb::arg("marked_tags"))
      .def(
          "score",
          [](const TreeletModel& self, const PackedTrees& trees, const Array<std::uint64_t>& starts, bool transform,
             std::size_t threads) {
            check_threads(threads);
            ListScores scores;
            {
              const Unlocked unlocked;
              scores = score_treelets(self, trees, span_of(starts), transform, threads);
            }
            return scores_of(std::move(scores));
          },
          nb::arg("trees"), nb::arg("starts"), nb::kw_only(), nb::arg("transform"), nb::arg("threads"))
      .def(
          "score_each",
          [](const TreeletModel& self, const nb::list& batches, bool transform, std::size_t threads) {
            return score_each(batches, threads, [&](const PackedTrees& trees, std::span<const std::uint64_t> starts) {
              return score_treelets(self, trees, starts, transform, 1);
            });
          },
          nb::arg("batches"), nb::kw_only(), nb::arg("transform"), nb::arg("threads"));
}

void bind_sampler(nb::module_& module) {
  nb::class_<TreeletSampler>(module, "TreeletSampler")
      .def(
          "__init__",
          [](TreeletSampler* self, std::shared_ptr<TreeletModel> model, const Array<bool>& is_tag) {
            std::vector<std::uint8_t> tags = flags(is_tag);
            const Unlocked unlocked;
            new (self) TreeletSampler(std::move(model), std::move(tags));
          },
          nb::arg("model"), nb::arg("is_tag"))
      .def(
          "draw",
          [](const TreeletSampler& self, std::uint64_t seed, std::uint64_t first, std::size_t count,
             std::size_t max_words, std::size_t max_depth, std::size_t threads) {
            check_threads(threads);
            SampledTrees drawn;
            {
              const Unlocked unlocked;
              drawn = self.draw(seed, first, count, max_words, max_depth, threads);
            }
            return nb::make_tuple(nb::cast(std::move(drawn.trees)), give(std::move(drawn.outcome)),
                                  give(std::move(drawn.log_probability)));
          },
          nb::arg("seed"), nb::arg("first"), nb::arg("count"), nb::kw_only(), nb::arg("max_words"),
          nb::arg("max_depth"), nb::arg("threads"));
}

}  // namespace

void bind_treelet(nb::module_& module) {
  bind_yield_model(module);
  bind_yield_sampler(module);
  bind_model(module);
  bind_sampler(module);
}

}  // namespace treelm::bindings
