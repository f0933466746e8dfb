// Language models for the decoder: our own without Python in the loop, any other through its Python methods.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "bindings/bindings.h"
#include "bindings/hhmm/handles.h"
#include "bindings/slm/handles.h"
#include "translation/hhmm_reader.h"
#include "translation/mixture_reader.h"
#include "translation/model_reader.h"
#include "translation/ngram_reader.h"
#include "translation/phrase_table.h"
#include "translation/slm_reader.h"

namespace treelm::bindings {

namespace {

// States are kept in a list, each once; all calls take the interpreter's lock.
class PythonReader : public ModelReader {
 public:
  PythonReader(nb::handle model, std::shared_ptr<const PhraseTable> phrases)
      : phrases_(std::move(phrases)), parts_(std::make_unique<Parts>()) {
    parts_->model = nb::borrow(model);
  }
  ~PythonReader() override {
    const nb::gil_scoped_acquire acquire;
    parts_.reset();
  }

  void begin(std::span<const std::string> own_words) override {
    const nb::gil_scoped_acquire acquire;
    parts_->words.clear();
    parts_->states.clear();
    parts_->keys.clear();
    parts_->place_of_state.clear();
    parts_->place_of_key.clear();
    own_words_ = own_words;
  }
  ModelState initial() override {
    const nb::gil_scoped_acquire acquire;
    return place_of(parts_->model.attr("initial")());
  }
  Cost cost() const override { return Cost::batches; }
  void read(PhraseReading& phrase) override { read_many({&phrase, 1}); }

  // The first words of all phrases, then the second ones, and so on.
  void read_many(std::span<PhraseReading> phrases) override {
    const nb::gil_scoped_acquire acquire;
    for (PhraseReading& each : phrases) each.log_prob = 0;
    for (std::size_t at = 0;; ++at) {
      nb::list states, words;
      std::vector<PhraseReading*> asked;
      for (PhraseReading& each : phrases) {
        if (at >= each.words.size()) continue;
        asked.push_back(&each);
        states.append(parts_->states[each.state]);
        words.append(word(each.words[at]));
      }
      if (asked.empty()) return;
      hear_signals();
      const nb::object steps = parts_->model.attr("advance_many")(states, words);
      const nb::object log_probs = steps.attr("log_probs"), after = steps.attr("states");
      for (std::size_t i = 0; i < asked.size(); ++i) {
        asked[i]->log_prob += std::max(log_floor, nb::cast<double>(nb::object(log_probs[i])));
        asked[i]->state = place_of(after[i]);
      }
    }
  }

  double finish(ModelState state) override {
    const nb::gil_scoped_acquire acquire;
    return std::max(log_floor, nb::cast<double>(parts_->model.attr("finish")(parts_->states[state])));
  }
  std::uint64_t key(ModelState state) override { return parts_->keys[state]; }

  double estimate(std::span<const std::uint32_t> words) override {
    const nb::gil_scoped_acquire acquire;
    nb::list strings;
    for (const std::uint32_t each : words) strings.append(word(each));
    const double floor = log_floor * static_cast<double>(words.size());
    return std::max(floor, nb::cast<double>(parts_->model.attr("estimate")(nb::tuple(strings))));
  }

 private:
  struct Parts {
    nb::object model;
    nb::dict words, place_of_state, place_of_key;
    std::vector<nb::object> states;
    std::vector<std::uint64_t> keys;
  };

  nb::object word(std::uint32_t id) {
    const nb::int_ number(id);
    if (parts_->words.contains(number)) return parts_->words[number];
    const Symbols& symbols = phrases_->words();
    const std::string_view text = id < symbols.size() ? symbols[id] : std::string_view(own_words_[id - symbols.size()]);
    // A boundary of sentences in a source text is a word like any other that no model knows.
    const nb::str made = is_reserved_word(text) ? nb::str("<unk>") : nb::str(text.data(), text.size());
    parts_->words[number] = made;
    return made;
  }

  ModelState place_of(const nb::object& state) {
    if (parts_->place_of_state.contains(state)) return nb::cast<ModelState>(nb::object(parts_->place_of_state[state]));
    const ModelState place = parts_->states.size();
    const nb::object key = parts_->model.attr("key")(state);
    if (!parts_->place_of_key.contains(key)) parts_->place_of_key[key] = place;
    parts_->keys.push_back(nb::cast<std::uint64_t>(nb::object(parts_->place_of_key[key])));
    parts_->states.push_back(state);
    parts_->place_of_state[state] = place;
    return place;
  }

  std::shared_ptr<const PhraseTable> phrases_;
  std::span<const std::string> own_words_;
  std::unique_ptr<Parts> parts_;
};

class PythonModel : public SearchModel {
 public:
  PythonModel(nb::object model, std::shared_ptr<const PhraseTable> phrases)
      : model_(std::move(model)), phrases_(std::move(phrases)) {}
  std::unique_ptr<ModelReader> reader() const override {
    const nb::gil_scoped_acquire acquire;
    return std::make_unique<PythonReader>(model_, phrases_);
  }

 private:
  nb::object model_;
  std::shared_ptr<const PhraseTable> phrases_;
};

std::shared_ptr<SearchModel> ngram_model(const PhraseTable& phrases, std::shared_ptr<BackoffTable> table,
                                         std::shared_ptr<WordEncoder> words, std::uint32_t start, std::uint32_t end,
                                         std::optional<double> oov_log_prob) {
  if (words->size() > table->shape().outcomes) throw Error(ErrorCode::argument, "the table has fewer words");
  auto map = std::make_shared<WordMap>(phrases.words(), std::move(words));
  return std::make_shared<NgramSearchModel>(std::move(table), std::move(map),
                                            NgramSearchOptions{start, end, oov_log_prob});
}

std::shared_ptr<SearchModel> hhmm_model(const PhraseTable& phrases, const GrammarHandle& grammar,
                                        std::shared_ptr<WordEncoder> words, std::size_t beam, double ratio,
                                        double epsilon, bool single, const std::string& key, std::uint32_t best,
                                        std::size_t state_bytes) {
  if (words->size() > grammar.grammar->words()) throw Error(ErrorCode::argument, "the grammar has fewer words");
  auto map = std::make_shared<WordMap>(phrases.words(), std::move(words));
  return std::make_shared<HhmmSearchModel>(grammar.grammar, std::move(map), HhmmOptions{beam, ratio, epsilon, single},
                                           beam_key_of(key, best), state_bytes);
}

std::shared_ptr<SearchModel> slm_model(const PhraseTable& phrases, const SlmSearcher& searcher,
                                       std::shared_ptr<WordEncoder> words, const Array<double>& unigrams,
                                       const Array<std::uint32_t>& topics, const Array<double>& shares,
                                       std::size_t state_bytes) {
  const SlmSearch& search = searcher.search();
  if (words->size() > search.shape().words) throw Error(ErrorCode::argument, "the model has fewer words");
  mixture_of(search.topics(), topics, shares);
  auto map = std::make_shared<WordMap>(phrases.words(), std::move(words));
  return std::make_shared<SlmSearchModel>(std::make_shared<const SlmSearch>(search), std::move(map), copy(unigrams),
                                          FixedTopics{copy(topics), copy(shares)}, state_bytes);
}

}  // namespace

void bind_search_models(nb::module_& module) {
  nb::class_<SearchModel>(module, "SearchModel");
  module.def("ngram_search_model", &ngram_model, nb::arg("phrases"), nb::arg("table"), nb::arg("words"), nb::kw_only(),
             nb::arg("start"), nb::arg("end"), nb::arg("oov_log_prob").none());
  module.def("hhmm_search_model", &hhmm_model, nb::arg("phrases"), nb::arg("grammar"), nb::arg("words"), nb::kw_only(),
             nb::arg("beam"), nb::arg("ratio"), nb::arg("epsilon"), nb::arg("single"), nb::arg("key"), nb::arg("best"),
             nb::arg("state_bytes"));
  module.def("slm_search_model", &slm_model, nb::arg("phrases"), nb::arg("search"), nb::arg("words"), nb::kw_only(),
             nb::arg("unigrams"), nb::arg("topics"), nb::arg("shares"), nb::arg("state_bytes"));
  module.def(
      "mixture_search_model",
      [](const std::vector<std::shared_ptr<SearchModel>>& parts,
         const std::vector<double>& weights) -> std::shared_ptr<SearchModel> {
        return std::make_shared<MixtureSearchModel>(
            std::vector<std::shared_ptr<const SearchModel>>(parts.begin(), parts.end()), weights);
      },
      nb::arg("parts"), nb::arg("weights"));
  module.def(
      "python_search_model",
      [](std::shared_ptr<PhraseTable> phrases, nb::object model) -> std::shared_ptr<SearchModel> {
        return std::make_shared<PythonModel>(std::move(model), std::move(phrases));
      },
      nb::arg("phrases"), nb::arg("model"));
}

}  // namespace treelm::bindings
