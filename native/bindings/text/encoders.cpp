#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>

#include "bindings/bindings.h"
#include "text/encoder.h"
#include "text/stream_rule.h"
#include "text/word_encoder.h"

namespace treelm::bindings {

namespace {

using Late = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;

nb::list list_of(const Symbols& symbols) {
  nb::list result;
  for (std::uint32_t id = 0; id < symbols.size(); ++id) result.append(nb::str(symbols[id].data(), symbols[id].size()));
  return result;
}

// The UTF-8 bytes of a Python string, which owns them.
std::string_view bytes_of(nb::handle word) {
  if (!PyUnicode_Check(word.ptr())) throw nb::type_error("a word must be a string");
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(word.ptr(), &size);
  if (data == nullptr) {
    PyErr_Clear();  // a lone surrogate
    const nb::object shown = nb::steal(PyUnicode_AsEncodedString(word.ptr(), "ascii", "backslashreplace"));
    if (!shown.is_valid()) throw nb::python_error();
    throw Error(ErrorCode::bad_token, shown_word(PyBytes_AsString(shown.ptr())));
  }
  return {data, static_cast<std::size_t>(size)};
}

// A new array for the caller to do with as he likes.
nb::ndarray<nb::numpy, std::uint32_t, nb::ndim<1>> give_writable(std::vector<std::uint32_t> values) {
  auto* held = new std::vector<std::uint32_t>(std::move(values));
  nb::capsule owner(held, [](void* pointer) noexcept { delete static_cast<std::vector<std::uint32_t>*>(pointer); });
  return {held->data(), {held->size()}, owner};
}

// Runs `use` without the interpreter, and alone.
template <class Use>
auto locked(TextEncoder& encoder, Use use) {
  const Unlocked unlocked;
  const std::scoped_lock lock(encoder.mutex());
  return use();
}

void bind_vocabulary(nb::module_& module) {
  nb::class_<WordEncoder>(module, "WordEncoder")
      .def(
          "__init__",
          [](WordEncoder* self, const std::vector<std::string>& symbols, const nb::bytes& is_signature,
             const std::vector<Late>& late, std::optional<SignatureRules> rules) {
            const auto* flags = reinterpret_cast<const unsigned char*>(is_signature.c_str());
            std::vector<WordEncoder::LateEntry> entries;
            for (const auto& [id, sentence, position] : late) entries.push_back({id, sentence, position});
            new (self)
                WordEncoder(symbols, std::vector<bool>(flags, flags + is_signature.size()), entries, std::move(rules));
          },
          nb::arg("symbols"), nb::arg("is_signature"), nb::arg("late"), nb::arg("rules").none())
      .def("__len__", &WordEncoder::size)
      .def("encode", &WordEncoder::encode, nb::arg("word"), nb::arg("position"))
      .def("encode_training", &WordEncoder::encode_training, nb::arg("word"), nb::arg("sentence"), nb::arg("position"))
      .def(
          "encode_words",
          [](const WordEncoder& self, nb::typed<nb::sequence, nb::str> words) {
            std::vector<std::uint32_t> ids;
            for (nb::handle word : words) ids.push_back(self.encode(bytes_of(word), ids.size()));
            return give_writable(std::move(ids));
          },
          nb::arg("words"));
}

}  // namespace

void bind_word_encoder(nb::module_& module) {
  bind_vocabulary(module);
  nb::class_<TextEncoder>(module, "TextEncoder")
      .def(
          "__init__",
          [](TextEncoder* self, std::shared_ptr<WordEncoder> vocabulary, bool training, std::uint64_t first_sentence) {
            if (vocabulary) {
              new (self) TextEncoder(std::move(vocabulary), training, first_sentence);
            } else {
              new (self) TextEncoder();
            }
          },
          nb::arg("vocabulary").none(), nb::kw_only(), nb::arg("training"), nb::arg("first_sentence"))
      .def(
          "feed",
          [](TextEncoder& self, const nb::bytes& block) {
            const std::string_view bytes(block.c_str(), block.size());
            locked(self, [&] { self.feed(bytes); });
          },
          nb::arg("block"))
      .def("finish", [](TextEncoder& self) { locked(self, [&] { self.finish(); }); })
      .def(
          "add_sentence",
          [](TextEncoder& self, nb::typed<nb::sequence, nb::str> words) {
            locked(self, [&] { self.begin_sentence(); });
            for (nb::handle word : words) {
              const std::string_view bytes = bytes_of(word);
              const std::scoped_lock lock(self.mutex());
              self.add_word(bytes);
            }
          },
          nb::arg("words"))
      .def("take",
           [](TextEncoder& self) {
             TextEncoder::Batch batch = locked(self, [&] { return self.take(); });
             return nb::make_tuple(give(std::move(batch.ids)), give(std::move(batch.starts)),
                                   give(std::move(batch.documents)));
           })
      .def("words",
           [](TextEncoder& self) {
             const std::scoped_lock lock(self.mutex());
             return list_of(self.words());
           })
      .def("counts", [](TextEncoder& self) { return give(locked(self, [&] { return std::vector(self.counts()); })); })
      .def("first_counts",
           [](TextEncoder& self) { return give(locked(self, [&] { return std::vector(self.first_counts()); })); })
      .def_prop_ro("sentences", &TextEncoder::sentences)
      .def_prop_ro("tokens", &TextEncoder::tokens)
      .def_prop_ro("unknown", &TextEncoder::unknown);

  nb::class_<StreamRule>(module, "StreamRule")
      .def(
          "__init__",
          [](StreamRule* self, std::uint64_t seed, double probability, std::uint64_t start_after,
             std::optional<SignatureRules> signatures) {
            new (self) StreamRule(seed, probability, start_after, std::move(signatures));
          },
          nb::kw_only(), nb::arg("seed"), nb::arg("probability"), nb::arg("start_after"), nb::arg("signatures").none())
      .def(
          "feed",
          [](StreamRule& self, TextEncoder& encoder, const Array<std::uint32_t>& ids,
             const Array<std::uint64_t>& starts) {
            const std::span<const std::uint32_t> id_span(ids.data(), ids.size());
            const std::span<const std::uint64_t> start_span(starts.data(), starts.size());
            locked(encoder, [&] { self.feed(encoder.words(), id_span, start_span); });
          },
          nb::arg("encoder"), nb::arg("ids"), nb::arg("starts"))
      .def("entry_sentence", [](const StreamRule& self) { return give(std::vector(self.entry_sentence())); })
      .def("entry_position", [](const StreamRule& self) { return give(std::vector(self.entry_position())); })
      .def("replaced", [](const StreamRule& self) { return give(std::vector(self.replaced())); })
      .def("signatures", [](const StreamRule& self) { return list_of(self.signatures()); })
      .def("signature_counts", [](const StreamRule& self) { return give(std::vector(self.signature_counts())); });
}

}  // namespace treelm::bindings
