#include "trees/profile.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings/bindings.h"

namespace treelm::bindings {

void bind_profile(nb::module_& module) {
  nb::enum_<HeadStep::Kind>(module, "HeadStepKind")
      .value("PRIORITY", HeadStep::Kind::priority)
      .value("ANY", HeadStep::Kind::any)
      .value("LAST", HeadStep::Kind::last);
  nb::class_<HeadStep>(module, "HeadStep")
      .def(
          "__init__",
          [](HeadStep* self, HeadStep::Kind kind, bool from_right, std::vector<std::string> labels) {
            new (self) HeadStep{kind, from_right, std::move(labels)};
          },
          nb::arg("kind"), nb::arg("from_right"), nb::arg("labels"));
  nb::class_<HeadRow>(module, "HeadRow")
      .def(
          "__init__",
          [](HeadRow* self, std::string parent, bool default_right, std::vector<HeadStep> steps) {
            new (self) HeadRow{std::move(parent), default_right, std::move(steps)};
          },
          nb::arg("parent"), nb::arg("default_right"), nb::arg("steps"));
  nb::class_<ProfileData>(module, "ProfileData")
      .def(nb::init<>())
      .def_rw("root_labels", &ProfileData::root_labels)
      .def_rw("empty_tags", &ProfileData::empty_tags)
      .def_rw("drop_tags", &ProfileData::drop_tags)
      .def_rw("separators", &ProfileData::separators)
      .def_rw("compounds", &ProfileData::compounds)
      .def_rw("renamed", &ProfileData::renamed)
      .def_rw("flatten", &ProfileData::flatten)
      .def_rw("spellings", &ProfileData::spellings)
      .def_rw("punctuation_tags", &ProfileData::punctuation_tags)
      .def_rw("punctuation_by_word", &ProfileData::punctuation_by_word)
      .def_rw("head_rows", &ProfileData::head_rows)
      .def_rw("default_right", &ProfileData::default_right)
      .def_rw("coordinators", &ProfileData::coordinators)
      .def_rw("coordination_skips", &ProfileData::coordination_skips)
      .def_rw("closed_tags", &ProfileData::closed_tags)
      .def_rw("closed_prefixes", &ProfileData::closed_prefixes)
      .def_rw("closed_words", &ProfileData::closed_words)
      .def_rw("bracket_words", &ProfileData::bracket_words)
      .def_rw("temporal_tags", &ProfileData::temporal_tags)
      .def_rw("temporal_phrases", &ProfileData::temporal_phrases)
      .def_rw("temporal_function", &ProfileData::temporal_function)
      .def_rw("noun_phrases", &ProfileData::noun_phrases)
      .def_rw("noun_phrase_separators", &ProfileData::noun_phrase_separators)
      .def_rw("apposition_marks", &ProfileData::apposition_marks)
      .def_rw("number_tags", &ProfileData::number_tags)
      .def_rw("clause_flattening", &ProfileData::clause_flattening)
      .def_rw("verb_phrases", &ProfileData::verb_phrases)
      .def_rw("gapped", &ProfileData::gapped)
      .def_rw("parent_annotated", &ProfileData::parent_annotated);
  nb::class_<Profile>(module, "Profile").def(nb::init<const ProfileData&>(), nb::arg("data"));
}

}  // namespace treelm::bindings
