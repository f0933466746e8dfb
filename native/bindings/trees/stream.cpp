#include "trees/stream.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>

#include "bindings/bindings.h"

namespace treelm::bindings {

void bind_tree_stream(nb::module_& module) {
  nb::class_<TreeBatch>(module, "TreeBatch")
      .def_prop_ro(
          "trees", [](TreeBatch& self) -> PackedTrees& { return self.trees; }, nb::rv_policy::reference_internal)
      .def_prop_ro("text", [](const TreeBatch& self) { return nb::bytes(self.text.data(), self.text.size()); })
      .def_ro("written", &TreeBatch::written);
  nb::class_<TreeStream>(module, "TreeStream")
      .def(
          "__init__",
          [](TreeStream* self, std::shared_ptr<TreeRecipe> recipe, std::size_t threads, bool as_text) {
            check_threads(threads);
            new (self) TreeStream(std::move(recipe), threads, as_text);
          },
          nb::arg("recipe"), nb::kw_only(), nb::arg("threads"), nb::arg("as_text"))
      .def(
          "feed",
          [](TreeStream& self, const nb::bytes& block, bool flush) {
            const std::string_view bytes(block.c_str(), block.size());
            const Unlocked unlocked;
            self.feed(bytes, flush);
          },
          nb::arg("block"), nb::kw_only(), nb::arg("flush"))
      .def("finish", &TreeStream::finish, nb::call_guard<Unlocked>())
      .def(
          "take",
          [](TreeStream& self, bool wait) -> std::optional<TreeBatch> {
            const Unlocked unlocked;
            return self.take(wait);
          },
          nb::kw_only(), nb::arg("wait"))
      .def_prop_ro("in_flight", &TreeStream::in_flight);
}

}  // namespace treelm::bindings
