#include "topics/plsa.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include "bindings/bindings.h"
#include "topics/em.h"

namespace treelm::bindings {

namespace {

using Ids = Array<std::uint32_t>;
using Places = Array<std::uint64_t>;
using Numbers = Array<double>;
using Table = Matrix<double>;
using IdTable = Matrix<std::uint32_t>;
// Arrays that a kernel changes.
using ChangedTable = nb::ndarray<nb::numpy, double, nb::ndim<2>, nb::c_contig>;
using ChangedCounts = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>, nb::c_contig>;
using Progress = std::optional<nb::callable>;

// A text whose arrays stay alive with it.
struct HeldText {
  Ids ids;
  Places starts, documents;
  TopicText text;
};

// Expected counts by word and topic, and the log likelihood of every block.
nb::tuple expect_words(const DocumentWords& self, const Table& word_topics, const ChangedTable& document_topics,
                       std::size_t threads, const Progress& progress) {
  check_threads(threads);
  const std::size_t topics = word_topics.shape(1);
  if (topics != document_topics.shape(1))
    throw Error(ErrorCode::argument, "words and documents must have the same number of topics");
  PlsaExpectation found;
  {
    const Unlocked unlocked;
    ThreadPool pool(threads);
    found = plsa_expect(self, topics, span_of(word_topics), std::span(document_topics.data(), document_topics.size()),
                        pool, interruptible(progress));
  }
  return nb::make_tuple(give_rows(std::move(found.counts), topics, word_topics.shape(0)),
                        give(std::move(found.log_likelihoods)));
}

using Places16 = Array<std::uint16_t>;
using WordsState = std::tuple<std::size_t, Places, Ids, Ids, Places16>;

WordsState words_state(const DocumentWords& self) {
  return {self.documents, give(self.begin), give(self.words), give(self.counts), give(self.places)};
}

void set_words_state(DocumentWords& self, const WordsState& state) {
  DocumentWords made;
  made.documents = std::get<0>(state);
  made.begin = copy(std::get<1>(state));
  made.words = copy(std::get<2>(state));
  made.counts = copy(std::get<3>(state));
  made.places = copy(std::get<4>(state));
  made.check();
  new (&self) DocumentWords(std::move(made));
}

auto counts(const DocumentWords& self, const Table& word_topics, const Table& document_topics, std::size_t threads,
            const Progress& progress) {
  check_threads(threads);
  const std::size_t topics = word_topics.shape(1);
  if (topics != document_topics.shape(1))
    throw Error(ErrorCode::argument, "words and documents must have the same number of topics");
  std::vector<std::int64_t> found;
  {
    const Unlocked unlocked;
    ThreadPool pool(threads);
    found = plsa_counts(self, topics, span_of(word_topics), span_of(document_topics), pool, interruptible(progress));
  }
  return give_rows(std::move(found), topics, word_topics.shape(0));
}

KeptTopics kept_topics(const IdTable& topics, const ChangedTable& shares) {
  if (topics.shape(0) != shares.shape(0) || topics.shape(1) != shares.shape(1))
    throw Error(ErrorCode::argument, "every topic that is kept needs a share");
  return {topics.shape(1), std::span(topics.data(), topics.size()), std::span(shares.data(), shares.size())};
}

void add_events(const HeldText& text, const IdTable& topics, const ChangedTable& shares, const Table& word_topics,
                LatticeEvents& events, const Progress& progress) {
  const KeptTopics kept = kept_topics(topics, shares);
  const Unlocked unlocked;
  add_topic_events(text.text, kept, span_of(word_topics), word_topics.shape(1), events, interruptible(progress));
}

Numbers expect(const LatticeModel& model, const LatticeTables& tables, const HeldText& text, const IdTable& topics,
               const ChangedTable& shares, const ChangedCounts& counts, std::size_t threads, const Progress& progress) {
  check_threads(threads);
  const KeptTopics kept = kept_topics(topics, shares);
  std::vector<double> log_likelihoods;
  {
    const Unlocked unlocked;
    ThreadPool pool(threads);
    log_likelihoods = expect_topics(model, tables, text.text, kept, std::span(counts.data(), counts.size()), pool,
                                    interruptible(progress));
  }
  return give(std::move(log_likelihoods));
}

nb::tuple score(const LatticeModel& model, const HeldText& text, const Numbers& prior, double rate, std::size_t keep,
                bool checks, std::size_t threads, const Progress& progress) {
  check_threads(threads);
  TopicChecks found;
  std::vector<double> log_probs;
  {
    const Unlocked unlocked;
    ThreadPool pool(threads);
    log_probs = score_topics(model, text.text, {span_of(prior), rate, keep}, checks ? &found : nullptr, pool,
                             interruptible(progress));
  }
  const std::size_t columns = model.shape().columns(), rows = found.outcomes.size();
  return nb::make_tuple(give(std::move(log_probs)), give_rows(std::move(found.columns), columns, rows),
                        give(std::move(found.outcomes)), give(std::move(found.weights)));
}

auto so_far(const HeldText& text, const Table& word_topics, const Numbers& prior, double rate, std::size_t threads,
            const Progress& progress) {
  check_threads(threads);
  const std::size_t topics = prior.size();
  if (topics != word_topics.shape(1)) throw Error(ErrorCode::argument, "every topic needs a share");
  std::vector<double> found;
  {
    const Unlocked unlocked;
    ThreadPool pool(threads);
    found = topics_so_far(text.text, span_of(word_topics), {span_of(prior), rate}, pool, interruptible(progress));
  }
  return give_rows(std::move(found), topics, text.text.sentences());
}

nb::tuple mixture_step(const Numbers& shares, const Numbers& probs, std::size_t keep, double rate) {
  if (shares.size() != probs.size() || shares.size() == 0 || keep == 0)
    throw Error(ErrorCode::argument, "every topic needs one probability of the word");
  TopicMixture mixture(span_of(shares));
  const double prob = mixture.predict(span_of(probs), keep);
  mixture.update(span_of(probs), rate);
  return nb::make_tuple(prob, give(mixture.shares()));
}

}  // namespace

void bind_plsa(nb::module_& module) {
  nb::class_<DocumentWords>(module, "DocumentWords")
      .def(
          "__init__",
          [](DocumentWords* self, const Ids& ids, const Places& starts, std::uint32_t words) {
            const Unlocked unlocked;
            new (self) DocumentWords(count_documents(span_of(ids), span_of(starts), words));
          },
          nb::arg("ids"), nb::arg("starts"), nb::arg("words"))
      .def("__len__", [](const DocumentWords& self) { return self.documents; })
      .def_prop_ro("pairs", [](const DocumentWords& self) { return self.words.size(); })
      .def("counts", &counts, nb::arg("word_topics"), nb::arg("document_topics"), nb::kw_only(), nb::arg("threads"),
           nb::arg("progress").none() = nb::none())
      .def("expect", &expect_words, nb::arg("word_topics"), nb::arg("document_topics"), nb::kw_only(),
           nb::arg("threads"), nb::arg("progress").none() = nb::none())
      .def_prop_ro("block_size", [](const DocumentWords&) { return DocumentWords::block_size; })
      .def_prop_ro("blocks", &DocumentWords::blocks)
      .def("part", &DocumentWords::part, nb::arg("first"), nb::arg("last"))
      .def("__getstate__", &words_state)
      .def("__setstate__", &set_words_state);
  module.def(
      "draw_word_topics",
      [](std::size_t words, std::size_t topics, std::uint64_t seed) {
        return give_rows(draw_word_topics(words, topics, seed), topics, words);
      },
      nb::arg("words"), nb::arg("topics"), nb::arg("seed"));
  nb::class_<HeldText>(module, "TopicText")
      .def(
          "__init__",
          [](HeldText* self, const Ids& ids, const Places& starts, const Places& documents, std::size_t order,
             std::uint32_t start, std::uint32_t end) {
            new (self) HeldText{ids, starts, documents,
                                TopicText{span_of(ids), span_of(starts), span_of(documents), order, start, end}};
          },
          nb::arg("ids"), nb::arg("starts"), nb::arg("documents"), nb::kw_only(), nb::arg("order"), nb::arg("start"),
          nb::arg("end"))
      .def("__len__", [](const HeldText& self) { return self.text.size(); });
  module.def("add_topic_events", &add_events, nb::arg("text"), nb::arg("topics"), nb::arg("shares"),
             nb::arg("word_topics"), nb::arg("events"), nb::arg("progress").none() = nb::none());
  module.def("expect_topics", &expect, nb::arg("model"), nb::arg("tables"), nb::arg("text"), nb::arg("topics"),
             nb::arg("shares"), nb::arg("counts"), nb::kw_only(), nb::arg("threads"),
             nb::arg("progress").none() = nb::none());
  module.def("score_topics", &score, nb::arg("model"), nb::arg("text"), nb::arg("prior"), nb::kw_only(),
             nb::arg("rate"), nb::arg("keep"), nb::arg("checks"), nb::arg("threads"),
             nb::arg("progress").none() = nb::none());
  module.def("topics_so_far", &so_far, nb::arg("text"), nb::arg("word_topics"), nb::arg("prior"), nb::kw_only(),
             nb::arg("rate"), nb::arg("threads"), nb::arg("progress").none() = nb::none());
  module.def("topic_step", &mixture_step, nb::arg("shares"), nb::arg("probs"), nb::kw_only(), nb::arg("keep"),
             nb::arg("rate"));
}

}  // namespace treelm::bindings
