#include "translation/envelopes.h"

#include "bindings/bindings.h"

namespace treelm::bindings {

void bind_envelopes(nb::module_& module) {
  module.def(
      "upper_envelopes",
      [](const Array<double>& offsets, const Array<double>& slopes, const Array<std::int64_t>& starts) {
        EnvelopeBends found =
            released([&] { return upper_envelopes(span_of(offsets), span_of(slopes), span_of(starts)); });
        return nb::make_tuple(give(std::move(found.first)), give(std::move(found.place)), give(std::move(found.before)),
                              give(std::move(found.after)));
      },
      nb::arg("offsets"), nb::arg("slopes"), nb::arg("starts"));
}

}  // namespace treelm::bindings
