#include "trees/tree_ranker.h"

#include <nanobind/stl/string.h>

#include <string>

#include "bindings/bindings.h"
#include "trees/rank_features.h"
#include "trees/worker.h"

namespace treelm::bindings {

namespace {

// The features of trees: where those of each begin, and the hashes of all.
nb::tuple find_features(const PackedTrees& trees, const Profile& profile) {
  std::vector<std::uint64_t> starts{0}, hashes;
  {
    const Unlocked unlocked;
    const std::vector<std::uint32_t> heads = find_heads(trees, profile);
    RankFeatures features(trees, heads);
    std::vector<std::uint64_t> found;
    for (std::size_t tree = 0; tree < trees.tree_count(); ++tree) {
      features.find(tree, found);
      hashes.insert(hashes.end(), found.begin(), found.end());
      starts.push_back(hashes.size());
    }
  }
  return nb::make_tuple(give(std::move(starts)), give(std::move(hashes)));
}

nb::tuple loss(const RankingLists& self, const Array<double>& weights, std::size_t threads) {
  check_threads(threads);
  std::vector<double> gradient;
  const double value = released([&] { return self.loss(span_of(weights), gradient, threads); });
  return nb::make_tuple(value, give(std::move(gradient)));
}

}  // namespace

void bind_tree_ranker(nb::module_& module) {
  module.def("rank_feature_hash", [](const std::string& name) { return RankFeatures::hash(name); }, nb::arg("name"));
  module.def("rank_features", &find_features, nb::arg("trees"), nb::arg("profile"));
  nb::class_<TreeRanker>(module, "TreeRanker")
      .def(
          "__init__",
          [](TreeRanker* self, const Array<std::uint64_t>& features, const Array<float>& weights) {
            new (self) TreeRanker(copy(features), copy(weights));
          },
          nb::arg("features"), nb::arg("weights"))
      .def("weight", &TreeRanker::weight, nb::arg("feature"))
      .def(
          "score",
          [](const TreeRanker& self, const PackedTrees& trees, const Profile& profile, std::size_t threads) {
            check_threads(threads);
            return give(released([&] { return self.score(trees, profile, threads); }));
          },
          nb::arg("trees"), nb::arg("profile"), nb::kw_only(), nb::arg("threads"));
  nb::class_<RankingLists>(module, "RankingLists")
      .def(nb::init<>())
      .def("__len__", &RankingLists::size)
      .def_prop_ro("tree_count", &RankingLists::tree_count)
      .def(
          "add",
          [](RankingLists& self, const PackedTrees& trees, const Profile& profile, const Array<std::uint64_t>& starts,
             const Array<double>& scores, const Array<std::uint8_t>& best, std::size_t threads) {
            check_threads(threads);
            const Unlocked unlocked;
            self.add(trees, profile, span_of(starts), span_of(scores), span_of(best), threads);
          },
          nb::arg("trees"), nb::arg("profile"), nb::kw_only(), nb::arg("starts"), nb::arg("scores"), nb::arg("best"),
          nb::arg("threads"))
      .def(
          "frequent", [](const RankingLists& self, std::uint32_t least) { return give(self.frequent(least)); },
          nb::arg("least"))
      .def(
          "keep", [](RankingLists& self, const Array<std::uint64_t>& features) { self.keep(span_of(features)); },
          nb::arg("features"))
      .def("loss", &loss, nb::arg("weights"), nb::kw_only(), nb::arg("threads"))
      .def(
          "fit",
          [](const RankingLists& self, const Array<double>& weights, double regularization, std::size_t iterations,
             std::size_t threads) {
            check_threads(threads);
            std::vector<double> start = copy(weights);
            return give(released([&] { return self.fit(std::move(start), regularization, iterations, threads); }));
          },
          nb::arg("weights"), nb::kw_only(), nb::arg("regularization"), nb::arg("iterations"), nb::arg("threads"))
      .def(
          "choose",
          [](const RankingLists& self, const Array<double>& weights) {
            return give(released([&] { return self.choose(span_of(weights)); }));
          },
          nb::arg("weights"));
}

}  // namespace treelm::bindings
