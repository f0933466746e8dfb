#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "base/starts.h"
#include "base/thread_pool.h"
#include "bindings/slm/handles.h"
#include "slm/events.h"

namespace treelm::bindings {

namespace {

constexpr std::size_t sentences_at_once = 64;

using Words = Array<std::uint32_t>;
using Starts = Array<std::uint64_t>;
using Actions = Array<std::uint16_t>;
using Numbers = Array<double>;

// Sentences with a mixture of topics each, checked.
struct Sentences {
  const Words& words;
  const Starts& starts;
  const Starts& mixture_starts;
  const Words& topics;
  const Numbers& shares;

  std::size_t size() const { return starts.size() - 1; }
  std::span<const std::uint32_t> operator[](std::size_t sentence) const {
    const std::size_t first = starts.data()[sentence], last = starts.data()[sentence + 1];
    return {words.data() + first, last - first};
  }
  TopicShares mixture(std::size_t sentence) const {
    if (topics.size() == 0) return {};
    const std::size_t first = mixture_starts.data()[sentence], size = mixture_starts.data()[sentence + 1] - first;
    return {{topics.data() + first, size}, {shares.data() + first, size}};
  }
};

Sentences sentences_of(const SlmShape& shape, std::size_t topics, const Words& words, const Starts& starts,
                       const Starts& mixture_starts, const Words& chosen, const Numbers& shares) {
  check_starts(span_of(starts), words.size(), "the starts of sentences do not fit the words");
  for (const std::uint32_t word : span_of(words))
    if (word >= shape.words) throw Error(ErrorCode::argument, "a word id is out of range");
  if (chosen.size() != shares.size()) throw Error(ErrorCode::argument, "every topic needs one share");
  check_starts(span_of(mixture_starts), chosen.size(), "the starts of mixtures do not fit the topics");
  if (topics > 0 && mixture_starts.size() != starts.size())
    throw Error(ErrorCode::argument, "every sentence needs one mixture of topics");
  if (topics == 0 && chosen.size() > 0) throw Error(ErrorCode::argument, "the model has no topics");
  const Sentences sentences{words, starts, mixture_starts, chosen, shares};
  for (std::size_t sentence = 0; topics > 0 && sentence < sentences.size(); ++sentence) {
    const TopicShares mixture = sentences.mixture(sentence);
    if (mixture.topics.empty()) throw Error(ErrorCode::argument, "a sentence has no topics");
    for (std::size_t i = 0; i < mixture.topics.size(); ++i)
      if (mixture.topics[i] >= topics || (i > 0 && mixture.topics[i - 1] >= mixture.topics[i]) ||
          !(mixture.shares[i] >= 0))
        throw Error(ErrorCode::argument, "topics must ascend and have shares that are not negative");
  }
  return sentences;
}

// Runs body(sentence, workspace) for all sentences and says how far it is.
template <typename Body>
void for_all(const SlmSearcher* searcher, std::size_t count, std::size_t threads, const ProgressCallback& progress,
             const Body& body) {
  ThreadPool pool(threads);
  for (std::size_t first = 0; first < count; first += sentences_at_once) {
    const std::size_t size = std::min(sentences_at_once, count - first);
    pool.map(size, [&](std::size_t index, std::size_t) {
      if (searcher == nullptr) {
        SlmSearch::Workspace none;
        body(first + index, none);
        return;
      }
      auto borrowed = searcher->borrow();
      body(first + index, borrowed.work());
    });
    progress(first + size, count);
  }
}

auto score(const SlmSearcher& self, const Words& words, const Starts& starts, const Starts& mixture_starts,
           const Words& topics, const Numbers& shares, std::size_t threads,
           const std::optional<nb::callable>& progress) {
  check_threads(threads);
  const SlmSearch& search = self.search();
  const Sentences sentences =
      sentences_of(search.shape(), search.topics(), words, starts, mixture_starts, topics, shares);
  std::vector<double> log_probs(words.size() + sentences.size());
  {
    const Unlocked unlocked;
    for_all(&self, sentences.size(), threads, interruptible(progress), [&](std::size_t sentence, auto& work) {
      SlmBeam beam = initial_beam(search.shape());
      std::size_t out = starts.data()[sentence] + sentence;
      const TopicShares mixture = sentences.mixture(sentence);
      for (const std::uint32_t word : sentences[sentence])
        log_probs[out++] = search.advance(beam, word, mixture, work, false);
      log_probs[out] = search.finish(beam, mixture, work);
    });
  }
  return give(std::move(log_probs));
}

// Documents whose topics follow their words, each on its own: the log probability of every word and end, and
// the topics before every sentence.
nb::tuple score_documents(const SlmSearcher& self, const Words& words, const Starts& starts, const Starts& documents,
                          const Numbers& prior, double rate, std::size_t keep, std::size_t threads) {
  check_threads(threads);
  const SlmSearch& search = self.search();
  check_starts(span_of(starts), words.size(), "the starts of sentences do not fit the words");
  check_starts(span_of(documents), starts.size() - 1, "the starts of documents do not fit the sentences");
  for (const std::uint32_t word : span_of(words))
    if (word >= search.shape().words) throw Error(ErrorCode::argument, "a word id is out of range");
  if (prior.size() != search.topics() || search.topics() == 0 || keep < 1 || !(rate >= 0 && rate < 1))
    throw Error(ErrorCode::argument, "the prior, the rate or the number of topics kept does not fit the model");
  std::vector<double> log_probs(words.size() + starts.size() - 1), before((starts.size() - 1) * prior.size());
  {
    const Unlocked unlocked;
    for_all(&self, documents.size() - 1, threads, interruptible({}), [&](std::size_t document, auto& work) {
      TopicMixture mixture(span_of(prior));
      for (std::size_t sentence = documents.data()[document]; sentence < documents.data()[document + 1]; ++sentence) {
        std::copy(mixture.shares().begin(), mixture.shares().end(),
                  before.begin() + static_cast<std::ptrdiff_t>(sentence * prior.size()));
        SlmBeam beam = initial_beam(search.shape());
        for (std::size_t place = starts.data()[sentence]; place < starts.data()[sentence + 1]; ++place)
          log_probs[place + sentence] = search.advance(beam, words.data()[place], mixture, keep, rate, work);
        log_probs[starts.data()[sentence + 1] + sentence] = search.finish(beam, mixture, keep, rate, work);
      }
    });
  }
  return nb::make_tuple(give(std::move(log_probs)), give_rows(std::move(before), prior.size(), starts.size() - 1));
}

nb::tuple best_parses(const SlmSearcher& self, const Words& words, const Starts& starts, const Starts& mixture_starts,
                      const Words& topics, const Numbers& shares, std::size_t count, std::size_t threads,
                      const std::optional<nb::callable>& progress) {
  check_threads(threads);
  if (count < 1) throw Error(ErrorCode::argument, "at least one parse must be asked for");
  const SlmSearch& search = self.search();
  const Sentences sentences =
      sentences_of(search.shape(), search.topics(), words, starts, mixture_starts, topics, shares);
  std::vector<std::vector<SlmParse>> found(sentences.size());
  std::vector<std::uint64_t> sentence_starts{0}, action_starts{0};
  std::vector<std::uint16_t> actions;
  std::vector<double> log_probs;
  {
    const Unlocked unlocked;
    for_all(&self, sentences.size(), threads, interruptible(progress), [&](std::size_t sentence, auto& work) {
      found[sentence] = search.best_parses(sentences[sentence], count, sentences.mixture(sentence), work);
    });
    for (auto& parses : found) {
      for (const SlmParse& parse : parses) {
        log_probs.push_back(parse.score);
        actions.insert(actions.end(), parse.actions.begin(), parse.actions.end());
        action_starts.push_back(actions.size());
      }
      sentence_starts.push_back(log_probs.size());
      std::vector<SlmParse>().swap(parses);
    }
  }
  return nb::make_tuple(give(std::move(sentence_starts)), give(std::move(actions)), give(std::move(action_starts)),
                        give(std::move(log_probs)));
}

struct Lists {
  const Starts& sentence_starts;
  const Actions& actions;
  const Starts& action_starts;

  std::span<const std::uint16_t> operator[](std::size_t parse) const {
    const std::size_t first = action_starts.data()[parse], last = action_starts.data()[parse + 1];
    return {actions.data() + first, last - first};
  }
};

Lists lists_of(std::size_t sentences, const Starts& sentence_starts, const Actions& actions,
               const Starts& action_starts) {
  check_starts(span_of(action_starts), actions.size(), "the starts of parses do not fit their actions");
  check_starts(span_of(sentence_starts), action_starts.size() - 1, "the starts of sentences do not fit the parses");
  if (sentence_starts.size() != sentences + 1)
    throw Error(ErrorCode::argument, "every sentence needs one list of parses");
  return {sentence_starts, actions, action_starts};
}

auto score_parses(const SlmSearcher& self, const Words& words, const Starts& starts, const Starts& mixture_starts,
                  const Words& topics, const Numbers& shares, const Starts& sentence_starts, const Actions& actions,
                  const Starts& action_starts, std::size_t threads) {
  check_threads(threads);
  const SlmSearch& search = self.search();
  const Sentences sentences =
      sentences_of(search.shape(), search.topics(), words, starts, mixture_starts, topics, shares);
  const Lists lists = lists_of(sentences.size(), sentence_starts, actions, action_starts);
  std::vector<double> log_probs(action_starts.size() - 1);
  {
    const Unlocked unlocked;
    for_all(&self, sentences.size(), threads, interruptible({}), [&](std::size_t sentence, auto& work) {
      for (std::size_t parse = sentence_starts.data()[sentence]; parse < sentence_starts.data()[sentence + 1]; ++parse)
        log_probs[parse] = search.score_parse(sentences[sentence], lists[parse], sentences.mixture(sentence), work);
    });
  }
  return give(std::move(log_probs));
}

void append(SlmEventRows& all, SlmEventRows& more) {
  all.columns.insert(all.columns.end(), more.columns.begin(), more.columns.end());
  all.outcomes.insert(all.outcomes.end(), more.outcomes.begin(), more.outcomes.end());
  all.counts.insert(all.counts.end(), more.counts.begin(), more.counts.end());
  more = {};
}

nb::tuple rows_tuple(SlmEventRows rows, std::size_t columns) {
  const std::size_t size = rows.outcomes.size();
  return nb::make_tuple(give_rows(std::move(rows.columns), columns, size), give(std::move(rows.outcomes)),
                        give(std::move(rows.counts)));
}

// Rows (columns, outcomes, counts) of predictor, tagger and constructor, and the topics of each mixture.
nb::tuple events_of(const SlmShape& shape, const SlmSearcher* searcher, const Sentences& sentences, const Lists& lists,
                    const Numbers& weights, std::span<const double> word_shares, std::size_t threads) {
  check_threads(threads);
  if (weights.size() + 1 != lists.action_starts.size())
    throw Error(ErrorCode::argument, "every parse needs one weight");
  std::vector<SlmEvents> found(sentences.size());
  SlmEvents all;
  {
    const Unlocked unlocked;
    std::vector<std::size_t> share_starts{0};
    for (std::size_t sentence = 0; sentence < sentences.size(); ++sentence)
      share_starts.push_back(share_starts.back() +
                             sentences[sentence].size() * sentences.mixture(sentence).topics.size());
    if (word_shares.size() > 0 && word_shares.size() != share_starts.back())
      throw Error(ErrorCode::argument, "every word needs one share of each topic");
    for_all(searcher, sentences.size(), threads, interruptible({}), [&](std::size_t sentence, auto&) {
      std::vector<WeightedParse> parses;
      for (std::size_t parse = lists.sentence_starts.data()[sentence];
           parse < lists.sentence_starts.data()[sentence + 1]; ++parse)
        parses.push_back({lists[parse], weights.data()[parse]});
      const TopicShares mixture = sentences.mixture(sentence);
      if (searcher != nullptr) {
        count_parses(searcher->search(), sentences[sentence], parses, mixture, found[sentence]);
        return;
      }
      std::span<const double> own;
      if (word_shares.size() > 0)
        own = word_shares.subspan(share_starts[sentence], share_starts[sentence + 1] - share_starts[sentence]);
      count_parses(shape, sentences[sentence], parses, mixture, own, found[sentence]);
    });
    for (SlmEvents& each : found) {
      append(all.words, each.words);
      append(all.tags, each.tags);
      append(all.moves, each.moves);
      all.topics.insert(all.topics.end(), each.topics.begin(), each.topics.end());
    }
  }
  const std::size_t topic_column = sentences.topics.size() > 0 ? 1 : 0;
  return nb::make_tuple(rows_tuple(std::move(all.words), shape.predictor_columns() + topic_column),
                        rows_tuple(std::move(all.tags), shape.tagger_columns()),
                        rows_tuple(std::move(all.moves), shape.constructor_columns()), give(std::move(all.topics)));
}

// What the predictor sees before every word and end: starts of the rows of each, columns, shares.
nb::tuple frontiers(const SlmSearcher& self, const Words& words, const Starts& starts, const Starts& mixture_starts,
                    const Words& topics, const Numbers& shares, std::size_t threads,
                    const std::optional<nb::callable>& progress) {
  check_threads(threads);
  const SlmSearch& search = self.search();
  const Sentences sentences =
      sentences_of(search.shape(), search.topics(), words, starts, mixture_starts, topics, shares);
  std::vector<SlmFrontier> found(words.size() + sentences.size());
  std::vector<std::uint64_t> row_starts{0};
  SlmFrontier all;
  {
    const Unlocked unlocked;
    for_all(&self, sentences.size(), threads, interruptible(progress), [&](std::size_t sentence, auto& work) {
      SlmBeam beam = initial_beam(search.shape());
      std::size_t out = starts.data()[sentence] + sentence;
      const TopicShares mixture = sentences.mixture(sentence);
      for (const std::uint32_t word : sentences[sentence]) {
        found[out++] = search.frontier(beam, work);
        search.advance(beam, word, mixture, work, false);
      }
      found[out] = search.frontier(beam, work);
    });
    for (SlmFrontier& each : found) {
      all.columns.insert(all.columns.end(), each.columns.begin(), each.columns.end());
      all.shares.insert(all.shares.end(), each.shares.begin(), each.shares.end());
      row_starts.push_back(all.shares.size());
      each = {};
    }
  }
  const std::size_t rows = all.shares.size();
  return nb::make_tuple(give(std::move(row_starts)),
                        give_rows(std::move(all.columns), search.shape().predictor_columns(), rows),
                        give(std::move(all.shares)));
}

}  // namespace

void bind_slm_shape(nb::module_& module) {
  nb::class_<SlmShape>(module, "SlmShape")
      .def(
          "__init__",
          [](SlmShape* self, std::uint32_t words, std::uint32_t tags, std::uint32_t phrases, std::uint32_t order,
             std::uint32_t heads, bool head_labels, bool unary_moves) {
            const SlmShape shape{words, tags, phrases, order, heads, head_labels, unary_moves};
            shape.check();
            new (self) SlmShape(shape);
          },
          nb::kw_only(), nb::arg("words"), nb::arg("tags"), nb::arg("phrases"), nb::arg("order"), nb::arg("heads"),
          nb::arg("head_labels"), nb::arg("unary_moves"))
      .def_prop_ro("labels", &SlmShape::labels)
      .def_prop_ro("moves", &SlmShape::moves)
      .def(
          "events",
          [](const SlmShape& self, const Words& words, const Starts& starts, const Starts& mixture_starts,
             const Words& topics, const Numbers& shares, const Starts& sentence_starts, const Actions& actions,
             const Starts& action_starts, const Numbers& weights, const Numbers& word_shares, std::size_t threads) {
            const std::size_t most = topics.size() > 0 ? 0xFFFFFFFFULL : 0;
            const Sentences sentences = sentences_of(self, most, words, starts, mixture_starts, topics, shares);
            const Lists lists = lists_of(sentences.size(), sentence_starts, actions, action_starts);
            return events_of(self, nullptr, sentences, lists, weights, span_of(word_shares), threads);
          },
          nb::arg("words"), nb::arg("starts"), nb::arg("mixture_starts"), nb::arg("topics"), nb::arg("shares"),
          nb::arg("sentence_starts"), nb::arg("actions"), nb::arg("action_starts"), nb::arg("weights"),
          nb::arg("word_shares"), nb::kw_only(), nb::arg("threads"));
}

void bind_slm_batches(nb::class_<SlmSearcher>& searcher) {
  searcher
      .def("score", &score, nb::arg("words"), nb::arg("starts"), nb::arg("mixture_starts"), nb::arg("topics"),
           nb::arg("shares"), nb::kw_only(), nb::arg("threads"), nb::arg("progress").none() = nb::none())
      .def("best_parses", &best_parses, nb::arg("words"), nb::arg("starts"), nb::arg("mixture_starts"),
           nb::arg("topics"), nb::arg("shares"), nb::kw_only(), nb::arg("count"), nb::arg("threads"),
           nb::arg("progress").none() = nb::none())
      .def("score_parses", &score_parses, nb::arg("words"), nb::arg("starts"), nb::arg("mixture_starts"),
           nb::arg("topics"), nb::arg("shares"), nb::arg("sentence_starts"), nb::arg("actions"),
           nb::arg("action_starts"), nb::kw_only(), nb::arg("threads"))
      .def(
          "events",
          [](const SlmSearcher& self, const Words& words, const Starts& starts, const Starts& mixture_starts,
             const Words& topics, const Numbers& shares, const Starts& sentence_starts, const Actions& actions,
             const Starts& action_starts, const Numbers& weights, std::size_t threads) {
            const SlmSearch& search = self.search();
            const Sentences sentences =
                sentences_of(search.shape(), search.topics(), words, starts, mixture_starts, topics, shares);
            const Lists lists = lists_of(sentences.size(), sentence_starts, actions, action_starts);
            return events_of(search.shape(), &self, sentences, lists, weights, {}, threads);
          },
          nb::arg("words"), nb::arg("starts"), nb::arg("mixture_starts"), nb::arg("topics"), nb::arg("shares"),
          nb::arg("sentence_starts"), nb::arg("actions"), nb::arg("action_starts"), nb::arg("weights"), nb::kw_only(),
          nb::arg("threads"))
      .def("frontiers", &frontiers, nb::arg("words"), nb::arg("starts"), nb::arg("mixture_starts"), nb::arg("topics"),
           nb::arg("shares"), nb::kw_only(), nb::arg("threads"), nb::arg("progress").none() = nb::none())
      .def("score_documents", &score_documents, nb::arg("words"), nb::arg("starts"), nb::arg("documents"),
           nb::arg("prior"), nb::kw_only(), nb::arg("rate"), nb::arg("keep"), nb::arg("threads"));
}

}  // namespace treelm::bindings
