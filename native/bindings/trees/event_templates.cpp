#include "trees/event_templates.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings/bindings.h"
#include "bindings/trees/events.h"

namespace treelm::bindings {

namespace {

nb::list extract(EventExtractor& self, const PackedTrees& trees) {
  std::vector<std::vector<std::uint32_t>> rows(self.templates().size());
  {
    const Unlocked unlocked;
    self.extract(trees, rows);
  }
  nb::list result;
  for (std::size_t t = 0; t < rows.size(); ++t)
    result.append(give_rows(std::move(rows[t]), self.templates()[t].columns.size()));
  return result;
}

}  // namespace

void bind_event_templates(nb::module_& module) {
  nb::enum_<Site>(module, "EventSite")
      .value("WORD", Site::word)
      .value("TAG", Site::tag)
      .value("PHRASE", Site::phrase)
      .value("CHILD", Site::child);
  nb::enum_<Attribute>(module, "EventAttribute")
      .value("WORD", Attribute::word)
      .value("SYMBOL", Attribute::symbol)
      .value("LABEL", Attribute::label)
      .value("PARENT", Attribute::parent)
      .value("GRANDPARENT", Attribute::grandparent)
      .value("LEFT", Attribute::left)
      .value("RIGHT", Attribute::right)
      .value("YIELD", Attribute::yield)
      .value("RULE", Attribute::rule)
      .value("PARENT_RULE", Attribute::parent_rule);
  nb::class_<EventTemplate>(module, "EventTemplate")
      .def(
          "__init__",
          [](EventTemplate* self, Site site, const std::vector<std::pair<Attribute, std::uint32_t>>& columns) {
            EventTemplate made{site, {}};
            for (const auto& [attribute, back] : columns) made.columns.push_back({attribute, back});
            check_template(made);
            new (self) EventTemplate(std::move(made));
          },
          nb::arg("site"), nb::arg("columns"));
  nb::class_<EventExtractor>(module, "EventExtractor")
      .def(
          "__init__",
          [](EventExtractor* self, const std::vector<EventTemplate>& templates, std::shared_ptr<WordEncoder> encoder,
             bool training, const std::vector<std::string>& marked_tags) {
            new (self) EventExtractor(templates, std::move(encoder), training, marked_tags);
          },
          nb::arg("templates"), nb::arg("encoder").none(), nb::kw_only(), nb::arg("training"), nb::arg("marked_tags"))
      .def("extract", &extract, nb::arg("trees"))
      .def(
          "count",
          [](EventExtractor& self, const nb::list& batches, const nb::list& counters, std::size_t threads) {
            std::vector<std::size_t> columns;
            for (const EventTemplate& each : self.templates()) columns.push_back(each.columns.size());
            check_counters(counters, columns);
            count_rows(self, batches, counters, threads);
          },
          nb::arg("batches"), nb::arg("counters"), nb::kw_only(), nb::arg("threads"))
      .def_prop_ro("label_bases",
                   [](const EventExtractor& self) {
                     nb::list result;
                     for (const std::string& base : self.label_bases())
                       result.append(nb::str(base.data(), base.size()));
                     return result;
                   })
      .def_prop_ro("labels", [](const EventExtractor& self) { return strings(self.labels()); })
      .def_prop_ro("words", [](const EventExtractor& self) { return strings(self.words()); })
      .def_prop_ro("yields",
                   [](const EventExtractor& self) {
                     return nb::make_tuple(give(std::vector(self.yields().data())),
                                           give(std::vector(self.yields().starts())));
                   })
      .def_prop_ro(
          "rules",
          [](const EventExtractor& self) {
            // Rule 0 has no parts: it stands above a root.
            std::vector<std::uint32_t> parts{none, none};
            parts.insert(parts.end(), self.rules().data().begin(), self.rules().data().end());
            return give_rows(std::move(parts), 2);
          },
          nb::rv_policy::move)
      .def_prop_ro("word_count", &EventExtractor::word_count)
      .def_prop_ro("sentence_end", &EventExtractor::sentence_end)
      .def_prop_ro("sentence_start", &EventExtractor::sentence_start)
      .def_prop_ro("sentences", &EventExtractor::sentences)
      .def_prop_ro("tokens", &EventExtractor::tokens);
}

}  // namespace treelm::bindings
