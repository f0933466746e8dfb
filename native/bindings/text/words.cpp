#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "base/number_text.h"
#include "base/random.h"
#include "bindings/bindings.h"
#include "text/line_hashes.h"
#include "text/signature.h"
#include "text/unicode.h"

namespace treelm::bindings {

void bind_words(nb::module_& module) {
  nb::class_<SignatureRules>(module, "SignatureRules")
      .def(
          "__init__",
          [](SignatureRules* self, std::vector<std::string> suffixes, std::string plural, std::string plural_blocked,
             bool lower_case_mark, bool last_character) {
            new (self) SignatureRules{std::move(suffixes), std::move(plural), std::move(plural_blocked),
                                      lower_case_mark, last_character};
          },
          nb::kw_only(), nb::arg("suffixes"), nb::arg("plural"), nb::arg("plural_blocked"), nb::arg("lower_case_mark"),
          nb::arg("last_character"))
      .def(
          "signature",
          [](const SignatureRules& self, std::string_view word, std::uint64_t position, bool known_lower) {
            return signature(self, word, position, known_lower);
          },
          nb::arg("word"), nb::arg("position"), nb::kw_only(), nb::arg("known_lower"));
  module.def(
      "lower_case",
      [](std::string_view text) {
        std::string out;
        lower_case(text, out);
        return out;
      },
      nb::arg("text"));
  module.def(
      "line_hashes",
      [](const nb::bytes& text, std::size_t least_words) {
        std::vector<std::uint64_t> hashes;
        {
          const std::string_view lines(text.c_str(), text.size());
          const Unlocked unlocked;
          hashes = line_hashes(lines, least_words);
        }
        return give(std::move(hashes));
      },
      nb::arg("text"), nb::kw_only(), nb::arg("least_words"));
  module.def(
      "numbers_text", [](const Array<double>& values) { return numbers_text(span_of(values), '\n'); },
      nb::arg("values"));
  module.def("random_bits", &random_bits, nb::arg("seed"), nb::arg("stream"), nb::arg("counter"));
  module.def("random_uniform", &random_uniform, nb::arg("seed"), nb::arg("stream"), nb::arg("counter"));
}

}  // namespace treelm::bindings
