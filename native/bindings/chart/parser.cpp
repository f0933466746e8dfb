#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <tuple>

#include "bindings/bindings.h"
#include "bindings/chart/handles.h"
#include "chart/coarse_to_fine.h"
#include "chart/inside_scorer.h"
#include "chart/prefix_scorer.h"

namespace treelm::bindings {

namespace {

template <class Real>
void make_grammar(std::shared_ptr<ChartGrammar<Real>>& out, std::uint32_t phrasal, const Array<std::int32_t>& substates,
                  const Matrix<std::int32_t>& unary_rules, const Matrix<std::int32_t>& binary_rules,
                  const Array<double>& unary_weights, const Array<double>& binary_weights) {
  check_columns(unary_rules.shape(1), 2);
  check_columns(binary_rules.shape(1), 3);
  const GrammarArrays arrays{phrasal,
                             span_of(substates),
                             span_of(unary_rules),
                             span_of(binary_rules),
                             span_of(unary_weights),
                             span_of(binary_weights)};
  const Unlocked unlocked;
  out = std::make_shared<ChartGrammar<Real>>(arrays);
}

template <class Real>
void bind_grammar(nb::module_& module, const char* name) {
  using Handle = GrammarHandle<Real>;
  nb::class_<Handle>(module, name)
      .def(
          "__init__",
          [](Handle* self, std::uint32_t phrasal, const Array<std::int32_t>& substates,
             const Matrix<std::int32_t>& unary_rules, const Matrix<std::int32_t>& binary_rules,
             const Array<double>& unary_weights, const Array<double>& binary_weights) {
            Handle made;
            make_grammar(made.grammar, phrasal, substates, unary_rules, binary_rules, unary_weights, binary_weights);
            new (self) Handle(std::move(made));
          },
          nb::kw_only(), nb::arg("phrasal"), nb::arg("substates"), nb::arg("unary_rules"), nb::arg("binary_rules"),
          nb::arg("unary_weights"), nb::arg("binary_weights"));
}

// Trees in preorder without intermediate nodes: per node its symbol and its number of children.
struct FlatTrees {
  std::vector<std::uint32_t> symbol, children;
  std::vector<std::uint64_t> start{0};

  void add(const DecodedTree& tree, std::span<const std::uint8_t> intermediate) {
    const std::size_t nodes = tree.symbol.size();
    std::vector<std::uint32_t> parent(nodes, 0xFFFFFFFFu), place(nodes);
    for (std::size_t node = 0; node < nodes; ++node) {
      for (const std::uint32_t child : {tree.left[node], tree.right[node]})
        if (child != 0xFFFFFFFFu) parent[child] = static_cast<std::uint32_t>(node);
      const bool top = parent[node] == 0xFFFFFFFFu;
      if (!top && intermediate[tree.symbol[node]]) {
        place[node] = place[parent[node]];  // its children become those of the node above
        continue;
      }
      if (!top) ++children[place[parent[node]]];
      place[node] = static_cast<std::uint32_t>(symbol.size());
      symbol.push_back(tree.symbol[node]);
      children.push_back(0);
    }
    start.push_back(symbol.size());
  }
};

using LevelArguments = std::tuple<GrammarHandle<float>, LexiconHandle, std::vector<std::uint32_t>>;

nb::tuple parse_all(const ChartParser& self, const Array<std::uint32_t>& words, const Array<std::uint64_t>& starts,
                    double beam, double edges, std::vector<double> thresholds, Decoding decoding,
                    std::uint32_t max_unary, const Array<std::uint8_t>& intermediate, std::uint64_t work_limit,
                    std::size_t threads) {
  check_threads(threads);
  ParserOptions options{std::move(thresholds), beam, edges, decoding, std::min(max_unary, 1000u), {}};
  options.limits.work = work_limit;
  FlatTrees trees;
  std::vector<std::uint8_t> status;
  std::vector<double> log_prob, score;
  if (intermediate.size() != self.symbols())
    throw Error(ErrorCode::argument, "every symbol of the grammar needs one mark");
  {
    const Unlocked unlocked;
    const std::vector<Parse> parses = self.parse_all(span_of(words), span_of(starts), options, threads);
    for (const Parse& parse : parses) {
      status.push_back(static_cast<std::uint8_t>(parse.status));
      log_prob.push_back(parse.log_prob);
      score.push_back(parse.score);
      trees.add(parse.tree, span_of(intermediate));
    }
  }
  return nb::make_tuple(give(std::move(status)), give(std::move(log_prob)), give(std::move(score)),
                        give(std::move(trees.symbol)), give(std::move(trees.children)), give(std::move(trees.start)));
}

// Rows (first word, word after the last, symbol, subcategory) of a chart without pruning, the inside
// logarithm and the expected number of each.
nb::tuple chart_items(const InsideScorer& self, const Array<std::uint32_t>& words) {
  std::vector<std::uint32_t> rows;
  std::vector<double> inside, expected;
  double log_prob = 0;
  {
    const Unlocked unlocked;
    InsideScorer::Workspace workspace;
    log_prob = self.fill(span_of(words), {}, workspace);
    self.list_items(workspace, rows, inside, expected);
  }
  return nb::make_tuple(log_prob, give_rows(std::move(rows), 4), give(std::move(inside)), give(std::move(expected)));
}

// The scores of many sentences, one after the other.
template <class Scorer>
auto score_all(const Scorer& self, const Array<std::uint32_t>& words, const Array<std::uint64_t>& starts,
               std::uint64_t work_limit, std::size_t threads) {
  check_threads(threads);
  ChartLimits limits;
  limits.work = work_limit;
  return give(released([&] { return self.score_all(span_of(words), span_of(starts), limits, threads); }));
}

void bind_lexicon(nb::module_& module) {
  nb::class_<LexiconHandle>(module, "ChartLexicon")
      .def(
          "__init__",
          [](LexiconHandle* self, std::uint32_t phrasal, const Array<std::int32_t>& substates,
             const Array<std::int64_t>& entry_starts, const Array<std::int32_t>& entry_symbols,
             const Array<double>& entry_scores, const Array<double>& openness, const Array<double>& open_scores) {
            LexiconHandle made;
            made.lexicon = std::make_shared<ChartLexicon>(
                LexiconArrays{phrasal, span_of(substates), span_of(entry_starts), span_of(entry_symbols),
                              span_of(entry_scores), span_of(openness), span_of(open_scores)});
            new (self) LexiconHandle(std::move(made));
          },
          nb::kw_only(), nb::arg("phrasal"), nb::arg("substates"), nb::arg("entry_starts"), nb::arg("entry_symbols"),
          nb::arg("entry_scores"), nb::arg("openness"), nb::arg("open_scores"));
}

void bind_parser(nb::module_& module) {
  nb::class_<ChartParser>(module, "ChartParser")
      .def(
          "__init__",
          [](ChartParser* self, const std::vector<LevelArguments>& levels) {
            std::vector<ParserLevel> made;
            for (const auto& [grammar, lexicon, parent] : levels)
              made.push_back({grammar.grammar, lexicon.lexicon, parent});
            new (self) ChartParser(std::move(made));
          },
          nb::arg("levels"))
      .def("parse", &parse_all, nb::arg("words"), nb::arg("starts"), nb::kw_only(), nb::arg("beam"), nb::arg("edges"),
           nb::arg("thresholds"), nb::arg("decoding"), nb::arg("max_unary"), nb::arg("intermediate"),
           nb::arg("work_limit"), nb::arg("threads"));
}

void bind_inside_scorer(nb::module_& module) {
  nb::class_<InsideScorer>(module, "InsideScorer")
      .def(
          "__init__",
          [](InsideScorer* self, const GrammarHandle<double>& grammar, const LexiconHandle& lexicon,
             const std::optional<GrammarHandle<double>>& plain, const std::optional<LexiconHandle>& plain_lexicon) {
            new (self) InsideScorer(grammar.grammar, lexicon.lexicon, plain ? plain->grammar : nullptr,
                                    plain_lexicon ? plain_lexicon->lexicon : nullptr);
          },
          nb::arg("grammar"), nb::arg("lexicon"), nb::arg("plain").none(), nb::arg("plain_lexicon").none())
      .def("score", &score_all<InsideScorer>, nb::arg("words"), nb::arg("starts"), nb::kw_only(), nb::arg("work_limit"),
           nb::arg("threads"))
      .def("items", &chart_items, nb::arg("words"));
}

void bind_prefix_chart(nb::module_& module) {
  nb::class_<PrefixChart>(module, "PrefixChart")
      .def("__len__", &PrefixChart::words)
      .def_prop_ro("log_prefix", &PrefixChart::log_prefix)
      .def_prop_ro("log_whole", &PrefixChart::log_whole)
      .def_prop_ro("bytes", &PrefixChart::bytes);
}

void bind_prefix_scorer(nb::module_& module) {
  nb::class_<PrefixScorer>(module, "PrefixScorer")
      .def(
          "__init__",
          [](PrefixScorer* self, const GrammarHandle<double>& grammar, const LexiconHandle& lexicon) {
            new (self) PrefixScorer(grammar.grammar, lexicon.lexicon);
          },
          nb::arg("grammar"), nb::arg("lexicon"))
      .def("score", &score_all<PrefixScorer>, nb::arg("words"), nb::arg("starts"), nb::kw_only(), nb::arg("work_limit"),
           nb::arg("threads"))
      .def("start", [](const PrefixScorer& self) { return self.start(); })
      .def(
          "extend",
          [](const PrefixScorer& self, const PrefixChart& chart, std::uint32_t word) {
            const Unlocked unlocked;
            return self.extend(chart, word);
          },
          nb::arg("chart"), nb::arg("word"))
      .def(
          "next",
          [](const PrefixScorer& self, const PrefixChart& chart, const Array<std::uint32_t>& words) {
            return give(released([&] { return self.next(chart, span_of(words)); }));
          },
          nb::arg("chart"), nb::arg("words"));
}

}  // namespace

void bind_chart(nb::module_& module) {
  bind_grammar<float>(module, "ChartGrammar");
  bind_grammar<double>(module, "ExactGrammar");
  bind_lexicon(module);
  nb::enum_<Decoding>(module, "Decoding")
      .value("MAX_RULE_PRODUCT", Decoding::max_rule_product)
      .value("MAX_RULE_SUM", Decoding::max_rule_sum)
      .value("VARIATIONAL", Decoding::variational)
      .value("VITERBI", Decoding::viterbi)
      .value("NONE", Decoding::none);
  bind_parser(module);
  bind_inside_scorer(module);
  bind_prefix_chart(module);
  bind_prefix_scorer(module);
}

}  // namespace treelm::bindings
