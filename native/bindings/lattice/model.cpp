#include "lattice/model.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "bindings/bindings.h"
#include "lattice/tables.h"
#include "lattice/weights.h"

namespace treelm::bindings {

namespace {

using NodeList = std::vector<std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>>;
using Numbers = Array<double>;
using Counts = Array<std::int64_t>;
using Ids = Array<std::uint32_t>;
using Rows = Matrix<std::uint32_t>;
using Tables = std::shared_ptr<LatticeTables>;

template <typename T>
Array<T> view_large(const LargeVector<T>& values, nb::handle owner) {
  return Array<T>(values.data(), {values.size()}, owner);
}

template <typename T>
LargeVector<T> taken(const nb::dict& arrays, const char* name) {
  const auto array = nb::cast<Array<T>>(arrays[name]);
  return LargeVector<T>(array.data(), array.data() + array.size());
}

StemTable::Stored stored_from(const nb::dict& arrays, std::size_t width) {
  StemTable::Stored stored;
  stored.width = width;
  stored.keys = taken<std::uint32_t>(arrays, "keys");
  stored.begin = taken<std::uint64_t>(arrays, "begin");
  stored.outcomes = taken<std::uint32_t>(arrays, "outcomes");
  stored.counts = taken<std::int64_t>(arrays, "counts");
  stored.topic_begin = taken<std::uint32_t>(arrays, "topic_begin");
  stored.topics = taken<std::uint16_t>(arrays, "topics");
  stored.topic_counts = taken<std::int64_t>(arrays, "topic_counts");
  return stored;
}

nb::dict stem_arrays(nb::handle self, std::size_t stem) {
  const auto& tables = nb::cast<const LatticeTables&>(self);
  if (stem >= tables.shape().stems().size()) throw Error(ErrorCode::argument, "the lattice has no such stem");
  const StemTable::Stored& stored = tables.stem(stem).stored();
  nb::dict arrays;
  arrays["keys"] = view_large(stored.keys, self);
  arrays["begin"] = view_large(stored.begin, self);
  arrays["outcomes"] = view_large(stored.outcomes, self);
  arrays["counts"] = view_large(stored.counts, self);
  arrays["topic_begin"] = view_large(stored.topic_begin, self);
  arrays["topics"] = view_large(stored.topics, self);
  arrays["topic_counts"] = view_large(stored.topic_counts, self);
  return arrays;
}

void add_events(LatticeEvents& self, const Rows& columns, const Ids& outcomes, const Counts& counts) {
  check_columns(columns.shape(1), self.shape().columns());
  if (outcomes.size() != columns.shape(0) || counts.size() != columns.shape(0))
    throw Error(ErrorCode::argument, "columns, outcomes and counts of events must have the same length");
  const Unlocked unlocked;
  self.add(columns.data(), outcomes.data(), counts.data(), counts.size());
}

nb::tuple take_events(LatticeEvents& self) {
  EventRows rows;
  {
    const Unlocked unlocked;
    rows = self.take();
  }
  const std::size_t size = rows.outcomes.size();
  return nb::make_tuple(give_rows(std::move(rows.columns), self.shape().columns(), size),
                        give(std::move(rows.outcomes)), give(std::move(rows.counts)));
}

Tables tables_of(LatticeEvents& events, const std::optional<nb::callable>& progress, std::int64_t least) {
  const Unlocked unlocked;
  return std::make_shared<LatticeTables>(events, least, interruptible(progress));
}

void make_tables(LatticeTables* self, const LatticeShape& shape, const std::vector<nb::dict>& stems) {
  if (stems.size() != shape.stems().size()) throw Error(ErrorCode::table, "a lattice has a different number of stems");
  std::vector<StemTable::Stored> stored;
  for (std::size_t s = 0; s < stems.size(); ++s) stored.push_back(stored_from(stems[s], shape.stems()[s].size()));
  const Unlocked unlocked;
  new (self) LatticeTables(shape, std::move(stored));
}

void check_outcomes(const LatticeShape& shape, const Rows& columns, const Ids& outcomes, std::size_t width) {
  check_columns(columns.shape(1), width);
  if (outcomes.size() != columns.shape(0))
    throw Error(ErrorCode::argument, "columns and outcomes must have the same length");
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    if (outcomes.data()[i] >= shape.outcomes()) throw Error(ErrorCode::argument, "an outcome is out of range");
}

// Rows that a thread looks up at a time.
constexpr std::size_t block_size = 1 << 14;

Numbers probs(const LatticeModel& self, const Rows& columns, const Ids& outcomes, std::size_t threads) {
  check_outcomes(self.shape(), columns, outcomes, self.shape().columns());
  std::vector<double> found(outcomes.size());
  {
    const Unlocked unlocked;
    const std::size_t blocks = (found.size() + block_size - 1) / block_size;
    ThreadPool(std::min(threads, blocks)).map(blocks, [&](std::size_t block, std::size_t) {
      for (std::size_t i = block * block_size; i < std::min(found.size(), (block + 1) * block_size); ++i)
        found[i] = self.prob(columns.data() + i * columns.shape(1), outcomes.data()[i]);
    });
  }
  return give(std::move(found));
}

Numbers distribution(const LatticeModel& self, const Ids& columns) {
  check_columns(columns.size(), self.shape().columns());
  std::vector<double> found(self.shape().outcomes());
  self.distribution(columns.data(), found.data());
  return give(std::move(found));
}

auto topic_probs(const LatticeModel& self, const Rows& columns, const Ids& outcomes, const Ids& topics) {
  if (!self.shape().topics()) throw Error(ErrorCode::argument, "the lattice has no topics");
  check_outcomes(self.shape(), columns, outcomes, self.shape().columns() - 1);
  for (std::size_t i = 1; i < topics.size(); ++i)
    if (topics.data()[i - 1] >= topics.data()[i]) throw Error(ErrorCode::argument, "topics must ascend");
  std::vector<double> found(outcomes.size() * topics.size());
  {
    const Unlocked unlocked;
    for (std::size_t i = 0; i < outcomes.size(); ++i)
      self.topic_probs(columns.data() + i * columns.shape(1), outcomes.data()[i], topics.data(), topics.size(),
                       found.data() + i * topics.size());
  }
  return give_rows(std::move(found), topics.size(), outcomes.size());
}

nb::tuple frequencies(const LatticeTables& self, const Counts& edges, const Ids& columns, std::uint32_t outcome) {
  check_columns(columns.size(), self.shape().columns());
  std::vector<double> found(self.shape().size());
  std::vector<std::uint8_t> buckets(self.shape().size());
  look_up_frequencies(self, CountBuckets(copy(edges)), columns.data(), outcome, found.data(), buckets.data());
  return nb::make_tuple(give(std::move(found)), give(std::move(buckets)));
}

// Check events with the buckets they were put into.
struct Check {
  Tables tables;
  CountBuckets buckets;
  LatticeCheck check;
};

nb::tuple check_step(const Check& self, const Numbers& values, double least, std::size_t threads) {
  check_threads(threads);
  LatticeWeights weights(self.tables->shape(), self.buckets, copy(values));
  double before = 0;
  {
    const Unlocked unlocked;
    ThreadPool pool(threads);
    before = self.check.step(weights, least, pool, hear_signals);
  }
  return nb::make_tuple(give(weights.values()), before);
}

double check_likelihood(const Check& self, const Numbers& values, std::size_t threads) {
  check_threads(threads);
  const LatticeWeights weights(self.tables->shape(), self.buckets, copy(values));
  const Unlocked unlocked;
  ThreadPool pool(threads);
  return self.check.log_likelihood(weights, pool);
}

void bind_shape(nb::module_& module) {
  nb::class_<LatticeShape>(module, "LatticeShape")
      .def(
          "__init__",
          [](LatticeShape* self, std::size_t columns, std::uint32_t outcomes, bool topics, const NodeList& nodes) {
            std::vector<LatticeNode> list;
            for (const auto& [looks_at, parents] : nodes) list.push_back({looks_at, parents});
            new (self) LatticeShape(columns, outcomes, topics, std::move(list));
          },
          nb::arg("columns"), nb::arg("outcomes"), nb::arg("topics"), nb::arg("nodes"))
      .def_prop_ro("stems", &LatticeShape::stems)
      .def("__len__", &LatticeShape::size);
  nb::class_<LatticeEvents>(module, "LatticeEvents")
      .def(
          "__init__",
          [](LatticeEvents* self, const LatticeShape& shape, const Ids& limits, std::size_t threads) {
            check_threads(threads);
            new (self) LatticeEvents(shape, copy(limits), threads);
          },
          nb::arg("shape"), nb::arg("limits"), nb::kw_only(), nb::arg("threads"))
      .def("add", &add_events, nb::arg("columns"), nb::arg("outcomes"), nb::arg("counts"))
      .def("take", &take_events)
      .def("tables", &tables_of, nb::arg("progress").none() = nb::none(), nb::kw_only(), nb::arg("least") = 0);
}

}  // namespace

void bind_lattice(nb::module_& module) {
  bind_shape(module);
  nb::class_<LatticeTables>(module, "LatticeTables")
      .def("__init__", &make_tables, nb::arg("shape"), nb::arg("stems"))
      .def(
          "stem_arrays", [](nb::handle self, std::size_t stem) { return stem_arrays(self, stem); }, nb::arg("stem"))
      .def_prop_ro("bytes", &LatticeTables::bytes)
      .def(
          "types",
          [](const LatticeTables& self, std::size_t node) {
            if (node >= self.shape().size()) throw Error(ErrorCode::argument, "the lattice has no such node");
            return self.types(node);
          },
          nb::arg("node"))
      .def("frequencies", &frequencies, nb::arg("edges"), nb::arg("columns"), nb::arg("outcome"))
      .def(
          "refill",
          [](LatticeTables& self, const Counts& counts) {
            const Unlocked unlocked;
            self.refill(span_of(counts));
          },
          nb::arg("counts"))
      .def(
          "cut",
          [](const LatticeTables& self, std::int64_t least) {
            const Unlocked unlocked;
            return std::make_shared<LatticeTables>(self.cut(least));
          },
          nb::arg("least"));
  nb::class_<Check>(module, "LatticeCheck")
      .def(
          "__init__",
          [](Check* self, const Tables& tables, const Counts& edges, const Rows& columns, const Ids& outcomes,
             const Numbers& weights, std::size_t threads) {
            check_threads(threads);
            check_columns(columns.shape(1), tables->shape().columns());
            CountBuckets buckets(copy(edges));
            const Unlocked unlocked;
            ThreadPool pool(threads);
            LatticeCheck check(*tables, buckets, span_of(columns), span_of(outcomes), span_of(weights), pool);
            new (self) Check{tables, std::move(buckets), std::move(check)};
          },
          nb::arg("tables"), nb::arg("edges"), nb::arg("columns"), nb::arg("outcomes"), nb::arg("weights"),
          nb::kw_only(), nb::arg("threads"))
      .def("step", &check_step, nb::arg("values"), nb::kw_only(), nb::arg("least"), nb::arg("threads"))
      .def("log_likelihood", &check_likelihood, nb::arg("values"), nb::kw_only(), nb::arg("threads"));
  nb::class_<LatticeModel>(module, "LatticeModel")
      .def(
          "__init__",
          [](LatticeModel* self, const Tables& tables, const Counts& edges, const Numbers& values) {
            new (self) LatticeModel(tables, LatticeWeights(tables->shape(), CountBuckets(copy(edges)), copy(values)));
          },
          nb::arg("tables"), nb::arg("edges"), nb::arg("values"))
      .def("probs", &probs, nb::arg("columns"), nb::arg("outcomes"), nb::kw_only(), nb::arg("threads"))
      .def("distribution", &distribution, nb::arg("columns"))
      .def("topic_probs", &topic_probs, nb::arg("columns"), nb::arg("outcomes"), nb::arg("topics"));
  module.def(
      "lattice_weights",
      [](const LatticeShape& shape, const Counts& edges) {
        return give(LatticeWeights(shape, CountBuckets(copy(edges))).values());
      },
      nb::arg("shape"), nb::arg("edges"));
  module.def(
      "soften_lattice_weights",
      [](const LatticeShape& shape, const Counts& edges, const Numbers& values, double share) {
        LatticeWeights weights(shape, CountBuckets(copy(edges)), copy(values));
        weights.soften(shape, share);
        return give(weights.values());
      },
      nb::arg("shape"), nb::arg("edges"), nb::arg("values"), nb::arg("share"));
}

}  // namespace treelm::bindings
