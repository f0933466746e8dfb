#include "translation/phrase_table.h"

#include <nanobind/stl/shared_ptr.h>

#include <tuple>

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

using Bytes = Array<std::uint8_t>;
using Ids = Array<std::uint32_t>;
using Places = Array<std::uint64_t>;
using Points = Matrix<std::uint8_t>;
using Scores = Matrix<double>;

static_assert(sizeof(AlignmentPoint) == 2);

// The table is used where its arrays lie; they live as long as the table.
void over_arrays(PhraseTable* self, const Bytes& words, const Places& word_starts, const Ids& source_words,
                 const Places& source_starts, const Ids& target_words, const Places& target_starts,
                 const Ids& row_starts, const Ids& targets, const Scores& scores, const Places& point_starts,
                 const Points& points, const Scores& orientation, std::uint64_t longest_source, bool has_deletions) {
  if (points.shape(1) != 2 || (orientation.shape(0) != 0 && orientation.shape(1) != orientations))
    throw Error(ErrorCode::table, "the phrase table has alignments or orientations of another shape");
  using Held = std::tuple<Ids, Places, Ids, Places, Ids, Ids, Scores, Places, Points, Scores>;
  std::shared_ptr<const void> owner(new Held(source_words, source_starts, target_words, target_starts, row_starts,
                                             targets, scores, point_starts, points, orientation),
                                    [](const void* held) {
                                      const nb::gil_scoped_acquire acquire;
                                      delete static_cast<const Held*>(held);
                                    });
  const PhraseArrays arrays{
      .source_words = span_of(source_words),
      .target_words = span_of(target_words),
      .source_starts = span_of(source_starts),
      .target_starts = span_of(target_starts),
      .row_starts = span_of(row_starts),
      .targets = span_of(targets),
      .scores = span_of(scores),
      .point_starts = span_of(point_starts),
      .points = {reinterpret_cast<const AlignmentPoint*>(points.data()), points.shape(0)},
      .orientations = span_of(orientation),
      .longest_source = longest_source,
      .has_deletions = has_deletions,
      .owner = std::move(owner),
  };
  const std::string_view bytes(reinterpret_cast<const char*>(words.data()), words.size());
  new (self) PhraseTable(released([&] { return saved_words(bytes, span_of(word_starts)); }), arrays, scores.shape(1));
}

// What `over_arrays` takes, by name.
nb::dict arrays_of(nb::handle_t<PhraseTable> handle) {
  const auto& self = nb::cast<const PhraseTable&>(handle);
  const PhraseArrays& arrays = self.arrays();
  const auto column = [&](auto values) {
    using T = std::remove_const_t<typename decltype(values)::element_type>;
    return Array<T>(values.data(), {values.size()}, handle);
  };
  const auto scores = [&](std::span<const double> values, std::size_t columns) {
    return Scores(values.data(), {values.size() / columns, columns}, handle);
  };
  std::vector<std::uint8_t> words;
  std::vector<std::uint64_t> word_starts{0};
  for (std::uint32_t word = 0; word < self.words().size(); ++word) {
    const std::string_view text = self.words()[word];
    words.insert(words.end(), text.begin(), text.end());
    word_starts.push_back(words.size());
  }
  nb::dict found;
  found["words"] = give(std::move(words));
  found["word_starts"] = give(std::move(word_starts));
  found["source_words"] = column(arrays.source_words);
  found["source_starts"] = column(arrays.source_starts);
  found["target_words"] = column(arrays.target_words);
  found["target_starts"] = column(arrays.target_starts);
  found["row_starts"] = column(arrays.row_starts);
  found["targets"] = column(arrays.targets);
  found["scores"] = scores(arrays.scores, self.score_count());
  found["point_starts"] = column(arrays.point_starts);
  found["points"] =
      Points(reinterpret_cast<const std::uint8_t*>(arrays.points.data()), {arrays.points.size(), 2}, handle);
  found["orientations"] = scores(arrays.orientations, orientations);
  return found;
}

}  // namespace

void bind_phrase_table(nb::module_& module) {
  nb::class_<PhraseTable>(module, "PhraseTable")
      .def("__init__", &over_arrays, nb::kw_only(), nb::arg("words"), nb::arg("word_starts"), nb::arg("source_words"),
           nb::arg("source_starts"), nb::arg("target_words"), nb::arg("target_starts"), nb::arg("row_starts"),
           nb::arg("targets"), nb::arg("scores"), nb::arg("point_starts"), nb::arg("points"), nb::arg("orientations"),
           nb::arg("longest_source"), nb::arg("has_deletions"))
      .def("arrays", &arrays_of)
      .def_prop_ro("sources", &PhraseTable::sources)
      .def_prop_ro("score_count", &PhraseTable::score_count)
      .def_prop_ro("longest_source", &PhraseTable::longest_source)
      .def_prop_ro("has_deletions", &PhraseTable::has_deletions)
      .def_prop_ro("has_alignments", &PhraseTable::has_alignments)
      .def_prop_ro("has_reordering", &PhraseTable::has_reordering)
      .def("__len__", &PhraseTable::rows);
  nb::class_<PhraseTableReader>(module, "PhraseTableReader")
      .def(nb::init<bool>(), nb::kw_only(), nb::arg("allow_deletion"))
      .def(
          "feed", [](PhraseTableReader& self, const nb::bytes& block) { feed(self, block); }, nb::arg("block"))
      .def("finish", &finish<PhraseTableReader>);
  nb::class_<ReorderingReader>(module, "ReorderingReader")
      .def(nb::init<std::shared_ptr<PhraseTable>>(), nb::arg("table"))
      .def(
          "feed", [](ReorderingReader& self, const nb::bytes& block) { feed(self, block); }, nb::arg("block"))
      .def("finish", &finish<ReorderingReader>)
      .def_prop_ro("unused", &ReorderingReader::unused);
}

}  // namespace treelm::bindings
