#include "chart/packed_forest.h"

#include <nanobind/stl/vector.h>

#include <limits>
#include <numeric>

#include "base/starts.h"
#include "base/thread_pool.h"
#include "bindings/bindings.h"
#include "bindings/chart/handles.h"
#include "bindings/chart/tree_lists.h"
#include "chart/coarse_to_fine.h"

namespace treelm::bindings {

namespace {

// Forests of several sentences one behind the other; edges name nodes of their own sentence.
struct ForestArrays {
  Array<std::uint64_t> word_start, node_start, edge_start;
  Array<std::uint32_t> symbol, first, last;
  Array<double> expected;
  Array<std::uint32_t> head, left, right;
  Array<float> weight;

  std::size_t sentences() const { return word_start.size() - 1; }

  // Sentences without words have no forest.
  PackedForest at(std::size_t sentence) const {
    const auto nodes = [&](const auto& array) { return piece(array, node_start, sentence); };
    const auto edges = [&](const auto& array) { return piece(array, edge_start, sentence); };
    PackedForest forest;
    forest.words = static_cast<std::uint32_t>(word_start.data()[sentence + 1] - word_start.data()[sentence]);
    forest.symbol = nodes(symbol), forest.first = nodes(first), forest.last = nodes(last);
    forest.expected = nodes(expected);
    forest.head = edges(head), forest.left = edges(left), forest.right = edges(right);
    forest.weight = edges(weight);
    return forest;
  }

  void check() const {
    check_starts(word_start, std::nullopt);
    check_starts(node_start, symbol.size());
    check_starts(edge_start, head.size());
    if (node_start.size() != word_start.size() || edge_start.size() != word_start.size() ||
        first.size() != symbol.size() || last.size() != symbol.size() || expected.size() != symbol.size() ||
        left.size() != head.size() || right.size() != head.size() || weight.size() != head.size())
      throw Error(ErrorCode::argument, "packed forests: arrays differ in length");
    // Places between words are 32-bit numbers.
    for (std::size_t i = 0; i < sentences(); ++i)
      if (word_start.data()[i + 1] - word_start.data()[i] > std::numeric_limits<std::uint32_t>::max())
        throw Error(ErrorCode::argument, "packed forests: a sentence has more than 2^32 - 1 words");
  }

 private:
  template <class T>
  static std::vector<T> piece(const Array<T>& array, const Array<std::uint64_t>& starts, std::size_t i) {
    return std::vector<T>(array.data() + starts.data()[i], array.data() + starts.data()[i + 1]);
  }
  static void check_starts(const Array<std::uint64_t>& starts, std::optional<std::size_t> count) {
    const auto all = span_of(starts);
    treelm::check_starts(all, count.value_or(all.empty() ? 0 : all.back()), "packed forests: starts do not fit");
  }
};

ForestArrays forests_of(const nb::tuple& arrays) {
  if (arrays.size() != 11) throw Error(ErrorCode::argument, "packed forests: there must be eleven arrays");
  using Starts = Array<std::uint64_t>;
  using Ids = Array<std::uint32_t>;
  ForestArrays found{nb::cast<Starts>(arrays[0]),        nb::cast<Starts>(arrays[1]),       nb::cast<Starts>(arrays[2]),
                     nb::cast<Ids>(arrays[3]),           nb::cast<Ids>(arrays[4]),          nb::cast<Ids>(arrays[5]),
                     nb::cast<Array<double>>(arrays[6]), nb::cast<Ids>(arrays[7]),          nb::cast<Ids>(arrays[8]),
                     nb::cast<Ids>(arrays[9]),           nb::cast<Array<float>>(arrays[10])};
  found.check();
  return found;
}

// Status and log probability of every sentence, and the eleven arrays.
nb::tuple parse_forests(const ChartParser& parser, const Array<std::uint32_t>& words,
                        const Array<std::uint64_t>& starts, double beam, double edges, std::vector<double> thresholds,
                        std::uint32_t max_unary, double least, std::uint64_t work_limit, std::size_t threads) {
  check_threads(threads);
  ParserOptions options{std::move(thresholds), beam, edges, Decoding::max_rule_product, std::min(max_unary, 1000u), {}};
  options.limits.work = work_limit;
  options.wants_forest = true;
  options.forest_least = least;
  std::vector<std::uint8_t> status;
  std::vector<double> log_prob, expected;
  std::vector<std::uint64_t> node_start{0}, edge_start{0};
  std::vector<std::uint32_t> symbol, first, last, head, left, right;
  std::vector<float> weight;
  {
    const Unlocked unlocked;
    std::vector<Parse> parses = parser.parse_all(span_of(words), span_of(starts), options, threads);
    const auto add = [](auto& all, const auto& own) { all.insert(all.end(), own.begin(), own.end()); };
    for (Parse& parse : parses) {
      PackedForest& forest = parse.forest;
      status.push_back(static_cast<std::uint8_t>(parse.status));
      log_prob.push_back(parse.log_prob);
      add(symbol, forest.symbol), add(first, forest.first), add(last, forest.last), add(expected, forest.expected);
      add(head, forest.head), add(left, forest.left), add(right, forest.right), add(weight, forest.weight);
      node_start.push_back(symbol.size());
      edge_start.push_back(head.size());
      forest = {};
    }
  }
  return nb::make_tuple(
      give(std::move(status)), give(std::move(log_prob)),
      nb::make_tuple(starts, give(std::move(node_start)), give(std::move(edge_start)), give(std::move(symbol)),
                     give(std::move(first)), give(std::move(last)), give(std::move(expected)), give(std::move(head)),
                     give(std::move(left)), give(std::move(right)), give(std::move(weight))));
}

void check_forests(const nb::tuple& arrays, std::uint32_t symbols, std::uint32_t phrasal) {
  const ForestArrays forests = forests_of(arrays);
  const Unlocked unlocked;
  for (std::size_t i = 0; i < forests.sentences(); ++i) {
    const PackedForest forest = forests.at(i);
    if (forest.symbol.empty() && forest.head.empty()) continue;  // no tree was found, or there are no words
    check_packed_forest(forest, symbols, phrasal);
  }
}

Array<double> forest_log_probs(const nb::tuple& arrays, const GrammarHandle<double>& grammar,
                               const LexiconHandle& lexicon, const Array<std::uint32_t>& words, std::size_t threads) {
  check_threads(threads);
  const ForestArrays forests = forests_of(arrays);
  if (words.size() != span_of(forests.word_start).back())
    throw Error(ErrorCode::argument, "packed forests: the words do not fit the forests");
  std::vector<double> scores(forests.sentences());
  {
    const Unlocked unlocked;
    ThreadPool pool(threads);
    pool.map(scores.size(), [&](std::size_t i, std::size_t) {
      const PackedForest forest = forests.at(i);
      scores[i] = -std::numeric_limits<double>::infinity();
      if (forest.symbol.empty()) return;
      check_packed_forest(forest, grammar.grammar->symbols(), grammar.grammar->phrasal());
      const std::size_t first = forests.word_start.data()[i];
      scores[i] =
          forest_log_prob(forest, *grammar.grammar, *lexicon.lexicon, span_of(words).subspan(first, forest.words));
    });
  }
  return give(std::move(scores));
}

nb::tuple forest_k_best(const nb::tuple& arrays, std::uint32_t phrasal, const Array<std::uint32_t>& visible_start,
                        const Array<std::uint32_t>& visible_label, std::uint32_t max_unary, std::uint32_t k,
                        std::uint64_t k_max_pops, std::size_t threads) {
  check_threads(threads);
  const ForestArrays forests = forests_of(arrays);
  const VisibleLabels visible{copy(visible_start), copy(visible_label)};
  const auto symbols = static_cast<std::uint32_t>(std::max<std::size_t>(visible.start.size(), 1) - 1);
  check_visible_labels(visible, symbols, phrasal);
  JoinedLists joined;
  {
    const Unlocked unlocked;
    ThreadPool pool(threads);
    std::vector<KBestFinder> finders(std::max<std::size_t>(1, pool.size()));
    std::vector<TreeList> lists(forests.sentences());
    pool.map(lists.size(), [&](std::size_t i, std::size_t worker) {
      const PackedForest forest = forests.at(i);
      if (forest.symbol.empty()) return;
      check_packed_forest(forest, symbols, phrasal);
      for (const std::uint32_t longest : {std::min(max_unary, 1000u), std::max(max_unary, std::min(phrasal, 1000u))}) {
        StoredForest source(forest, phrasal, longest);
        finders[worker].find(source, visible, {k, longest, k_max_pops, false}, lists[i]);
        if (lists[i].trees() > 0) return;
      }
    });
    for (TreeList& list : lists) joined.add(list);
  }
  return joined.give_all();
}

}  // namespace

void bind_packed_forest(nb::module_& module) {
  module.def("parse_forests", &parse_forests, nb::arg("parser"), nb::arg("words"), nb::arg("starts"), nb::kw_only(),
             nb::arg("beam"), nb::arg("edges"), nb::arg("thresholds"), nb::arg("max_unary"), nb::arg("least"),
             nb::arg("work_limit"), nb::arg("threads"));
  module.def("check_forests", &check_forests, nb::arg("arrays"), nb::kw_only(), nb::arg("symbols"), nb::arg("phrasal"));
  module.def("forest_log_probs", &forest_log_probs, nb::arg("arrays"), nb::arg("grammar"), nb::arg("lexicon"),
             nb::arg("words"), nb::kw_only(), nb::arg("threads"));
  module.def("forest_k_best", &forest_k_best, nb::arg("arrays"), nb::kw_only(), nb::arg("phrasal"),
             nb::arg("visible_start"), nb::arg("visible_label"), nb::arg("max_unary"), nb::arg("k"),
             nb::arg("k_max_pops"), nb::arg("threads"));
}

}  // namespace treelm::bindings
