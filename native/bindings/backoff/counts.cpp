#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>

#include "backoff/continuation.h"
#include "backoff/sequence_counts.h"
#include "backoff/streamed_counts.h"
#include "base/counter.h"
#include "base/kept_blocks.h"
#include "base/sequence_counter.h"
#include "bindings/bindings.h"

namespace treelm::bindings {

namespace {

template <class Counts>
void check_level(const Counts& counts, std::size_t level) {
  if (level >= counts.levels()) throw Error(ErrorCode::argument, "the chain has no such level");
}

// The columns of the rows from `first` on, before `last`.
auto unpacked(const SortedEvents& self, std::size_t first, std::size_t last) {
  if (first > last || last > self.rows()) throw Error(ErrorCode::argument, "the rows asked for are out of range");
  const std::size_t columns = self.layout().columns();
  std::vector<std::uint32_t> rows((last - first) * columns);
  with_key_words(self.layout().words(), [&]<std::size_t W>() {
    for (std::size_t i = first; i < last; ++i)
      self.layout().unpack(self.keys_as<W>()[i], rows.data() + (i - first) * columns);
  });
  return give_rows(std::move(rows), columns);
}

nb::tuple entry_arrays(const ChainCounts& self, std::size_t level) {
  check_level(self, level);
  const std::size_t width = self.shape().widths[level] + 1;
  std::vector<std::uint32_t> rows(self.size(level) * width), tokens(self.size(level));
  {
    const Unlocked unlocked;
    const SortedEvents& events = self.events();
    with_key_words(events.layout().words(), [&]<std::size_t W>() {
      for (std::size_t i = 0; i < self.size(level); ++i) {
        const Key<W>& key = events.keys_as<W>()[self.level(level).first_row[i]];
        for (std::size_t c = 0; c < width; ++c) rows[i * width + c] = events.layout().column(key, c);
        tokens[i] = self.tokens(level, i);
      }
    });
  }
  return nb::make_tuple(
      give_rows(std::move(rows), width),
      give(std::vector<std::uint32_t>(self.level(level).count.begin(), self.level(level).count.end())),
      give(std::move(tokens)));
}

// Per row: count with its context, count and number of types of the context.
nb::tuple look_up(const ChainCounts& self, std::size_t level, const Matrix<std::uint32_t>& rows) {
  check_level(self, level);
  check_columns(rows.shape(1), self.shape().columns());
  const std::size_t n = rows.shape(0), columns = rows.shape(1), width = self.shape().widths[level];
  std::vector<std::uint64_t> count(n, 0), total(n, 0), types(n, 0);
  {
    const Unlocked unlocked;
    const LevelContexts contexts = self.contexts(level);
    // Contexts are in ascending order of their columns: found by halving.
    std::vector<std::uint32_t> columns_of(contexts.counts.size() * width);
    for (std::size_t g = 0; g < contexts.counts.size(); ++g) {
      const std::vector<std::uint32_t> row = self.row(level, contexts.an_entry[g]);
      std::copy(row.begin() + 1, row.end(), columns_of.begin() + static_cast<std::ptrdiff_t>(g * width));
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t* row = rows.data() + i * columns;
      const std::uint32_t entry = self.find(level, row);
      if (entry != none) count[i] = self.level(level).count[entry];
      std::size_t low = 0, high = contexts.counts.size();
      while (low < high) {
        const std::size_t middle = (low + high) / 2;
        const std::uint32_t* at = columns_of.data() + middle * width;
        if (std::lexicographical_compare(at, at + width, row + 1, row + 1 + width))
          low = middle + 1;
        else
          high = middle;
      }
      if (low == contexts.counts.size() || !std::equal(row + 1, row + 1 + width, columns_of.data() + low * width))
        continue;
      total[i] = contexts.counts[low].total;
      types[i] = contexts.counts[low].types();
    }
  }
  return nb::make_tuple(give(std::move(count)), give(std::move(total)), give(std::move(types)));
}

// Counts from a file: used where they lie, after every row was looked at.
std::shared_ptr<SortedEvents> from_arrays(const std::vector<std::uint32_t>& bits, const Matrix<std::uint64_t>& keys,
                                          const Array<std::uint32_t>& counts, std::uint64_t total,
                                          const std::vector<std::uint32_t>& largest) {
  for (const std::uint32_t width : bits)
    if (width > 32) throw Error(ErrorCode::table, "a column of the counts has more than 32 bits");
  if (bits.empty() || bits.size() > 64 || largest.size() != bits.size())
    throw Error(ErrorCode::table, "the counts have no columns, or too many");
  const KeyLayout layout(std::vector<unsigned>(bits.begin(), bits.end()));
  if (keys.shape(0) != counts.size() || keys.shape(1) != stored_words(layout.words()))
    throw Error(ErrorCode::table, "the arrays of the counts do not fit together");
  using Arrays = std::pair<Matrix<std::uint64_t>, Array<std::uint32_t>>;
  std::shared_ptr<const void> owner(new Arrays(keys, counts), [](const void* held) {
    const nb::gil_scoped_acquire acquire;
    delete static_cast<const Arrays*>(held);
  });
  const Unlocked unlocked;
  auto events =
      std::make_shared<SortedEvents>(layout, total, counts.size(), keys.data(), counts.data(), std::move(owner));
  check_sorted(*events, largest);
  return events;
}

nb::tuple context_arrays(const ChainCounts& self, std::size_t level) {
  check_level(self, level);
  std::vector<std::uint32_t> columns;
  std::vector<std::uint64_t> total, types;
  {
    const Unlocked unlocked;
    const LevelContexts contexts = self.contexts(level);
    for (std::size_t g = 0; g < contexts.counts.size(); ++g) {
      const std::vector<std::uint32_t> row = self.row(level, contexts.an_entry[g]);
      columns.insert(columns.end(), row.begin() + 1, row.end());
      total.push_back(contexts.counts[g].total);
      types.push_back(contexts.counts[g].types());
    }
  }
  auto rows = give_rows(std::move(columns), self.shape().widths[level], total.size());
  return nb::make_tuple(std::move(rows), give(std::move(total)), give(std::move(types)));
}

void bind_event_counts(nb::module_& module) {
  nb::class_<SortedEvents>(module, "EventCounts")
      .def_prop_ro("rows", [](const SortedEvents& self) { return self.rows(); })
      .def_prop_ro("columns", [](const SortedEvents& self) { return self.layout().columns(); })
      .def_prop_ro("spilled", &SortedEvents::mapped)
      .def_prop_ro("bytes", &SortedEvents::bytes)
      .def_prop_ro("total", [](const SortedEvents& self) { return self.total(); })
      .def_prop_ro("bits",
                   [](const SortedEvents& self) {
                     std::vector<std::uint32_t> bits;
                     for (std::size_t c = 0; c < self.layout().columns(); ++c) bits.push_back(self.layout().bits(c));
                     return bits;
                   })
      .def_prop_ro("keys",
                   [](nb::handle_t<SortedEvents> handle) {
                     const auto& self = nb::cast<const SortedEvents&>(handle);
                     return Matrix<std::uint64_t>(self.keys(), {self.rows(), self.stride()}, handle);
                   })
      .def_prop_ro("counts",
                   [](nb::handle_t<SortedEvents> handle) {
                     const auto& self = nb::cast<const SortedEvents&>(handle);
                     return Array<std::uint32_t>(self.counts(), {self.rows()}, handle);
                   })
      .def("unpacked", &unpacked, nb::arg("first"), nb::arg("last"));
}

void bind_event_counter(nb::module_& module) {
  nb::class_<EventCounter>(module, "EventCounter")
      .def(
          "__init__",
          [](EventCounter* self, std::size_t columns, std::size_t threads, std::size_t run_rows, std::size_t memory,
             std::string folder) {
            check_threads(threads);
            new (self) EventCounter(columns, threads, run_rows, {memory, std::move(folder)});
          },
          nb::arg("columns"), nb::kw_only(), nb::arg("threads"), nb::arg("run_rows"), nb::arg("memory"),
          nb::arg("folder"))
      .def(
          "add",
          [](EventCounter& self, const Matrix<std::uint32_t>& rows,
             const std::optional<Array<std::uint64_t>>& weights) {
            check_columns(rows.shape(1), self.columns());
            if (weights && weights->size() != rows.shape(0))
              throw Error(ErrorCode::argument, "every row needs one weight");
            const Unlocked unlocked;
            self.add(rows.data(), rows.shape(0), weights ? weights->data() : nullptr);
          },
          nb::arg("rows"), nb::arg("weights").none())
      .def(
          "add_sequences",
          [](EventCounter& self, const Array<std::uint32_t>& ids, const Array<std::uint64_t>& starts, std::uint32_t end,
             std::uint32_t pad) {
            const Unlocked unlocked;
            self.add_sequences(span_of(ids), span_of(starts), end, pad);
          },
          nb::arg("ids"), nb::arg("starts"), nb::kw_only(), nb::arg("end"), nb::arg("pad"))
      .def(
          "merge",
          [](EventCounter& self, const SortedEvents& other) {
            const Unlocked unlocked;
            self.merge(other);
          },
          nb::arg("counts"))
      .def(
          "finish",
          [](EventCounter& self, const std::optional<nb::callable>& progress) {
            const ProgressCallback report = interruptible(progress);
            const Unlocked unlocked;
            return std::make_shared<SortedEvents>(self.finish(report));
          },
          nb::arg("progress").none())
      .def_prop_ro("total", &EventCounter::total);
}

// What counts in memory and counts in files have in common.
template <class Counts>
void bind_levels(nb::class_<Counts>& counts) {
  counts.def_prop_ro("levels", &Counts::levels)
      .def(
          "size",
          [](const Counts& self, std::size_t level) {
            check_level(self, level);
            return self.size(level);
          },
          nb::arg("level"))
      .def(
          "counts_of_counts",
          [](const Counts& self, std::size_t level) {
            check_level(self, level);
            return self.counts_of_counts(level);
          },
          nb::arg("level"));
}

void bind_chain_counts(nb::module_& module) {
  nb::class_<ChainCounts> counts(module, "ChainCounts");
  bind_levels(counts);
  counts
      .def(
          "__init__",
          [](ChainCounts* self, std::shared_ptr<SortedEvents> events, std::vector<std::uint32_t> widths,
             std::vector<std::uint32_t> pads, bool token_counts, bool keep_tokens, std::size_t threads) {
            check_threads(threads);
            const Unlocked unlocked;
            new (self) ChainCounts(std::move(events), {std::move(widths), std::move(pads)}, token_counts, keep_tokens,
                                   threads);
          },
          nb::arg("events"), nb::kw_only(), nb::arg("widths"), nb::arg("pads"), nb::arg("token_counts"),
          nb::arg("keep_tokens"), nb::arg("threads"))
      .def("entries", &entry_arrays, nb::arg("level"))
      .def("contexts", &context_arrays, nb::arg("level"))
      .def("look_up", &look_up, nb::arg("level"), nb::arg("rows"));
}

void bind_sequence_counts(nb::module_& module) {
  nb::class_<SequenceCounts> counts(module, "SequenceCounts");
  bind_levels(counts);
  counts.def(
      "__init__",
      [](SequenceCounts* self, SortedEvents& events, std::vector<std::uint32_t> widths, std::vector<std::uint32_t> pads,
         std::uint64_t outcomes, bool token_counts, bool keep_tokens, std::size_t threads, bool use_up) {
        check_threads(threads);
        const Unlocked unlocked;
        new (self)
            SequenceCounts(events, {std::move(widths), std::move(pads)}, outcomes, token_counts, keep_tokens, threads);
        if (use_up) events = SortedEvents();
      },
      nb::arg("events"), nb::kw_only(), nb::arg("widths"), nb::arg("pads"), nb::arg("outcomes"),
      nb::arg("token_counts"), nb::arg("keep_tokens"), nb::arg("threads"), nb::arg("use_up"));
}

void bind_streamed_counts(nb::module_& module) {
  nb::class_<StreamedCounts> counts(module, "StreamedCounts");
  bind_levels(counts);
  counts.def(
      "__init__",
      [](StreamedCounts* self, std::shared_ptr<SortedEvents> events, std::vector<std::uint32_t> widths,
         std::vector<std::uint32_t> pads, bool token_counts, std::size_t threads, std::size_t memory,
         std::string folder, const std::optional<nb::callable>& progress) {
        check_threads(threads);
        const ProgressCallback report = interruptible(progress);
        const Unlocked unlocked;
        new (self) StreamedCounts(std::move(events), {std::move(widths), std::move(pads)}, token_counts, threads,
                                  {memory, std::move(folder)}, report);
      },
      nb::arg("events"), nb::kw_only(), nb::arg("widths"), nb::arg("pads"), nb::arg("token_counts"), nb::arg("threads"),
      nb::arg("memory"), nb::arg("folder"), nb::arg("progress").none());
}

}  // namespace

void bind_counts(nb::module_& module) {
  bind_event_counts(module);
  bind_event_counter(module);
  bind_chain_counts(module);
  bind_sequence_counts(module);
  bind_streamed_counts(module);
  module.def("event_counts", &from_arrays, nb::arg("bits"), nb::arg("keys"), nb::arg("counts"), nb::kw_only(),
             nb::arg("total"), nb::arg("largest"));
  nb::class_<KeptBlocks>(module, "KeptBlocks").def(nb::init<>());
  module.def(
      "count_sequences",
      [](const Array<std::uint32_t>& ids, const Array<std::uint64_t>& starts, std::size_t columns, std::uint32_t end,
         std::uint32_t pad, std::size_t threads, const std::optional<nb::callable>& progress) {
        check_threads(threads);
        const ProgressCallback report = interruptible(progress);
        const Unlocked unlocked;
        return std::make_shared<SortedEvents>(
            count_sequences(span_of(ids), span_of(starts), columns, end, pad, threads, report));
      },
      nb::arg("ids"), nb::arg("starts"), nb::kw_only(), nb::arg("columns"), nb::arg("end"), nb::arg("pad"),
      nb::arg("threads"), nb::arg("progress").none());
  module.def("memory_to_count", &memory_to_count, nb::kw_only(), nb::arg("words"), nb::arg("sequences"),
             nb::arg("columns"), nb::arg("largest"), nb::arg("threads"));
  module.def(
      "memory_to_estimate",
      [](const SortedEvents& events, std::vector<std::uint32_t> widths, std::vector<std::uint32_t> pads,
         bool keep_tokens) {
        const Unlocked unlocked;
        return memory_to_estimate(events, {std::move(widths), std::move(pads)}, keep_tokens);
      },
      nb::arg("events"), nb::kw_only(), nb::arg("widths"), nb::arg("pads"), nb::arg("keep_tokens"));
  module.def(
      "memory_of_sequences",
      [](const SortedEvents& events, std::vector<std::uint32_t> widths, std::vector<std::uint32_t> pads,
         bool keep_tokens, bool use_up) {
        const Unlocked unlocked;
        return memory_of_sequences(events, {std::move(widths), std::move(pads)}, keep_tokens, use_up);
      },
      nb::arg("events"), nb::kw_only(), nb::arg("widths"), nb::arg("pads"), nb::arg("keep_tokens"), nb::arg("use_up"));
}

}  // namespace treelm::bindings
