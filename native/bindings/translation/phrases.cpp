#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings/bindings.h"
#include "translation/alignment.h"
#include "translation/extraction.h"
#include "translation/phrase_lines.h"

namespace treelm::bindings {

namespace {

using Ids = Array<std::uint32_t>;
using Places = Array<std::uint64_t>;
using Progress = std::optional<nb::callable>;

Links links_of(const Ids& places, const Places& starts, const Places& source_starts, const Places& target_starts) {
  // The words themselves do not matter here, only how many there are.
  const std::vector<std::uint32_t> source(source_starts.size() == 0 ? 0
                                                                    : source_starts.data()[source_starts.size() - 1]),
      target(target_starts.size() == 0 ? 0 : target_starts.data()[target_starts.size() - 1]);
  check_aligned_text(
      {source, target, span_of(source_starts), span_of(target_starts), span_of(places), span_of(starts)});
  return {copy(places), copy(starts)};
}

nb::tuple symmetrize(const Places& source_starts, const Places& target_starts, const Ids& forward,
                     const Places& forward_starts, const Ids& backward, const Places& backward_starts) {
  Links found;
  {
    const Unlocked unlocked;
    found = grow_diag_final_and(span_of(source_starts), span_of(target_starts),
                                links_of(forward, forward_starts, source_starts, target_starts),
                                links_of(backward, backward_starts, source_starts, target_starts));
  }
  return nb::make_tuple(give(std::move(found.places)), give(std::move(found.starts)));
}

// Phrase pairs with the words that their ids stand for.
struct NamedPairs {
  std::vector<std::string> source_words, target_words;
  PhrasePairs pairs;
  std::unique_ptr<PhraseLines> lines;
};

void check_words(std::span<const std::uint32_t> ids, const std::vector<std::string>& words) {
  for (const std::uint32_t id : ids)
    if (id >= words.size()) throw Error(ErrorCode::argument, "a word's id has no spelling");
}

void extract(NamedPairs* self, std::vector<std::string> source_words, const Ids& source, const Places& source_starts,
             std::vector<std::string> target_words, const Ids& target, const Places& target_starts, const Ids& links,
             const Places& link_starts, std::size_t longest, std::uint32_t min_count, const Progress& progress) {
  if (longest < 1) throw Error(ErrorCode::argument, "a phrase has at least one word");
  const AlignedText text{span_of(source),        span_of(target), span_of(source_starts),
                         span_of(target_starts), span_of(links),  span_of(link_starts)};
  const Unlocked unlocked;
  check_aligned_text(text);
  check_words(text.source, source_words);
  check_words(text.target, target_words);
  auto made = std::make_unique<NamedPairs>();
  made->source_words = std::move(source_words);
  made->target_words = std::move(target_words);
  made->pairs = extract_phrases(text, longest, interruptible(progress));
  new (self) NamedPairs(std::move(*made));
  try {
    self->lines = std::make_unique<PhraseLines>(self->pairs, self->source_words, self->target_words, min_count);
  } catch (...) {
    self->~NamedPairs();
    throw;
  }
}

using Write = std::string (PhraseLines::*)(std::size_t, std::size_t) const;

nb::bytes written(const NamedPairs& self, Write write, std::size_t first, std::size_t last) {
  if (first > last || last > self.lines->size()) throw Error(ErrorCode::argument, "there are no such lines");
  std::string text;
  {
    const Unlocked unlocked;
    text = ((*self.lines).*write)(first, last);
  }
  return nb::bytes(text.data(), text.size());
}

}  // namespace

void bind_phrases(nb::module_& module) {
  module.def("symmetrize_links", &symmetrize, nb::arg("source_starts"), nb::arg("target_starts"), nb::arg("forward"),
             nb::arg("forward_starts"), nb::arg("backward"), nb::arg("backward_starts"));
  nb::class_<NamedPairs>(module, "PhrasePairs")
      .def("__init__", &extract, nb::arg("source_words"), nb::arg("source"), nb::arg("source_starts"),
           nb::arg("target_words"), nb::arg("target"), nb::arg("target_starts"), nb::arg("links"),
           nb::arg("link_starts"), nb::kw_only(), nb::arg("longest"), nb::arg("min_count"),
           nb::arg("progress").none() = nb::none())
      .def("__len__", [](const NamedPairs& self) { return self.lines->size(); })
      .def(
          "table_lines",
          [](const NamedPairs& self, std::size_t first, std::size_t last) {
            return written(self, &PhraseLines::phrase_table, first, last);
          },
          nb::arg("first"), nb::arg("last"))
      .def(
          "reordering_lines",
          [](const NamedPairs& self, std::size_t first, std::size_t last) {
            return written(self, &PhraseLines::reordering, first, last);
          },
          nb::arg("first"), nb::arg("last"));
}

}  // namespace treelm::bindings
