#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "bindings/slm/handles.h"

namespace treelm::bindings {

using Words = Array<std::uint32_t>;
using Numbers = Array<double>;

TopicShares mixture_of(std::size_t topics, const Words& chosen, const Numbers& shares) {
  if (chosen.size() != shares.size() || (topics > 0) != (chosen.size() > 0))
    throw Error(ErrorCode::argument, "every topic needs one share");
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (chosen.data()[i] >= topics || (i > 0 && chosen.data()[i - 1] >= chosen.data()[i]) || !(shares.data()[i] >= 0))
      throw Error(ErrorCode::argument, "topics must ascend and have shares that are not negative");
  return {span_of(chosen), span_of(shares)};
}

namespace {

using Part = std::shared_ptr<LatticeModel>;

nb::tuple advance(const SlmSearcher& self, const SlmBeamHandle& state, std::uint32_t word, const Words& topics,
                  const Numbers& shares) {
  const SlmSearch& search = self.search();
  if (word >= search.shape().words) throw Error(ErrorCode::argument, "a word id is out of range");
  const TopicShares mixture = mixture_of(search.topics(), topics, shares);
  const SlmBeam& beam = self.checked(state);
  auto after = std::make_shared<SlmBeam>();
  double log_prob = 0;
  {
    const Unlocked unlocked;
    auto borrowed = self.borrow();
    *after = beam;
    log_prob = search.advance(*after, word, mixture, borrowed.work(), false);
  }
  return nb::make_tuple(log_prob, SlmBeamHandle{std::move(after)});
}

void bind_state(nb::module_& module) {
  nb::class_<SlmBeamHandle>(module, "SlmState")
      .def(
          "__init__",
          [](SlmBeamHandle* self, const nb::bytes& data) {
            new (self) SlmBeamHandle{std::make_shared<const SlmBeam>(SlmBeam::from_bytes({data.c_str(), data.size()}))};
          },
          nb::arg("data"))
      .def("to_bytes",
           [](const SlmBeamHandle& self) {
             const std::string data = self.beam->to_bytes();
             return nb::bytes(data.data(), data.size());
           })
      .def(
          "same",
          [](const SlmBeamHandle& self, const SlmBeamHandle& other) {
            return self.beam == other.beam || self.beam->same(*other.beam);
          },
          nb::arg("other"))
      .def("hypotheses",
           [](const SlmBeamHandle& self) {
             nb::list found;
             for (const SlmHypothesis& each : self.beam->hypotheses) {
               nb::list heads;
               for (std::uint32_t at = each.top; at != 0; at = self.beam->heads[at].below)
                 heads.append(nb::make_tuple(self.beam->heads[at].word, self.beam->heads[at].label));
               found.append(nb::make_tuple(each.score, each.moves, heads));
             }
             return found;
           })
      .def_prop_ro("initial", [](const SlmBeamHandle& self) { return self.beam->initial; })
      .def_prop_ro("hash", [](const SlmBeamHandle& self) { return self.beam->hash(); })
      .def("__len__", [](const SlmBeamHandle& self) { return self.beam->hypotheses.size(); });
}

}  // namespace

void bind_slm(nb::module_& module) {
  bind_state(module);
  bind_slm_shape(module);
  nb::class_<SlmSearcher> searcher(module, "SlmSearch");
  searcher
      .def(
          "__init__",
          [](SlmSearcher* self, const SlmShape& shape, const Part& predictor, const std::optional<Part>& tagger,
             const std::optional<Part>& constructor, std::size_t stack_size, double threshold, double beam, bool merge,
             std::size_t topics) {
            SlmParts parts{predictor, tagger.value_or(nullptr), constructor.value_or(nullptr)};
            new (self) SlmSearcher(shape, std::move(parts), SlmOptions{stack_size, threshold, beam, merge}, topics);
          },
          nb::arg("shape"), nb::arg("predictor"), nb::arg("tagger").none(), nb::arg("constructor").none(),
          nb::kw_only(), nb::arg("stack_size"), nb::arg("threshold"), nb::arg("beam"), nb::arg("merge"),
          nb::arg("topics"))
      .def("initial",
           [](const SlmSearcher& self) {
             return SlmBeamHandle{std::make_shared<const SlmBeam>(initial_beam(self.search().shape()))};
           })
      .def(
          "check", [](const SlmSearcher& self, const SlmBeamHandle& state) { self.checked(state); }, nb::arg("state"))
      .def("advance", &advance, nb::arg("state"), nb::arg("word"), nb::arg("topics"), nb::arg("shares"))
      .def(
          "finish",
          [](const SlmSearcher& self, const SlmBeamHandle& state, const Words& topics, const Numbers& shares) {
            const TopicShares mixture = mixture_of(self.search().topics(), topics, shares);
            auto borrowed = self.borrow();
            return self.search().finish(self.checked(state), mixture, borrowed.work());
          },
          nb::arg("state"), nb::arg("topics"), nb::arg("shares"))
      .def(
          "distribution",
          [](const SlmSearcher& self, const SlmBeamHandle& state, const Words& topics, const Numbers& shares) {
            const TopicShares mixture = mixture_of(self.search().topics(), topics, shares);
            std::vector<double> found;
            {
              const Unlocked unlocked;
              auto borrowed = self.borrow();
              found = self.search().distribution(self.checked(state), mixture, borrowed.work());
            }
            return give(std::move(found));
          },
          nb::arg("state"), nb::arg("topics"), nb::arg("shares"))
      .def(
          "topic_probs",
          [](const SlmSearcher& self, const SlmBeamHandle& state, std::uint32_t word) {
            if (self.search().topics() == 0) throw Error(ErrorCode::argument, "the model has no topics");
            if (word > self.search().shape().end()) throw Error(ErrorCode::argument, "a word id is out of range");
            std::vector<double> found;
            {
              const Unlocked unlocked;
              auto borrowed = self.borrow();
              found = self.search().topic_probs(self.checked(state), word, borrowed.work());
            }
            return give(std::move(found));
          },
          nb::arg("state"), nb::arg("word"));
  bind_slm_batches(searcher);
}

}  // namespace treelm::bindings
