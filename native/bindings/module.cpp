#include <string>

#include "base/error.h"
#include "base/version.h"
#include "bindings/bindings.h"

namespace {

PyObject* kernel_error = nullptr;

// KernelError(code, message, line, column): the Python side turns it into one of its families.
void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const treelm::Error& error) {
    const std::string code(treelm::code_name(error.code()));
    nb::object arguments = nb::make_tuple(code.c_str(), error.what(), error.place().line, error.place().column);
    PyErr_SetObject(kernel_error, arguments.ptr());
  }
}

}  // namespace

NB_MODULE(_native, module) {
  nb::set_leak_warnings(false);  // profiles cached for the life of the process are no leak
  module.doc() = "C++ kernels of treelm; imported only by the modules that wrap them.";
  module.attr("CORE_VERSION") = treelm::core_version;
  kernel_error = PyErr_NewException("treelm._native.KernelError", PyExc_RuntimeError, nullptr);
  module.attr("KernelError") = nb::handle(kernel_error);
  nb::register_exception_translator(translate);
  nb::dict sentences;
  for (int i = 0; i < treelm::error_code_count; ++i) {
    const auto code = static_cast<treelm::ErrorCode>(i);
    const std::string_view name = treelm::code_name(code), sentence = treelm::code_sentence(code);
    sentences[nb::str(name.data(), name.size())] = nb::str(sentence.data(), sentence.size());
  }
  module.attr("ERROR_SENTENCES") = sentences;
  treelm::bindings::bind_counts(module);
  treelm::bindings::bind_backoff(module);
  treelm::bindings::bind_table_quantizer(module);
  treelm::bindings::bind_arpa(module);
  treelm::bindings::bind_event_templates(module);
  treelm::bindings::bind_hhmm(module);
  treelm::bindings::bind_profile(module);
  treelm::bindings::bind_packed_trees(module);
  treelm::bindings::bind_slm(module);
  treelm::bindings::bind_split_merge(module);
  treelm::bindings::bind_binary_trees(module);
  treelm::bindings::bind_chart(module);
  treelm::bindings::bind_k_best(module);
  treelm::bindings::bind_lattice(module);
  treelm::bindings::bind_mira(module);
  treelm::bindings::bind_envelopes(module);
  treelm::bindings::bind_phrases(module);
  treelm::bindings::bind_plsa(module);
  treelm::bindings::bind_packed_forest(module);
  treelm::bindings::bind_tree_stream(module);
  treelm::bindings::bind_tree_fragments(module);
  treelm::bindings::bind_tree_ranker(module);
  treelm::bindings::bind_treelet(module);
  treelm::bindings::bind_headlex(module);
  treelm::bindings::bind_weighted_chart(module);
  treelm::bindings::bind_words(module);
  treelm::bindings::bind_word_encoder(module);
  treelm::bindings::bind_ngram_reader(module);
  treelm::bindings::bind_phrase_table(module);
  treelm::bindings::bind_search_models(module);
  treelm::bindings::bind_phrase_decoder(module);
}
