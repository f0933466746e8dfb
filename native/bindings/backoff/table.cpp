#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "backoff/chain_sampler.h"
#include "backoff/estimate.h"
#include "backoff/sequence_counts.h"
#include "backoff/streamed_counts.h"
#include "base/starts.h"
#include "base/thread_pool.h"
#include "bindings/bindings.h"

namespace treelm::bindings {

namespace {

using ByteArray = nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>, nb::c_contig>;
using IndexArray = nb::ndarray<nb::numpy, const std::uint32_t, nb::ndim<1>, nb::c_contig>;
using BookArray = nb::ndarray<nb::numpy, const float, nb::ndim<1>, nb::c_contig>;

using Regions = std::vector<std::array<std::uint64_t, 5>>;

std::vector<RegionSize> from_arrays(const Regions& regions) {
  std::vector<RegionSize> result;
  const auto bits = [](std::uint64_t given) { return static_cast<std::uint32_t>(std::min<std::uint64_t>(given, 65)); };
  for (const auto& [rows, buckets, last_bits, probability_bits, weight_bits] : regions)  // too many are refused later
    result.push_back({rows, buckets, bits(last_bits), bits(probability_bits), bits(weight_bits)});
  return result;
}

Regions to_arrays(const std::vector<RegionSize>& regions) {
  Regions result;
  for (const RegionSize& region : regions)
    result.push_back({region.rows, region.buckets, region.last_bits, region.probability_bits, region.weight_bits});
  return result;
}

// The table is used where its arrays lie; they live as long as the table.
BackoffTable over_arrays(const TableShape& shape, const ByteArray& slots, const IndexArray& index,
                         const BookArray& codebooks) {
  const TableLayout layout(shape);
  const auto check = [](std::uint64_t found, std::uint64_t expected, const char* what) {
    if (found != expected)
      throw Error(ErrorCode::table, std::string("the ") + what + " of the table should have " +
                                        std::to_string(expected) + " numbers, and have " + std::to_string(found));
  };
  check(slots.size(), layout.slot_bytes, "slots");
  check(index.size(), layout.index_length, "buckets");
  check(codebooks.size(), layout.codebook_length, "codebooks");
  using Arrays = std::tuple<ByteArray, IndexArray, BookArray>;
  std::shared_ptr<const void> owner(new Arrays(slots, index, codebooks), [](const void* held) {
    const nb::gil_scoped_acquire acquire;
    delete static_cast<const Arrays*>(held);
  });
  return {shape, TableArrays{slots.data(), index.data(), codebooks.data(), std::move(owner), {}}};
}

void check_sequence(const BackoffTable& table) {
  if (!table.shape().sequence) throw Error(ErrorCode::argument, "the table is not one of word sequences");
}

Array<double> log_probabilities(const BackoffTable& self, std::size_t level, const Matrix<std::uint32_t>& rows,
                                const std::optional<Array<double>>& base) {
  if (level >= self.shape().levels()) throw Error(ErrorCode::argument, "the table has no such level");
  check_columns(rows.shape(1), self.shape().columns());
  if (base && base->size() != rows.shape(0)) throw Error(ErrorCode::argument, "every row needs one base probability");
  std::vector<double> out(rows.shape(0));
  {
    const Unlocked unlocked;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint32_t* row = rows.data() + i * rows.shape(1);
      out[i] = std::log(self.probability_from(level, row, base ? base->data()[i] : self.uniform_base(row[0])));
    }
  }
  return give(std::move(out));
}

Array<double> distribution(const BackoffTable& self, const std::vector<std::uint32_t>& context) {
  check_columns(context.size() + 1, self.shape().columns());
  std::vector<double> out(self.shape().base_size != 0 ? self.shape().base_size : self.shape().outcomes);
  {
    const Unlocked unlocked;
    self.distribution(context.data(), out);
    for (double& value : out) value = std::log(value);
  }
  return give(std::move(out));
}

Array<double> backoffs(const BackoffTable& self, std::size_t level, const Matrix<std::uint32_t>& contexts) {
  if (level >= self.shape().levels()) throw Error(ErrorCode::argument, "the table has no such level");
  check_columns(contexts.shape(1) + 1, self.shape().columns());
  std::vector<double> out(contexts.shape(0));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = self.backoff_of(level, contexts.data() + i * contexts.shape(1));
  return give(std::move(out));
}

nb::tuple advance(const BackoffTable& self, const Matrix<std::uint32_t>& contexts, const Array<std::uint32_t>& words) {
  check_sequence(self);
  const std::size_t width = self.shape().widths.front(), n = words.size();
  check_columns(contexts.shape(1), width);
  if (contexts.shape(0) != n) throw Error(ErrorCode::argument, "every word needs one context");
  std::vector<double> log_probability(n);
  std::vector<std::uint32_t> next(n * width, none);
  {
    const Unlocked unlocked;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t* context = contexts.data() + i * width;
      std::uint32_t length = 0;
      while (length < width && context[length] != none) ++length;
      const BackoffTable::Advance step = self.advance(context, length, words.data()[i]);
      log_probability[i] = step.log_probability;
      for (std::uint32_t c = 0; c < step.kept && c < width; ++c)
        next[i * width + c] = c == 0 ? words.data()[i] : context[c - 1];
    }
  }
  return nb::make_tuple(give(std::move(log_probability)), give_rows(std::move(next), width, n));
}

Array<double> score_sequences(const BackoffTable& self, const Array<std::uint32_t>& ids,
                              const Array<std::uint64_t>& starts, std::uint32_t start, std::uint32_t end,
                              std::size_t threads) {
  check_sequence(self);
  check_threads(threads);
  check_starts(span_of(starts), ids.size(), "the starts of sentences do not fit the word ids");
  const std::uint64_t* at = starts.data();
  const std::size_t sequences = starts.size() - 1;
  std::vector<double> out(ids.size() + (end == none ? 0 : sequences));
  {
    const Unlocked unlocked;
    constexpr std::size_t piece = 4096;
    ThreadPool pool(threads);
    pool.map((sequences + piece - 1) / piece, [&](std::size_t i, std::size_t) {
      const std::size_t from = i * piece, to = std::min(sequences, from + piece);
      double* place = out.data() + at[from] + (end == none ? 0 : from);
      self.score_sequences(span_of(ids), {at + from, to - from + 1}, start, end, place);
    });
  }
  return give(std::move(out));
}

// The entries of a level in the order of their slots: outcome and context, probability, and in a
// sequence chain the weight of the row as a context, negative if it is none. Without `with_carriers`
// only entries that were estimated.
nb::tuple rows(const BackoffTable& self, std::size_t level, bool with_carriers) {
  const TableShape& shape = self.shape();
  if (level >= shape.levels()) throw Error(ErrorCode::argument, "the table has no such level");
  const std::uint32_t width = shape.widths[level];
  std::vector<std::uint32_t> found;
  std::vector<double> probability, backoff;
  {
    const Unlocked unlocked;
    const ContextColumns columns_of(self);
    std::uint32_t row[max_columns + 1] = {};
    self.each_entry(level,
                    [&](std::uint64_t, std::uint32_t context, std::uint32_t outcome, double p, std::uint32_t own) {
                      if (!with_carriers && std::signbit(p)) return;
                      if (columns_of.columns(context, row + 1) != width) return;
                      row[0] = outcome;
                      found.insert(found.end(), row, row + width + 1);
                      probability.push_back(p);
                      backoff.push_back(own == empty_context ? -1.0 : self.backoff(own));
                    });
  }
  return nb::make_tuple(give_rows(std::move(found), width + 1), give(std::move(probability)), give(std::move(backoff)));
}

template <class Counts>
std::shared_ptr<const BackoffTable> estimate_table(Counts& counts, const TableShape& shape,
                                                   const std::vector<std::array<double, 3>>& discounts,
                                                   const std::vector<std::vector<double>>& weights, bool by_ratio,
                                                   const std::vector<std::uint32_t>& min_counts,
                                                   const std::optional<Array<double>>& base, bool use_up,
                                                   const std::optional<nb::callable>& progress) {
  EstimatePlan plan;
  plan.shape = shape;
  const std::size_t levels = counts.levels();
  if (discounts.size() != levels || weights.size() != levels || min_counts.size() != levels)
    throw Error(ErrorCode::argument, "every level needs discounts, weights and a smallest count");
  for (std::size_t j = 0; j < levels; ++j) plan.levels.push_back({discounts[j], weights[j], by_ratio, min_counts[j]});
  if (base) plan.base = span_of(*base);
  const ProgressCallback report = interruptible(progress);
  const Unlocked unlocked;
  if constexpr (std::is_same_v<Counts, SequenceCounts>)
    if (use_up) return estimate(std::move(counts), plan, report);
  return estimate(counts, plan, report);
}

void bind_table_shape(nb::module_& module) {
  nb::class_<TableShape>(module, "TableShape")
      .def(
          "__init__",
          [](TableShape* self, std::vector<std::uint32_t> widths, std::uint64_t outcomes, std::uint64_t first_contexts,
             const Regions& entries, const Regions& contexts, bool sequence, std::uint32_t value_bits,
             std::uint64_t base_size, std::uint32_t pad, double empty_weight, bool compact) {
            new (self) TableShape{std::move(widths),
                                  outcomes,
                                  first_contexts,
                                  from_arrays(entries),
                                  from_arrays(contexts),
                                  sequence,
                                  value_bits,
                                  base_size,
                                  pad,
                                  empty_weight,
                                  compact};
          },
          nb::kw_only(), nb::arg("widths"), nb::arg("outcomes"), nb::arg("first_contexts"), nb::arg("entries"),
          nb::arg("contexts"), nb::arg("sequence"), nb::arg("value_bits"), nb::arg("base_size"), nb::arg("pad"),
          nb::arg("empty_weight"), nb::arg("compact"))
      .def_ro("widths", &TableShape::widths)
      .def_ro("outcomes", &TableShape::outcomes)
      .def_ro("first_contexts", &TableShape::first_contexts)
      .def_prop_ro("entries", [](const TableShape& self) { return to_arrays(self.entries); })
      .def_prop_ro("contexts", [](const TableShape& self) { return to_arrays(self.contexts); })
      .def_ro("sequence", &TableShape::sequence)
      .def_ro("value_bits", &TableShape::value_bits)
      .def_ro("base_size", &TableShape::base_size)
      .def_ro("pad", &TableShape::pad)
      .def_ro("empty_weight", &TableShape::empty_weight)
      .def_ro("compact", &TableShape::compact);
}

void bind_backoff_table(nb::module_& module) {
  nb::class_<BackoffTable>(module, "BackoffTable")
      .def(
          "__init__",
          [](BackoffTable* self, const TableShape& shape, const ByteArray& slots, const IndexArray& index,
             const BookArray& codebooks) { new (self) BackoffTable(over_arrays(shape, slots, index, codebooks)); },
          nb::arg("shape"), nb::arg("slots"), nb::arg("index"), nb::arg("codebooks"))
      .def_prop_ro("shape", [](const BackoffTable& self) { return self.shape(); })
      .def_prop_ro("slots",
                   [](nb::handle_t<BackoffTable> handle) {
                     const auto& self = nb::cast<const BackoffTable&>(handle);
                     return ByteArray(self.arrays().slots, {self.layout().slot_bytes}, handle);
                   })
      .def_prop_ro("index",
                   [](nb::handle_t<BackoffTable> handle) {
                     const auto& self = nb::cast<const BackoffTable&>(handle);
                     return IndexArray(self.arrays().index, {self.layout().index_length}, handle);
                   })
      .def_prop_ro("codebooks",
                   [](nb::handle_t<BackoffTable> handle) {
                     const auto& self = nb::cast<const BackoffTable&>(handle);
                     return BookArray(self.arrays().codebooks, {self.layout().codebook_length}, handle);
                   })
      .def_prop_ro("spilled", [](const BackoffTable& self) { return static_cast<bool>(self.arrays().forget); })
      .def("forget",
           [](const BackoffTable& self) {
             if (self.arrays().forget) self.arrays().forget();
           })
      .def("log_probabilities", &log_probabilities, nb::arg("level"), nb::arg("rows"), nb::arg("base").none())
      .def("distribution", &distribution, nb::arg("context"))
      .def("backoffs", &backoffs, nb::arg("level"), nb::arg("contexts"))
      .def("advance", &advance, nb::arg("contexts"), nb::arg("words"))
      .def("score_sequences", &score_sequences, nb::arg("ids"), nb::arg("starts"), nb::kw_only(), nb::arg("start"),
           nb::arg("end"), nb::arg("threads"))
      .def("rows", &rows, nb::arg("level"), nb::kw_only(), nb::arg("with_carriers"));
}

void bind_chain_sampler(nb::module_& module) {
  nb::class_<ChainSampler>(module, "ChainSampler")
      .def(
          "__init__",
          [](ChainSampler* self, std::shared_ptr<BackoffTable> table, const std::optional<Array<double>>& base,
             std::uint32_t never) {
            const Unlocked unlocked;
            new (self) ChainSampler(std::move(table), base ? span_of(*base) : std::span<const double>(), never);
          },
          nb::arg("table"), nb::arg("base").none(), nb::kw_only(), nb::arg("never"))
      .def(
          "draw",
          [](const ChainSampler& self, const Matrix<std::uint32_t>& contexts, std::uint64_t seed,
             const Array<std::uint64_t>& streams, const Array<std::uint64_t>& counters) {
            const std::size_t n = contexts.shape(0);
            check_columns(contexts.shape(1), self.context_columns());
            if (streams.size() != n || counters.size() != n)
              throw Error(ErrorCode::argument, "every context needs one stream and one counter");
            std::vector<std::uint32_t> out(n);
            {
              const Unlocked unlocked;
              for (std::size_t i = 0; i < n; ++i)
                out[i] =
                    self.draw(contexts.data() + i * contexts.shape(1), seed, streams.data()[i], counters.data()[i]);
            }
            return give(std::move(out));
          },
          nb::arg("contexts"), nb::arg("seed"), nb::arg("streams"), nb::arg("counters"));
}

}  // namespace

void bind_backoff(nb::module_& module) {
  bind_table_shape(module);
  bind_backoff_table(module);
  bind_chain_sampler(module);
  const auto define = [&](auto estimate_counts) {
    module.def("estimate_table", estimate_counts, nb::arg("counts"), nb::arg("shape"), nb::kw_only(),
               nb::arg("discounts"), nb::arg("weights"), nb::arg("by_ratio"), nb::arg("min_counts"),
               nb::arg("base").none(), nb::arg("use_up"), nb::arg("progress").none());
  };
  define(&estimate_table<ChainCounts>);
  define(&estimate_table<SequenceCounts>);
  define(&estimate_table<StreamedCounts>);
  module.attr("NO_ID") = none;
}

}  // namespace treelm::bindings
