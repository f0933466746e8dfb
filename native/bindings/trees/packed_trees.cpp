#include "trees/packed_trees.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

#include "bindings/bindings.h"
#include "text/encoder.h"
#include "trees/worker.h"

namespace treelm::bindings {

namespace {

using Parts = std::tuple<std::string, std::optional<std::string>, bool, std::optional<std::string>>;

nb::str text(std::string_view view) { return nb::str(view.data(), view.size()); }

nb::list label_parts(const PackedTrees& trees) {
  const auto part = [&](std::uint32_t id) -> nb::object {
    if (id == none) return nb::none();
    return text(trees.atoms[id]);
  };
  nb::list result;
  for (const LabelParts& parts : trees.labels)
    result.append(nb::make_tuple(part(parts.base), part(parts.head), parts.gap != 0, part(parts.parent)));
  return result;
}

nb::list words(const PackedTrees& trees) {
  nb::list result;
  for (std::size_t i = 0; i < trees.words.size(); ++i) result.append(text(trees.words[i]));
  return result;
}

// The first problems: (code, tree, line, column, excerpt); the excerpt may be any bytes.
nb::list problems(const PackedTrees& trees) {
  nb::list result;
  for (const TreeProblem& problem : trees.problems) {
    const std::string_view code = code_name(problem.code);
    result.append(nb::make_tuple(text(code), problem.tree, problem.line, problem.column,
                                 nb::bytes(problem.excerpt.data(), problem.excerpt.size())));
  }
  return result;
}

void build(PackedTrees* self, const std::vector<Parts>& labels, const std::vector<std::string>& words,
           const Array<std::uint32_t>& label, const Array<std::uint32_t>& size, const Array<std::uint32_t>& word,
           const Array<std::uint32_t>& start) {
  PackedTrees made;  // checked before it is placed: what throws must leave nothing behind
  Symbols atoms;
  for (const auto& [base, head, gap, parent] : labels) {
    const auto id = [&](const std::optional<std::string>& part) { return part ? atoms.intern(*part) : none; };
    made.labels.push_back({atoms.intern(base), id(head), id(parent), gap ? 1u : 0u});
  }
  made.atoms = StringTable(atoms);
  for (const std::string& item : words) made.words.push_back(item);
  made.label = copy(label);
  made.size = copy(size);
  made.word = copy(word);
  made.start = copy(start);
  check_packed(made);
  for (const std::uint32_t id : made.word) made.tokens += id == none ? 0 : 1;
  new (self) PackedTrees(std::move(made));
}

void bind_trees(nb::module_& module) {
  nb::class_<PackedTrees>(module, "PackedTrees")
      .def("__init__", &build, nb::arg("labels"), nb::arg("words"), nb::arg("node_label"), nb::arg("node_size"),
           nb::arg("node_word"), nb::arg("tree_start"))
      .def("__len__", &PackedTrees::tree_count)
      .def_prop_ro("labels", &label_parts)
      .def_prop_ro("words", &words)
      .def_prop_ro("problems", &problems)
      .def_prop_ro("problem_count", [](const PackedTrees& self) { return self.problems.count(); })
      .def_prop_ro("stray_count", [](const PackedTrees& self) { return self.problems.between(); })
      .def_ro("token_count", &PackedTrees::tokens)
      .def_ro("dropped", &PackedTrees::dropped)
      .def_ro("many_rooted", &PackedTrees::many_rooted)
      .def_prop_ro("node_label",
                   [](nb::handle_t<PackedTrees> self) { return view(nb::cast<PackedTrees&>(self).label, self); })
      .def_prop_ro("node_size",
                   [](nb::handle_t<PackedTrees> self) { return view(nb::cast<PackedTrees&>(self).size, self); })
      .def_prop_ro("node_word",
                   [](nb::handle_t<PackedTrees> self) { return view(nb::cast<PackedTrees&>(self).word, self); })
      .def_prop_ro("tree_start",
                   [](nb::handle_t<PackedTrees> self) { return view(nb::cast<PackedTrees&>(self).start, self); })
      .def_prop_ro("ordinal",
                   [](nb::handle_t<PackedTrees> self) { return view(nb::cast<PackedTrees&>(self).ordinal, self); })
      .def_prop_ro("line", [](nb::handle_t<PackedTrees> self) { return view(nb::cast<PackedTrees&>(self).line, self); })
      .def("to_brackets",
           [](const PackedTrees& self) {
             std::string out;
             {
               const Unlocked unlocked;
               out = write_brackets(self);
             }
             return nb::bytes(out.data(), out.size());
           })
      .def(
          "find_heads",
          [](const PackedTrees& self, const Profile& profile) {
            return give(released([&] { return find_heads(self, profile); }));
          },
          nb::arg("profile"))
      .def(
          "encode_words",
          [](const PackedTrees& self, TextEncoder& encoder) {
            const Unlocked unlocked;
            const std::scoped_lock lock(encoder.mutex());
            encode_words(self, encoder);
          },
          nb::arg("encoder"));
}

void bind_recipe(nb::module_& module) {
  nb::class_<TreeRecipe>(module, "TreeRecipe")
      .def(
          "__init__",
          [](TreeRecipe* self, std::shared_ptr<Profile> profile, bool strip, bool simplify, bool unescape, bool respell,
             bool normalize_root, std::uint32_t max_depth, std::uint32_t treelet, bool lowest_verb_label,
             const std::vector<std::string>& temporal_words) {
            TreeRecipe made;
            made.profile = std::move(profile);
            made.strip = strip;
            made.simplify = simplify;
            made.unescape = unescape;
            made.respell = respell;
            made.normalize_root = normalize_root;
            made.max_depth = max_depth;
            made.treelet = treelet & 0x1FFu;
            made.lowest_verb_label = lowest_verb_label;
            for (const std::string& word : temporal_words) made.temporal_words.intern(word);
            new (self) TreeRecipe(std::move(made));
          },
          nb::arg("profile"), nb::kw_only(), nb::arg("strip"), nb::arg("simplify"), nb::arg("unescape"),
          nb::arg("respell"), nb::arg("normalize_root"), nb::arg("max_depth"), nb::arg("treelet"),
          nb::arg("lowest_verb_label"), nb::arg("temporal_words"))
      .def(
          "apply",
          [](std::shared_ptr<TreeRecipe> self, const PackedTrees& trees) {
            const Unlocked unlocked;
            return TreeWorker(std::move(self)).process(trees);
          },
          nb::arg("trees"))
      .def(
          "count_temporal_heads",
          [](std::shared_ptr<TreeRecipe> self, const PackedTrees& trees) {
            std::vector<TreeWorker::TemporalCount> counts;
            {
              const Unlocked unlocked;
              counts = TreeWorker(std::move(self)).count_temporal_heads(trees);
            }
            nb::list result;
            for (const auto& count : counts)
              result.append(nb::make_tuple(text(count.word), count.temporal, count.total));
            return result;
          },
          nb::arg("trees"));
}

}  // namespace

void bind_packed_trees(nb::module_& module) {
  bind_trees(module);
  bind_recipe(module);
}

}  // namespace treelm::bindings
