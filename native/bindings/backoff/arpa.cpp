#include "backoff/arpa.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"

namespace treelm::bindings {

void bind_arpa(nb::module_& module) {
  nb::class_<ArpaReader>(module, "ArpaReader")
      .def(nb::init<>())
      .def(
          "feed",
          [](ArpaReader& self, const nb::bytes& block) {
            const std::string_view bytes(block.c_str(), block.size());
            const Unlocked unlocked;
            self.feed(bytes);
          },
          nb::arg("block"))
      .def("finish", &ArpaReader::finish)
      .def_prop_ro("words", &ArpaReader::words)
      .def_prop_ro("order", &ArpaReader::order)
      .def_prop_ro("has_unknown", &ArpaReader::has_unknown)
      .def(
          "build",
          [](ArpaReader& self, bool double_precision, std::size_t threads) {
            check_threads(threads);
            const Unlocked unlocked;
            return self.build(double_precision, threads);
          },
          nb::kw_only(), nb::arg("double_precision"), nb::arg("threads"));
  module.def(
      "write_arpa",
      [](const BackoffTable& table, const std::vector<std::string>& words, const nb::callable& write) {
        const Unlocked unlocked;
        write_arpa(table, words, [&](std::string_view bytes) {
          const nb::gil_scoped_acquire acquire;
          hear_signals();
          write(nb::bytes(bytes.data(), bytes.size()));
        });
      },
      nb::arg("table"), nb::arg("words"), nb::arg("write"));
}

}  // namespace treelm::bindings
