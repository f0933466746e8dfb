// N-gram models one call at a time: states are handles, and a word costs one look-up. What needs a word of explanation
// (a state of another model, a word that is none) is left to the Python side: the answer is None.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backoff/similar_texts.h"
#include "backoff/table.h"
#include "base/hashed_places.h"
#include "base/interrupt.h"
#include "base/pairwise_sum.h"
#include "base/prefetch.h"
#include "base/random.h"
#include "bindings/bindings.h"
#include "text/word_encoder.h"

namespace treelm::bindings {

namespace {

constexpr std::size_t model_bytes = 8;
constexpr char state_version = 1;
// Strings of a list that are asked for before they are read.
constexpr std::size_t soon = 12;

// The words that matter for the next one.
struct NgramState {
  std::array<char, model_bytes> model{};  // which model it belongs to
  bool first = false;                     // no word has been seen yet, where that changes the symbol of a word
  std::uint32_t length = 0;
  std::array<std::uint32_t, max_columns> words;  // most recent first
  // The context of these words in a table that has been asked; it is no part of what the state is.
  const BackoffTable* table = nullptr;
  std::uint32_t context = empty_context;

  bool same(const NgramState& other) const {
    return length == other.length && first == other.first && model == other.model &&
           std::equal(words.begin(), words.begin() + length, other.words.begin());
  }
  std::uint64_t hash() const {
    std::uint64_t sum = length * 2 + (first ? 1 : 0);
    for (std::uint32_t i = 0; i < length; ++i) sum = mix64(sum ^ words[i]);
    return sum;
  }
  // Natural numbers with 7 bits per byte, the lowest first.
  std::string payload() const {
    std::string packed(1, first ? '\1' : '\0');
    for (std::uint32_t i = 0; i < length; ++i) {
      std::uint32_t rest = words[i];
      for (; rest > 0x7F; rest >>= 7) packed.push_back(static_cast<char>((rest & 0x7F) | 0x80));
      packed.push_back(static_cast<char>(rest));
    }
    return packed;
  }
  nb::tuple context_tuple() const {
    nb::list ids;
    for (std::uint32_t i = 0; i < length; ++i) ids.append(words[i]);
    return nb::tuple(ids);
  }
};

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

std::string_view model_of(const NgramState& state) { return {state.model.data(), state.model.size()}; }

// A state as a Python object. One is made and freed for every word, so its type is a plain one: nanobind would enter
// each instance into a map and take it out again.
struct StateObject {
  PyObject head;
  NgramState value;
};

PyTypeObject* state_type = nullptr;

const NgramState& state_in(PyObject* object) { return reinterpret_cast<const StateObject*>(object)->value; }

NgramState& new_state(nb::object& owner, PyTypeObject* type = state_type) {
  StateObject* made = PyObject_New(StateObject, type);
  if (made == nullptr) throw nb::python_error();
  owner = nb::steal(reinterpret_cast<PyObject*>(made));
  return *new (&made->value) NgramState();
}

}  // namespace

}  // namespace treelm::bindings

namespace nanobind::detail {

// What nanobind's functions are given and return is a copy.
template <>
struct type_caster<treelm::bindings::NgramState> {
  NB_TYPE_CASTER(treelm::bindings::NgramState, const_name("treelm._native.NgramState"))

  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    if (Py_TYPE(source.ptr()) != treelm::bindings::state_type) return false;
    value = treelm::bindings::state_in(source.ptr());
    return true;
  }
  static handle from_cpp(const Value& state, rv_policy, cleanup_list*) {
    object owner;
    treelm::bindings::new_state(owner) = state;
    return owner.release();
  }
};

}  // namespace nanobind::detail

namespace treelm::bindings {

namespace {

// The log probabilities of a sentence: those of its words, and of its end.
struct NgramSentence {
  std::vector<double> log_probs;
  std::vector<bool> oov;
};

class NgramReader {
 public:
  NgramReader(std::shared_ptr<const BackoffTable> table, std::shared_ptr<const WordEncoder> words,
              std::string_view model, std::uint32_t start, std::uint32_t end, bool unknown_by_option,
              nb::type_object step)
      : table_(std::move(table)),
        words_(std::move(words)),
        step_(std::move(step)),
        width_(table_->shape().widths.front()),
        start_(start),
        end_(end),
        unknown_by_option_(unknown_by_option) {
    if (!table_->shape().sequence) throw Error(ErrorCode::argument, "the table is not one of word sequences");
    if (model.size() != model_bytes) throw Error(ErrorCode::argument, "a model is identified by 8 bytes");
    if (words_->size() > table_->shape().outcomes) throw Error(ErrorCode::argument, "the table has fewer words");
    if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(step_.ptr()), &PyTuple_Type))
      throw nb::type_error("a step must be a kind of tuple");
    std::copy(model.begin(), model.end(), empty_.model.begin());
    empty_.table = table_.get();
    first_context_ = width_ == 0 ? empty_context : table_->context_after(&start_, 1);
  }

  NgramState initial(bool position_matters) const {
    NgramState state = empty_;
    state.first = position_matters;
    if (width_ != 0) {
      state.words[state.length++] = start_;
      state.context = first_context_;
    }
    return state;
  }
  NgramState fragment() const { return empty_; }

  // None if the Python side must look at it.
  nb::object advance(nb::handle state, nb::handle word) {
    const NgramState* own = own_state(state);
    if (own == nullptr) return nb::none();
    const std::uint32_t id = word_id(word, own->first);
    if (id == none || (unknown_by_option_ && id == WordEncoder::unknown)) return nb::none();
    return step(*own, id);
  }
  nb::object advance_id(const NgramState& state, std::uint32_t word) { return step(state, word); }

  double finish(const NgramState& state) const {
    std::uint32_t context = context_of(state);
    return table_->read_word(context, end_);
  }

  // How many words the longest n-gram of the table has that a word ends in a state; 0 if there is none.
  std::uint32_t matched_words(const NgramState& state, std::uint32_t word) const {
    return table_->matched_words(context_of(state), word);
  }

  // Log probabilities, states, and the number of pairs that differ; None as in `advance`.
  nb::object advance_many(nb::sequence states, nb::sequence words) {
    const std::size_t count = nb::len(states);
    if (nb::len(words) != count) throw Error(ErrorCode::argument, "every state needs one word");
    std::vector<nb::object> kept;  // they live until the work is done
    std::vector<const NgramState*> own(count);
    std::vector<std::uint32_t> ids(count), place(count), firsts;
    kept.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      kept.push_back(states[i]);
      own[i] = own_state(kept.back());
      if (own[i] == nullptr) return nb::none();
      const nb::object word = words[i];
      ids[i] = word_id(word, own[i]->first);
      if (ids[i] == none) return nb::none();
    }
    HashedPlaces places;
    const auto hash_of = [&](std::size_t i) { return mix64(own[i]->hash() ^ ids[i]); };
    for (std::size_t i = 0; i < count; ++i) {
      place[i] = places.find(hash_of(i), [&](std::uint32_t p) {
        return ids[firsts[p]] == ids[i] && (own[firsts[p]] == own[i] || own[firsts[p]]->same(*own[i]));
      });
      if (place[i] != none) continue;
      place[i] = static_cast<std::uint32_t>(firsts.size());
      firsts.push_back(static_cast<std::uint32_t>(i));
      places.add(place[i], [&](std::uint32_t p) { return hash_of(firsts[p]); });
    }
    std::vector<double> distinct(firsts.size()), log_probs(count);
    std::vector<nb::object> after(firsts.size());
    for (std::size_t p = 0; p < firsts.size(); ++p) {
      distinct[p] = read(*own[firsts[p]], ids[firsts[p]], [&]() -> NgramState& { return new_state(after[p]); });
    }
    nb::list found;
    for (std::size_t i = 0; i < count; ++i) {
      log_probs[i] = distinct[place[i]];
      found.append(after[place[i]]);
    }
    advances_ += firsts.size();
    return nb::make_tuple(give(std::move(log_probs)), found, firsts.size());
  }

  // The sum of a sentence, the log probability of its end if that counts, whether it is impossible, and the scores of
  // its words; None as in `advance`.
  nb::object score(nb::handle sentence, bool eos) {
    std::vector<std::uint32_t> ids;
    if (!encode(sentence, ids)) return nb::none();
    const std::size_t count = ids.size();
    NgramSentence found;
    found.oov.resize(count);
    for (std::size_t i = 0; i < count; ++i) found.oov[i] = words_->is_unknown(ids[i]);
    if (eos) ids.push_back(end_);
    found.log_probs.resize(count + 1);  // without an end, 0 for it
    table_->read_words(first_context_, ids, found.log_probs.data());
    const nb::object end = eos ? nb::object(nb::float_(found.log_probs.back())) : nb::none();
    // What counts last is impossible.
    const bool lost = !ids.empty() && std::isinf(found.log_probs[ids.size() - 1]);
    const double total = piece_sum(found.log_probs.data(), found.log_probs.size());
    return nb::make_tuple(total, end, lost, nb::cast(std::move(found)));
  }

  // The sums of the sentences of lists that have much in common, their ends included; None as in `advance`. One list
  // after the other, so that its texts are still in the caches when they are scored.
  nb::object score_similar(nb::sequence lists) const {
    std::vector<nb::object> kept;  // they live until their list is done
    std::vector<std::string_view> texts;
    std::vector<double> sums;
    SimilarTexts similar(*table_, *words_, first_context_, end_, unknown_by_option_);
    for (nb::handle list : lists) {
      kept.clear();
      texts.clear();
      const bool is_list = PyList_Check(list.ptr());
      const nb::object held = is_list ? nb::borrow(list) : nb::object(nb::tuple(list));
      const std::size_t count = nb::len(held);
      const auto at = [&](std::size_t i) {
        const auto place = static_cast<Py_ssize_t>(i);
        return is_list ? PyList_GetItem(held.ptr(), place) : PyTuple_GetItem(held.ptr(), place);
      };
      for (std::size_t i = 0; i < count; ++i) {
        // Strings lie anywhere: those that come soon are asked for, with their first letters.
        if (i + soon < count)
          for (const std::size_t line : {0, 64}) prefetch(reinterpret_cast<const char*>(at(i + soon)) + line);
        PyObject* const sentence = at(i);
        Py_ssize_t size = 0;
        const char* data = PyUnicode_Check(sentence) ? PyUnicode_AsUTF8AndSize(sentence, &size) : nullptr;
        if (data == nullptr) {
          PyErr_Clear();
          return nb::none();
        }
        kept.push_back(nb::borrow(sentence));
        texts.emplace_back(data, static_cast<std::size_t>(size));
      }
      const std::size_t before = sums.size();
      sums.resize(before + texts.size());
      const bool done = released([&] { return similar.score(texts, sums.data() + before); });
      if (!done) return nb::none();
    }
    return nb::cast(give(std::move(sums)));
  }

  std::uint64_t advances() const { return advances_; }
  void reset() { advances_ = 0; }

 private:
  const NgramState* own_state(nb::handle state) const {
    if (Py_TYPE(state.ptr()) != state_type) return nullptr;
    const NgramState& own = state_in(state.ptr());
    return own.model == empty_.model ? &own : nullptr;
  }

  // The id of a word or of an id, or `none`.
  std::uint32_t word_id(nb::handle word, bool first) const {
    if (PyUnicode_Check(word.ptr())) {
      Py_ssize_t size = 0;
      const char* data = PyUnicode_AsUTF8AndSize(word.ptr(), &size);
      if (data != nullptr) return id_of({data, static_cast<std::size_t>(size)}, first ? 0 : 1);
      PyErr_Clear();
      return none;
    }
    if (!PyLong_Check(word.ptr())) return none;
    const unsigned long id = PyLong_AsUnsignedLong(word.ptr());
    if (id == std::numeric_limits<unsigned long>::max() && PyErr_Occurred() != nullptr) PyErr_Clear();
    return id < words_->size() ? static_cast<std::uint32_t>(id) : none;
  }

  std::uint32_t id_of(std::string_view word, std::uint64_t position) const {
    const std::uint32_t id = words_->find_settled(word, false);
    if (id != none) return id;
    if (word.empty() || is_reserved_word(word) || std::any_of(word.begin(), word.end(), is_white_space)) return none;
    return words_->encode(word, position);
  }

  // The ids of a string that is split at white space, or of a list or tuple of words.
  bool encode(nb::handle sentence, std::vector<std::uint32_t>& ids) const {
    const auto add = [&](std::uint32_t id) {
      ids.push_back(id);
      return id != none && !(unknown_by_option_ && id == WordEncoder::unknown);
    };
    if (PyUnicode_Check(sentence.ptr())) {
      Py_ssize_t size = 0;
      const char* at = PyUnicode_AsUTF8AndSize(sentence.ptr(), &size);
      if (at == nullptr) {
        PyErr_Clear();
        return false;
      }
      const char* const stop = at + size;
      for (;;) {
        at = std::find_if_not(at, stop, is_white_space);
        if (at == stop) return true;
        const char* const end = std::find_if(at, stop, is_white_space);
        if (!add(id_of({at, static_cast<std::size_t>(end - at)}, ids.size()))) return false;
        at = end;
      }
    }
    if (!PyTuple_CheckExact(sentence.ptr()) && !PyList_CheckExact(sentence.ptr())) return false;
    for (nb::handle word : nb::borrow<nb::sequence>(sentence))
      if (!PyUnicode_Check(word.ptr()) || !add(word_id(word, ids.empty()))) return false;
    return true;
  }

  std::uint32_t context_of(const NgramState& state) const {
    return state.table == table_.get() ? state.context : table_->context_after(state.words.data(), state.length);
  }

  // Reads a word. What the look-up needs is asked for first, and comes while `make` makes the object of the next state.
  template <class Make>
  double read(const NgramState& state, std::uint32_t word, const Make& make) const {
    std::uint32_t context = context_of(state);
    const BackoffTable::Sought sought = table_->seek(context, state.length == 0 ? none : state.words[0], word);
    NgramState& next = make();
    table_->fetch(sought);
    next.model = empty_.model;
    next.table = table_.get();
    next.words[0] = word;
    const std::uint32_t most = std::min(state.length + 1, width_);
    if (most > 1) std::copy_n(state.words.begin(), most - 1, next.words.begin() + 1);
    const double log_prob = table_->read_sought(sought, context, word);
    next.context = context;
    next.length = std::min(table_->depth_of(context), most);
    table_->fetch_back(context);
    return log_prob;
  }

  nb::object step(const NgramState& state, std::uint32_t word) {
    nb::object next, made;
    const double log_prob = read(state, word, [&]() -> NgramState& {
      made = nb::steal(PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(step_.ptr()), 2));
      if (!made.is_valid()) throw nb::python_error();
      return new_state(next);
    });
    ++advances_;
    if (PyTuple_SetItem(made.ptr(), 0, PyFloat_FromDouble(log_prob)) != 0 ||
        PyTuple_SetItem(made.ptr(), 1, next.release().ptr()) != 0)
      throw nb::python_error();
    return made;
  }

  std::shared_ptr<const BackoffTable> table_;
  std::shared_ptr<const WordEncoder> words_;
  nb::type_object step_;
  std::uint32_t width_, start_, end_;
  bool unknown_by_option_;
  NgramState empty_;
  std::uint32_t first_context_ = empty_context;
  std::uint64_t advances_ = 0;
};

// An object without words that belongs to no model, for __init__ to fill.
PyObject* make_state(PyTypeObject* type, PyObject*, PyObject*) {
  nb::object made;
  try {
    new_state(made, type);
  } catch (nb::python_error& error) {
    error.restore();
  }
  return made.release().ptr();
}

void free_state(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

Py_hash_t hash_state(PyObject* self) { return static_cast<Py_hash_t>(state_in(self).hash() >> 1); }

PyObject* compare_states(PyObject* self, PyObject* other, int operation) {
  if (Py_TYPE(other) != state_type || (operation != Py_EQ && operation != Py_NE))
    return nb::borrow(Py_NotImplemented).release().ptr();
  return PyBool_FromLong(state_in(self).same(state_in(other)) == (operation == Py_EQ) ? 1 : 0);
}

void init_state(nb::handle self, const std::vector<std::uint32_t>& context, bool first, const nb::bytes& model) {
  if (Py_TYPE(self.ptr()) != state_type) throw nb::type_error("a state of an n-gram model is needed");
  if (context.size() > max_columns || model.size() != model_bytes)
    throw Error(ErrorCode::argument, "a state has 32 words at most, and 8 bytes that identify its model");
  NgramState state;
  std::copy_n(model.c_str(), model_bytes, state.model.begin());
  state.first = first;
  state.length = static_cast<std::uint32_t>(context.size());
  std::copy(context.begin(), context.end(), state.words.begin());
  reinterpret_cast<StateObject*>(self.ptr())->value = state;
}

void bind_state(nb::module_& module) {
  std::array<PyType_Slot, 5> slots{{{Py_tp_new, reinterpret_cast<void*>(make_state)},
                                    {Py_tp_dealloc, reinterpret_cast<void*>(free_state)},
                                    {Py_tp_hash, reinterpret_cast<void*>(hash_state)},
                                    {Py_tp_richcompare, reinterpret_cast<void*>(compare_states)},
                                    {0, nullptr}}};
  PyType_Spec spec{"treelm._native.NgramState", sizeof(StateObject), 0, Py_TPFLAGS_DEFAULT, slots.data()};
  const nb::object type = nb::steal(PyType_FromSpec(&spec));
  if (!type.is_valid()) throw nb::python_error();
  state_type = reinterpret_cast<PyTypeObject*>(nb::object(type).release().ptr());  // it lives as long as the program
  const auto def = [&](const char* name, auto&& function, const auto&... extra) {
    nb::setattr(type, name, nb::cpp_function(function, nb::name(name), nb::scope(type), nb::is_method(), extra...));
  };
  const auto property = [&](const char* name, auto&& getter) {
    const nb::object get = nb::cpp_function(getter, nb::name(name), nb::scope(type), nb::is_method());
    nb::setattr(type, name, nb::handle(reinterpret_cast<PyObject*>(&PyProperty_Type))(get));
  };
  def("__init__", &init_state, nb::arg("context"), nb::arg("first"), nb::arg("model"));
  property("context", [](const NgramState& self) { return self.context_tuple(); });
  property("first", [](const NgramState& self) { return self.first; });
  property("model", [](const NgramState& self) { return bytes_of(model_of(self)); });
  def("payload", [](const NgramState& self) { return bytes_of(self.payload()); });
  def("to_bytes", [](const NgramState& self) {
    return bytes_of(std::string(1, state_version).append(model_of(self)) + self.payload());
  });
  def("__repr__", [](const NgramState& self) {
    return nb::str("NgramState(context={!r}, first={!r}, model={!r})")
        .format(self.context_tuple(), self.first, bytes_of(model_of(self)));
  });
  def("__reduce__", [](const NgramState& self) {
    return nb::make_tuple(nb::handle(reinterpret_cast<PyObject*>(state_type)),
                          nb::make_tuple(self.context_tuple(), self.first, bytes_of(model_of(self))));
  });
  module.attr("NgramState") = type;
}

// What decoders call for every word, without nanobind's search for the right overload.
PyObject* advance_fast(PyObject* reader, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (count != 2 || arguments[0] == Py_None || arguments[1] == Py_None) {
    PyErr_SetString(PyExc_TypeError, "advance() takes a state and a word");
    return nullptr;
  }
  try {
    return nb::inst_ptr<NgramReader>(reader)->advance(arguments[0], arguments[1]).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyMethodDef advance_method{"advance", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(advance_fast)),
                           METH_FASTCALL, "advance(state, word)"};

}  // namespace

void bind_ngram_reader(nb::module_& module) {
  bind_state(module);
  nb::class_<NgramSentence>(module, "NgramSentence")
      .def(
          "word_rows",
          [](const NgramSentence& self, std::size_t) {
            nb::list values, marks;
            for (std::size_t i = 0; i < self.oov.size(); ++i) {
              values.append(self.log_probs[i]);
              marks.append(static_cast<bool>(self.oov[i]));
            }
            return nb::make_tuple(values, marks);
          },
          nb::arg("index"));
  nb::class_<NgramReader>(module, "NgramReader")
      .def(
          "__init__",
          [](NgramReader* self, std::shared_ptr<BackoffTable> table, std::shared_ptr<WordEncoder> words,
             const nb::bytes& model, std::uint32_t start, std::uint32_t end, bool unknown_by_option,
             nb::type_object step) {
            new (self) NgramReader(std::move(table), std::move(words), {model.c_str(), model.size()}, start, end,
                                   unknown_by_option, std::move(step));
          },
          nb::arg("table"), nb::arg("words"), nb::arg("model"), nb::kw_only(), nb::arg("start"), nb::arg("end"),
          nb::arg("unknown_by_option"), nb::arg("step"))
      .def("initial", &NgramReader::initial, nb::kw_only(), nb::arg("position_matters"))
      .def("fragment", &NgramReader::fragment)
      .def_prop_ro("advance",
                   [](nb::handle_t<NgramReader> self) {
                     return nb::steal(PyCFunction_NewEx(&advance_method, self.ptr(), nullptr));
                   })
      .def("advance_id", &NgramReader::advance_id, nb::arg("state"), nb::arg("word"))
      .def("finish", &NgramReader::finish, nb::arg("state"))
      .def("matched_words", &NgramReader::matched_words, nb::arg("state"), nb::arg("word"))
      .def("advance_many", &NgramReader::advance_many, nb::arg("states"), nb::arg("words"))
      .def("score_similar", &NgramReader::score_similar, nb::arg("lists"))
      .def("score", &NgramReader::score, nb::arg("sentence"), nb::arg("eos"))
      .def_prop_ro("advances", &NgramReader::advances)
      .def("reset", &NgramReader::reset);
}

}  // namespace treelm::bindings
