#include "trees/binary_trees.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"

namespace treelm::bindings {

void bind_binary_trees(nb::module_& module) {
  nb::class_<BinaryTrees>(module, "BinaryTrees")
      .def("__len__", [](const BinaryTrees& self) { return self.start.size() - 1; })
      .def_ro("symbols", &BinaryTrees::symbols)
      .def_ro("phrasal", &BinaryTrees::phrasal)
      .def_ro("words", &BinaryTrees::words)
      .def_ro("cycles", &BinaryTrees::cycles)
      .def_ro("bad_roots", &BinaryTrees::bad_roots)
      .def_prop_ro("node_symbol",
                   [](nb::handle_t<BinaryTrees> self) { return view(nb::cast<BinaryTrees&>(self).symbol, self); })
      .def_prop_ro("node_left",
                   [](nb::handle_t<BinaryTrees> self) { return view(nb::cast<BinaryTrees&>(self).left, self); })
      .def_prop_ro("node_right",
                   [](nb::handle_t<BinaryTrees> self) { return view(nb::cast<BinaryTrees&>(self).right, self); })
      .def_prop_ro("node_word",
                   [](nb::handle_t<BinaryTrees> self) { return view(nb::cast<BinaryTrees&>(self).word, self); })
      .def_prop_ro("tree_source",
                   [](nb::handle_t<BinaryTrees> self) { return view(nb::cast<BinaryTrees&>(self).source, self); })
      .def_prop_ro("tree_start",
                   [](nb::handle_t<BinaryTrees> self) { return view(nb::cast<BinaryTrees&>(self).start, self); });

  nb::class_<BinaryTreeBuilder>(module, "BinaryTreeBuilder")
      .def(
          "__init__",
          [](BinaryTreeBuilder* self, bool left_branching, bool keep_cycles) {
            new (self) BinaryTreeBuilder(left_branching ? Branching::left : Branching::right, keep_cycles);
          },
          nb::kw_only(), nb::arg("left_branching"), nb::arg("keep_cycles") = false)
      .def(
          "add",
          [](BinaryTreeBuilder& self, const PackedTrees& trees) {
            const Unlocked unlocked;
            self.add(trees);
          },
          nb::arg("trees"))
      .def("finish", [](BinaryTreeBuilder& self) {
        const Unlocked unlocked;
        return self.finish();
      });
}

}  // namespace treelm::bindings
