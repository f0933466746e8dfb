#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "bindings/chart/tree_lists.h"
#include "chart/coarse_to_fine.h"
#include "chart/tree_list_text.h"

namespace treelm::bindings {

namespace {

// Status and log probability of all sentences, and their lists.
nb::tuple parse_k_best(const ChartParser& parser, const Array<std::uint32_t>& words, const Array<std::uint64_t>& starts,
                       double beam, double edges, std::vector<double> thresholds, Decoding decoding,
                       std::uint32_t max_unary, const Array<std::uint32_t>& visible_start,
                       const Array<std::uint32_t>& visible_label, std::uint32_t k, std::uint64_t k_max_pops,
                       std::uint64_t work_limit, std::size_t threads) {
  check_threads(threads);
  if (k < 1) throw Error(ErrorCode::argument, "a list needs at least one tree");
  ParserOptions options{std::move(thresholds), beam, edges, decoding, std::min(max_unary, 1000u), {}};
  options.limits.work = work_limit;
  options.k = k;
  options.k_max_pops = k_max_pops;
  options.visible = {copy(visible_start), copy(visible_label)};
  check_visible_labels(options.visible, parser.symbols(), parser.phrasal());
  std::vector<std::uint8_t> status;
  std::vector<double> log_prob;
  JoinedLists joined;
  {
    const Unlocked unlocked;
    std::vector<Parse> parses = parser.parse_all(span_of(words), span_of(starts), options, threads);
    std::size_t nodes = 0;
    for (const Parse& parse : parses) nodes += parse.list.label.size();
    joined.label.reserve(nodes);
    joined.size.reserve(nodes);
    for (Parse& parse : parses) {
      status.push_back(static_cast<std::uint8_t>(parse.status));
      log_prob.push_back(parse.log_prob);
      joined.add(parse.list);
    }
  }
  return nb::make_tuple(give(std::move(status)), give(std::move(log_prob)), joined.give_all());
}

nb::bytes text_of_lists(const std::vector<std::string_view>& labels, const std::vector<std::string_view>& words,
                        const Array<std::uint64_t>& word_start, const Array<std::uint64_t>& list_start,
                        const Array<double>& score, const Array<std::uint64_t>& tree_start,
                        const Array<std::uint32_t>& label, const Array<std::uint32_t>& size, bool scores) {
  const TreeLists lists{span_of(label), span_of(size), span_of(tree_start), span_of(score), span_of(list_start),
                        labels,         words,         span_of(word_start)};
  std::string text;
  {
    const Unlocked unlocked;
    check_tree_lists(lists, lists.labels.size(), lists.words.size());
    text = write_tree_lists(lists, scores);
  }
  return nb::bytes(text.data(), text.size());
}

void check_lists(std::size_t labels, const Array<std::uint64_t>& word_start, const Array<std::uint64_t>& list_start,
                 const Array<double>& score, const Array<std::uint64_t>& tree_start, const Array<std::uint32_t>& label,
                 const Array<std::uint32_t>& size) {
  const Unlocked unlocked;
  const std::size_t words = word_start.size() > 0 ? span_of(word_start).back() : 0;
  check_tree_lists({span_of(label),
                    span_of(size),
                    span_of(tree_start),
                    span_of(score),
                    span_of(list_start),
                    {},
                    {},
                    span_of(word_start)},
                   labels, words);
}

}  // namespace

void bind_k_best(nb::module_& module) {
  module.def("parse_k_best", &parse_k_best, nb::arg("parser"), nb::arg("words"), nb::arg("starts"), nb::kw_only(),
             nb::arg("beam"), nb::arg("edges"), nb::arg("thresholds"), nb::arg("decoding"), nb::arg("max_unary"),
             nb::arg("visible_start"), nb::arg("visible_label"), nb::arg("k"), nb::arg("k_max_pops"),
             nb::arg("work_limit"), nb::arg("threads"));
  module.def("check_tree_lists", &check_lists, nb::kw_only(), nb::arg("labels"), nb::arg("word_start"),
             nb::arg("list_start"), nb::arg("score"), nb::arg("tree_start"), nb::arg("label"), nb::arg("size"));
  module.def("write_tree_lists", &text_of_lists, nb::kw_only(), nb::arg("labels"), nb::arg("words"),
             nb::arg("word_start"), nb::arg("list_start"), nb::arg("score"), nb::arg("tree_start"), nb::arg("label"),
             nb::arg("size"), nb::arg("scores"));
}

}  // namespace treelm::bindings
