#include "hhmm/search.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <tuple>

#include "base/starts.h"
#include "base/thread_pool.h"
#include "base/workspace_pool.h"
#include "bindings/bindings.h"
#include "bindings/hhmm/handles.h"
#include "hhmm/cache.h"
#include "hhmm/viterbi.h"

namespace treelm::bindings {

namespace {

using Words = Array<std::uint32_t>;
using Starts = Array<std::uint64_t>;

// A state and the grammar that is known to have made it, if any.
struct StateHandle {
  SharedBeam beam;
  std::weak_ptr<const HhmmGrammar> grammar;
};

using StepTuple = std::tuple<double, double, double, bool, StateHandle>;

// A search with its cache, and workspaces for as many threads as use it at once.
class Searcher {
 public:
  Searcher(const GrammarHandle& grammar, const HhmmOptions& options, std::size_t cache_bytes)
      : grammar_(grammar.grammar), search_(grammar_, options), cache_(cache_bytes) {}

  const HhmmSearch& search() const { return search_; }
  HhmmCache& cache() { return cache_; }
  StateHandle handle(SharedBeam beam) const { return {std::move(beam), grammar_}; }
  StepTuple tuple(const HhmmStep& step) const {
    return {step.log_prob, step.log_mass, step.kept, step.restarted, handle(step.beam)};
  }

  const SharedBeam& checked(const StateHandle& state) const {
    if (state.grammar.lock() != grammar_ && !state.beam->fits(*grammar_))
      throw Error(ErrorCode::argument, "the state does not fit the grammar");
    return state.beam;
  }

  auto borrow() { return workspaces_.borrow(search_.grammar()); }

  // Words that the workspaces read, and those about which they knew everything.
  std::pair<std::uint64_t, std::uint64_t> memo_counts() {
    std::pair<std::uint64_t, std::uint64_t> found{0, 0};
    workspaces_.for_each_idle([&](const HhmmWorkspace& work) {
      found.first += work.words_asked();
      found.second += work.words_found();
    });
    return found;
  }
  void reset_counts() {
    cache_.reset_counters();
    workspaces_.for_each_idle([](HhmmWorkspace& work) { work.reset_counts(); });
  }

  HhmmStep advance(const SharedBeam& beam, std::uint32_t word) {
    if (auto known = cache_.find(beam, word)) return *known;
    const auto began = std::chrono::steady_clock::now();
    auto borrowed = borrow();
    HhmmStep step = search_.advance(*beam, word, borrowed.work());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    return cache_.insert(beam, word, std::move(step), took.count());
  }

 private:
  std::shared_ptr<const HhmmGrammar> grammar_;
  HhmmSearch search_;
  HhmmCache cache_;
  WorkspacePool<HhmmWorkspace> workspaces_;
};

std::vector<Emission> emissions_of(const HhmmGrammar& grammar, const Array<std::uint32_t>& tags,
                                   const Array<double>& values) {
  if (tags.size() != values.size()) throw Error(ErrorCode::argument, "every tag needs one probability");
  std::vector<Emission> found;
  for (std::size_t i = 0; i < tags.size(); ++i) {
    const std::uint32_t tag = tags.data()[i];
    const bool ascending = i == 0 || tags.data()[i - 1] < tag;
    if (!grammar.is_tag(tag) || tag >= grammar.symbols() || tag == grammar.end() || !ascending ||
        !(values.data()[i] >= 0 && values.data()[i] <= 1))
      throw Error(ErrorCode::argument, "the tags of a word must be tags in ascending order, with probabilities");
    found.push_back({tag, values.data()[i]});
  }
  return found;
}

void check_sentences(const HhmmGrammar& grammar, const Words& words, const Starts& starts) {
  check_starts(span_of(starts), words.size(), "the starts of sentences do not fit the words");
  for (const std::uint32_t word : span_of(words))
    if (word >= grammar.words()) throw Error(ErrorCode::argument, "a word id is out of range");
}

constexpr std::size_t measures = 6;

// The sentence that a worker read last, with the beams after its first words.
struct ReadSentence {
  // Beams that are kept: stimuli that share a beginning share no more words than that.
  static constexpr std::size_t most = 64;

  const std::uint32_t* words = nullptr;
  std::size_t length = 0, out = 0;
  std::vector<SharedBeam> beams;
  std::vector<std::uint8_t> restarted;

  // How many words it has in common with the beginning of another, among those whose beams are kept.
  std::size_t shared(const std::uint32_t* other, std::size_t other_length) const {
    const std::size_t end = std::min({beams.size(), length, other_length});
    return static_cast<std::size_t>(std::mismatch(words, words + end, other).first - words);
  }
  void go_on(const std::uint32_t* other, std::size_t other_length, std::size_t other_out, std::size_t kept) {
    words = other;
    length = other_length;
    out = other_out;
    beams.resize(kept);
    restarted.resize(kept);
  }
  void add(const SharedBeam& beam, bool again) {
    if (beams.size() == most) return;
    beams.push_back(beam);
    restarted.push_back(again);
  }
};

nb::tuple score(Searcher& self, const Words& words, const Starts& starts, bool measured, std::size_t threads) {
  check_threads(threads);
  const HhmmSearch& search = self.search();
  check_sentences(search.grammar(), words, starts);
  const std::size_t count = starts.size() - 1;
  std::vector<double> log_probs(words.size() + count), table(measured ? measures * log_probs.size() : 0, 0.0);
  std::vector<std::uint64_t> restarts(count, 0);
  {
    const Unlocked unlocked;
    ThreadPool pool(threads);
    // Sentences in the order of their words: one that begins like the one before it goes on from there.
    const std::uint32_t* all = words.data();
    const std::uint64_t* first = starts.data();
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
      return std::lexicographical_compare(all + first[one], all + first[one + 1], all + first[other],
                                          all + first[other + 1]);
    });
    std::vector<ReadSentence> read(std::max<std::size_t>(1, pool.size()));
    pool.map(count, [&](std::size_t place, std::size_t worker) {
      auto borrowed = self.borrow();
      const std::size_t sentence = order[place], begin = first[sentence], length = first[sentence + 1] - begin;
      const std::size_t out = begin + sentence;
      ReadSentence& before = read[worker];
      const std::size_t shared = before.shared(all + begin, length);
      for (std::size_t t = 0; t < shared; ++t) {
        log_probs[out + t] = log_probs[before.out + t];
        restarts[sentence] += before.restarted[t];
        for (std::size_t m = 0; measured && m < measures; ++m)
          table[measures * (out + t) + m] = table[measures * (before.out + t) + m];
      }
      before.go_on(all + begin, length, out, shared);
      SharedBeam beam = shared == 0 ? search.initial() : before.beams[shared - 1];
      for (std::size_t t = shared; t < length; ++t) {
        const double reach =
            measured ? search.reach(*beam, search.grammar().emissions(all[begin + t]), borrowed.work()) : 0.0;
        const HhmmStep step = search.advance(*beam, all[begin + t], borrowed.work());
        log_probs[out + t] = step.log_prob;
        restarts[sentence] += step.restarted;
        beam = step.beam;
        before.add(beam, step.restarted);
        if (!measured) continue;
        const BeamMeasures found = measure(*beam);
        const double row[] = {found.entropy, found.mean_depth, found.best_depth, step.kept, found.stacks, reach};
        std::copy(std::begin(row), std::end(row), table.begin() + static_cast<std::ptrdiff_t>(measures * (out + t)));
      }
      log_probs[out + length] = search.finish(*beam, borrowed.work());
    });
  }
  std::uint64_t total = 0;
  for (const std::uint64_t each : restarts) total += each;
  const std::size_t rows = measured ? log_probs.size() : 0;
  return nb::make_tuple(give(std::move(log_probs)), give_rows(std::move(table), measures, rows), total);
}

// Sentences as moves: for each tree its sentence, and rows (kind, parent, awaited, tag), one per word.
nb::tuple parse(Searcher& self, const Words& words, const Starts& starts, std::size_t threads) {
  check_threads(threads);
  const HhmmSearch& search = self.search();
  check_sentences(search.grammar(), words, starts);
  const std::size_t count = starts.size() - 1;
  std::vector<StackParse> parses(count);
  std::vector<double> log_probs;
  std::vector<std::uint32_t> trees, moves;
  {
    const Unlocked unlocked;
    ThreadPool pool(threads);
    std::vector<std::unique_ptr<StackViterbi>> workers(std::max<std::size_t>(1, pool.size()));
    pool.map(count, [&](std::size_t sentence, std::size_t worker) {
      if (!workers[worker]) workers[worker] = std::make_unique<StackViterbi>(search.grammar(), search.options().beam);
      const std::size_t first = starts.data()[sentence], last = starts.data()[sentence + 1];
      parses[sentence] = workers[worker]->parse(span_of(words).subspan(first, last - first));
    });
    for (std::size_t sentence = 0; sentence < count; ++sentence) {
      log_probs.push_back(parses[sentence].log_prob);
      for (const auto& derivation : parses[sentence].derivations) {
        trees.push_back(static_cast<std::uint32_t>(sentence));
        for (const StackMove& move : derivation)
          moves.insert(moves.end(), {static_cast<std::uint32_t>(move.kind), move.parent, move.awaited, move.tag});
      }
    }
  }
  return nb::make_tuple(give(std::move(log_probs)), give(std::move(trees)), give_rows(std::move(moves), 4));
}

nb::list histories_of(const std::vector<StackHistory>& histories) {
  nb::list found;
  for (const StackHistory& each : histories) {
    std::vector<std::uint32_t> moves;
    std::vector<std::uint64_t> ids, ranks;
    std::vector<double> log_probs;
    for (const StackHistory::Step& step : each.steps) {
      const StackMove& move = step.move;
      moves.insert(moves.end(), {static_cast<std::uint32_t>(move.kind), move.parent, move.awaited, move.tag});
      ids.push_back(step.id);
      ranks.push_back(step.rank);
      log_probs.push_back(step.log_prob);
    }
    found.append(nb::make_tuple(each.log_prob, each.first, give_rows(std::move(moves), 4), give(std::move(ids)),
                                give(std::move(ranks)), give(std::move(log_probs))));
  }
  return found;
}

// The best derivations after each word, and those of the whole sentence. A word is an id, or else its tags and their
// probabilities.
nb::tuple partial_parses(
    Searcher& self,
    const std::vector<std::tuple<std::optional<std::uint32_t>, Array<std::uint32_t>, Array<double>>>& words,
    std::size_t count) {
  if (count == 0) throw Error(ErrorCode::argument, "at least one derivation must be asked for");
  const HhmmSearch& search = self.search();
  std::vector<StackWord> read;
  for (const auto& [id, tags, values] : words) {
    if (id && *id >= search.grammar().words()) throw Error(ErrorCode::argument, "a word does not exist");
    if (!id && search.grammar().context_length() > 0)
      throw Error(ErrorCode::argument, "a grammar that remembers words reads words that it knows");
    read.push_back({id.value_or(no_symbol), emissions_of(search.grammar(), tags, values)});
  }
  PartialParses parses;
  {
    const Unlocked unlocked;
    parses = StackViterbi(search.grammar(), search.options().beam).partial_parses(read, count);
  }
  nb::list found;
  for (const auto& histories : parses.words) found.append(histories_of(histories));
  return nb::make_tuple(found, histories_of(parses.whole));
}

nb::tuple advance_many(Searcher& self, const std::vector<StateHandle>& states, const Words& words,
                       std::size_t threads) {
  check_threads(threads);
  if (states.size() != words.size()) throw Error(ErrorCode::argument, "every state needs one word");
  for (std::size_t i = 0; i < states.size(); ++i) {
    self.checked(states[i]);
    if (words.data()[i] >= self.search().grammar().words())
      throw Error(ErrorCode::argument, "a word id is out of range");
  }
  std::vector<HhmmStep> steps(states.size());
  {
    const Unlocked unlocked;
    ThreadPool pool(threads);
    pool.map(steps.size(), [&](std::size_t index, std::size_t) {
      steps[index] = self.advance(states[index].beam, words.data()[index]);
    });
  }
  std::vector<double> log_probs, log_masses;
  nb::list after;
  for (const HhmmStep& step : steps) {
    log_probs.push_back(step.log_prob);
    log_masses.push_back(step.log_mass);
    after.append(nb::cast(self.handle(step.beam)));
  }
  return nb::make_tuple(give(std::move(log_probs)), give(std::move(log_masses)), after);
}

void make_grammar(GrammarHandle* self, std::uint32_t symbols, std::uint32_t phrasal, std::uint32_t end,
                  std::uint32_t depth, const Matrix<std::int32_t>& rules, const Matrix<double>& left,
                  const Matrix<double>& right, const Matrix<std::int32_t>& row_of, const Array<std::int64_t>& row_start,
                  const Array<std::int32_t>& row_symbol, const Array<double>& row_value,
                  const Array<std::int64_t>& word_start, const Array<std::int32_t>& word_tag,
                  const Array<double>& word_value, const Array<double>& unigram, double end_share,
                  const std::shared_ptr<BackoffTable>& word_table, const std::shared_ptr<BackoffTable>& tag_table,
                  const Array<double>& tag_shares, double tag_power) {
  check_columns(rules.shape(1), 3);
  std::shared_ptr<const HhmmContexts> contexts;
  if (word_table || tag_table)
    contexts = std::make_shared<const HhmmContexts>(word_table, tag_table, copy(tag_shares), tag_power);
  const HhmmArrays arrays{symbols,
                          phrasal,
                          end,
                          depth,
                          span_of(rules),
                          span_of(left),
                          span_of(right),
                          span_of(row_of),
                          span_of(row_start),
                          span_of(row_symbol),
                          span_of(row_value),
                          span_of(word_start),
                          span_of(word_tag),
                          span_of(word_value),
                          span_of(unigram),
                          end_share,
                          contexts};
  new (self) GrammarHandle{std::make_shared<const HhmmGrammar>(arrays)};
}

nb::bytes key_of(const StateHandle& self, const std::string& kind, std::uint32_t best) {
  const auto found = beam_key(*self.beam, beam_key_of(kind, best));
  return nb::bytes(reinterpret_cast<const char*>(found.data()), sizeof(found));
}

void bind_state(nb::module_& module) {
  nb::class_<StateHandle>(module, "HhmmState")
      .def(
          "__init__",
          [](StateHandle* self, const nb::bytes& data) {
            auto beam = std::make_shared<HhmmBeam>(HhmmBeam::from_bytes({data.c_str(), data.size()}));
            new (self) StateHandle{std::move(beam), {}};
          },
          nb::arg("data"))
      .def("to_bytes",
           [](const StateHandle& self) {
             const std::string data = self.beam->to_bytes();
             return nb::bytes(data.data(), data.size());
           })
      .def(
          "same",
          [](const StateHandle& self, const StateHandle& other) {
            return self.beam == other.beam || self.beam->same(*other.beam);
          },
          nb::arg("other"))
      .def("key", &key_of, nb::arg("kind"), nb::arg("best"))
      .def(
          "stacks",
          [](const StateHandle& self, std::size_t count) {
            std::vector<std::tuple<double, std::vector<std::uint32_t>>> found;
            for (const std::uint32_t place : heaviest_stacks(*self.beam, count))
              found.emplace_back(self.beam->weights[place], stack_symbols(*self.beam, self.beam->stacks[place]));
            return found;
          },
          nb::arg("count"))
      .def("measures",
           [](const StateHandle& self) {
             const BeamMeasures found = measure(*self.beam);
             return std::make_tuple(found.entropy, found.mean_depth, found.best_depth, found.stacks);
           })
      .def_prop_ro("initial", [](const StateHandle& self) { return self.beam->initial; })
      .def_prop_ro("hash", [](const StateHandle& self) { return self.beam->hash; })
      .def("__len__", [](const StateHandle& self) { return self.beam->stacks.size(); });
}

void bind_grammar(nb::module_& module) {
  nb::class_<GrammarHandle>(module, "HhmmGrammar")
      .def("__init__", &make_grammar, nb::kw_only(), nb::arg("symbols"), nb::arg("phrasal"), nb::arg("end"),
           nb::arg("depth"), nb::arg("rules"), nb::arg("left"), nb::arg("right"), nb::arg("row_of"),
           nb::arg("row_start"), nb::arg("row_symbol"), nb::arg("row_value"), nb::arg("word_start"),
           nb::arg("word_tag"), nb::arg("word_value"), nb::arg("unigram"), nb::arg("end_share"),
           nb::arg("word_table").none(), nb::arg("tag_table").none(), nb::arg("tag_shares"), nb::arg("tag_power"));
}

void bind_search(nb::module_& module) {
  nb::class_<Searcher>(module, "HhmmSearch")
      .def(
          "__init__",
          [](Searcher* self, const GrammarHandle& grammar, std::size_t beam, double ratio, double epsilon, bool single,
             std::size_t cache_bytes) {
            new (self) Searcher(grammar, HhmmOptions{beam, ratio, epsilon, single}, cache_bytes);
          },
          nb::arg("grammar"), nb::kw_only(), nb::arg("beam"), nb::arg("ratio"), nb::arg("epsilon"), nb::arg("single"),
          nb::arg("cache_bytes"))
      .def("initial", [](const Searcher& self) { return self.handle(self.search().initial()); })
      .def(
          "advance",
          [](Searcher& self, const StateHandle& state, std::uint32_t word) {
            const SharedBeam& beam = self.checked(state);
            HhmmStep step;
            {
              const Unlocked unlocked;
              step = self.advance(beam, word);
            }
            return self.tuple(step);
          },
          nb::arg("state"), nb::arg("word"))
      .def(
          "advance_tags",
          [](Searcher& self, const StateHandle& state, const Array<std::uint32_t>& tags, const Array<double>& values,
             double unigram) {
            const SharedBeam& beam = self.checked(state);
            const std::vector<Emission> emissions = emissions_of(self.search().grammar(), tags, values);
            HhmmStep step;
            {
              const Unlocked unlocked;
              auto borrowed = self.borrow();
              step = self.search().advance(*beam, emissions, unigram, borrowed.work());
            }
            return self.tuple(step);
          },
          nb::arg("state"), nb::arg("tags"), nb::arg("values"), nb::arg("unigram"))
      .def("advance_many", &advance_many, nb::arg("states"), nb::arg("words"), nb::kw_only(), nb::arg("threads"))
      .def(
          "finish",
          [](Searcher& self, const StateHandle& state) {
            auto borrowed = self.borrow();
            return self.search().finish(*self.checked(state), borrowed.work());
          },
          nb::arg("state"))
      .def(
          "next_tags",
          [](Searcher& self, const StateHandle& state) {
            const SharedBeam& beam = self.checked(state);
            return give(released([&] {
              auto borrowed = self.borrow();
              return self.search().next_tags(*beam, borrowed.work());
            }));
          },
          nb::arg("state"))
      .def(
          "emissions",
          [](Searcher& self, const StateHandle& state, std::uint32_t word) {
            auto borrowed = self.borrow();
            return give(self.search().emissions(*self.checked(state), word, borrowed.work()));
          },
          nb::arg("state"), nb::arg("word"))
      .def(
          "next_words",
          [](Searcher& self, const StateHandle& state) {
            const SharedBeam& beam = self.checked(state);
            return give(released([&] {
              auto borrowed = self.borrow();
              return self.search().next_words(*beam, borrowed.work());
            }));
          },
          nb::arg("state"))
      .def("score", &score, nb::arg("words"), nb::arg("starts"), nb::kw_only(), nb::arg("measured"), nb::arg("threads"))
      .def("parse", &parse, nb::arg("words"), nb::arg("starts"), nb::kw_only(), nb::arg("threads"))
      .def("partial_parses", &partial_parses, nb::arg("words"), nb::arg("count"))
      .def("stats",
           [](Searcher& self) {
             const HhmmCounters found = self.cache().counters();
             nb::dict stats;
             stats["advances"] = found.advances;
             stats["cache_hits"] = found.cache_hits;
             stats["unique_states"] = found.unique_states;
             stats["bytes_states"] = found.bytes_states;
             stats["dead_restarts"] = found.restarts;
             stats["stacks"] = found.stacks;
             stats["seconds"] = found.seconds;
             const auto [asked, known] = self.memo_counts();
             stats["words_read"] = asked;
             stats["words_known"] = known;
             return stats;
           })
      .def("reset_stats", [](Searcher& self) { self.reset_counts(); })
      .def("forget", [](Searcher& self) { self.cache().clear(); });
}

}  // namespace

void bind_hhmm(nb::module_& module) {
  bind_state(module);
  bind_grammar(module);
  bind_search(module);
}

}  // namespace treelm::bindings
