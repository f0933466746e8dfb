#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>
#include <memory>

#include "base/thread_pool.h"
#include "base/workspace_pool.h"
#include "bindings/bindings.h"
#include "translation/n_best.h"
#include "translation/search.h"

namespace treelm::bindings {

namespace {

struct Translation {
  std::vector<TranslationEntry> entries;
  bool relaxed = false;
  SearchCut cut = SearchCut::none;
  SearchCounts counts;
  double seconds = 0;
  std::string graph;
};

struct Wishes {
  std::uint64_t first;  // number of the first sentence
  std::size_t n_best;
  bool distinct, alignments, graph;
};

class PhraseDecoder {
 public:
  explicit PhraseDecoder(SearchSetup setup) : setup_(std::make_shared<const SearchSetup>(std::move(setup))) {}

  Translation translate(const std::vector<std::string>& source, std::uint64_t number, const Wishes& wishes) {
    Translation found;
    if (source.empty()) return found;
    const auto began = std::chrono::steady_clock::now();
    auto borrowed = searches_.borrow(setup_);
    PhraseSearch& search = borrowed.work();
    search.run(source, wishes.n_best > 1 || wishes.graph);
    found.entries =
        best_translations(search, std::max<std::size_t>(1, wishes.n_best), wishes.distinct, wishes.alignments);
    if (wishes.graph) found.graph = search_graph(search, number);
    found.relaxed = search.relaxed();
    found.cut = search.cut();
    found.counts = search.counts();
    found.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return found;
  }

 private:
  std::shared_ptr<const SearchSetup> setup_;
  WorkspacePool<PhraseSearch> searches_;
};

void make_decoder(PhraseDecoder* self, std::shared_ptr<PhraseTable> table,
                  const std::vector<std::shared_ptr<SearchModel>>& models, const Array<double>& weights,
                  std::size_t stack_size, double log_threshold, std::int64_t distortion_limit, std::size_t table_limit,
                  std::size_t max_phrase_length, bool early_discard, bool cube, std::size_t pop_limit,
                  std::size_t coverage_pops, double max_seconds, std::size_t max_bytes) {
  const FeaturePlaces places(table->has_reordering(), models.size(), table->score_count());
  if (weights.size() != places.size) throw Error(ErrorCode::argument, "every feature value needs one weight");
  for (const double weight : span_of(weights))
    if (!(std::abs(weight) <= 1e100)) throw Error(ErrorCode::argument, "a weight is larger than 1e100");
  if (stack_size < 1 || table_limit < 1 || max_phrase_length < 1 || pop_limit < 1 || !(log_threshold <= 0) ||
      distortion_limit < -1 || !(max_seconds >= 0))
    throw Error(ErrorCode::argument, "a limit of the search is out of range");
  const SearchLimits limits{stack_size, log_threshold, distortion_limit, max_phrase_length, early_discard,
                            cube,       pop_limit,     coverage_pops,    max_seconds,       max_bytes};
  auto options = std::make_shared<PhraseOptions>(table, copy(weights), places, models.size(), table_limit);
  new (self) PhraseDecoder(
      SearchSetup{std::move(table), {models.begin(), models.end()}, copy(weights), places, limits, std::move(options)});
}

nb::tuple told(const Translation& found) {
  nb::list entries;
  for (const TranslationEntry& entry : found.entries)
    entries.append(nb::make_tuple(entry.words, entry.features, entry.score, entry.alignment));
  const SearchCounts& counts = found.counts;
  return nb::make_tuple(entries, found.relaxed, static_cast<int>(found.cut),
                        nb::make_tuple(counts.hypotheses, counts.recombined, counts.discarded, counts.model_reads,
                                       counts.model_repeats, counts.pops),
                        found.seconds, found.graph);
}

nb::list translate(PhraseDecoder& self, const std::vector<std::vector<std::string>>& sentences, std::uint64_t first,
                   std::size_t n_best, bool distinct, bool alignments, bool graph, std::size_t threads) {
  check_threads(threads);
  const Wishes wishes{first, n_best, distinct, alignments, graph};
  std::vector<Translation> found(sentences.size());
  {
    const Unlocked unlocked;
    ThreadPool pool(threads);
    pool.map(sentences.size(), [&](std::size_t index, std::size_t) {
      found[index] = self.translate(sentences[index], first + index, wishes);
    });
  }
  nb::list all;
  for (const Translation& each : found) all.append(told(each));
  return all;
}

}  // namespace

void bind_phrase_decoder(nb::module_& module) {
  nb::class_<PhraseDecoder>(module, "PhraseDecoder")
      .def("__init__", &make_decoder, nb::arg("table"), nb::arg("models"), nb::arg("weights"), nb::kw_only(),
           nb::arg("stack_size"), nb::arg("log_threshold"), nb::arg("distortion_limit"), nb::arg("table_limit"),
           nb::arg("max_phrase_length"), nb::arg("early_discard"), nb::arg("cube"), nb::arg("pop_limit"),
           nb::arg("coverage_pops"), nb::arg("max_seconds"), nb::arg("max_bytes"))
      .def("translate", &translate, nb::arg("sentences"), nb::kw_only(), nb::arg("first"), nb::arg("n_best"),
           nb::arg("distinct"), nb::arg("alignments"), nb::arg("graph"), nb::arg("threads"));
}

}  // namespace treelm::bindings
