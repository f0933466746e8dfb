#include "translation/phrase_table.h"

#include <nanobind/stl/shared_ptr.h>

#include "bindings/bindings.h"

namespace treelm::bindings {

namespace {

void feed(FieldLines& self, const nb::bytes& block) {
  const Unlocked unlocked;
  self.feed({block.c_str(), block.size()});
}

template <class Reader>
std::shared_ptr<PhraseTable> finish(Reader& self) {
  return released([&] { return self.finish(); });
}

}  // namespace

void bind_phrase_table(nb::module_& module) {
  nb::class_<PhraseTable>(module, "PhraseTable")
      .def_prop_ro("sources", &PhraseTable::sources)
      .def_prop_ro("score_count", &PhraseTable::score_count)
      .def_prop_ro("longest_source", &PhraseTable::longest_source)
      .def_prop_ro("has_alignments", &PhraseTable::has_alignments)
      .def_prop_ro("has_reordering", &PhraseTable::has_reordering)
      .def("__len__", &PhraseTable::rows);
  nb::class_<PhraseTableReader>(module, "PhraseTableReader")
      .def(nb::init<bool>(), nb::kw_only(), nb::arg("allow_deletion"))
      .def(
          "feed", [](PhraseTableReader& self, const nb::bytes& block) { feed(self, block); }, nb::arg("block"))
      .def("finish", &finish<PhraseTableReader>);
  nb::class_<ReorderingReader>(module, "ReorderingReader")
      .def(nb::init<const PhraseTable&>(), nb::arg("table"))
      .def(
          "feed", [](ReorderingReader& self, const nb::bytes& block) { feed(self, block); }, nb::arg("block"))
      .def("finish", &finish<ReorderingReader>)
      .def_prop_ro("unused", &ReorderingReader::unused);
}

}  // namespace treelm::bindings
