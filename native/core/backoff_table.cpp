#include "backoff_table.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace treelm {

namespace {

[[noreturn]] void bad_table(const std::string& what) { throw Error(ErrorCode::table, what); }

}  // namespace

std::uint64_t TableShape::slots() const {
  std::uint64_t all = 0;
  for (const auto& regions : {&entry_regions, &context_regions})
    for (const Region& region : *regions) all += region.length;
  return all;
}

void check_table_shape(const TableShape& shape) {
  if (shape.widths.empty() || shape.widths.size() > max_columns) bad_table("the table has no levels, or too many");
  if (shape.widths.front() >= max_columns) bad_table("the table has too many columns");
  for (std::size_t j = 1; j < shape.widths.size(); ++j)
    if (shape.widths[j] >= shape.widths[j - 1]) bad_table("the levels of the table do not shrink");
  constexpr std::uint64_t limit = none - 1;
  const std::uint32_t width = shape.widths.front();
  if (shape.outcomes == 0 || shape.outcomes >= limit || shape.first_contexts >= limit)
    bad_table("the table has no outcomes, or more than can be indexed");
  if (shape.entry_regions.size() != shape.levels()) bad_table("the table needs a region for every level");
  if (shape.context_regions.size() != (shape.sequence ? 0 : width))
    bad_table("the table has the wrong number of context regions");
  if (shape.context_starts.size() != std::size_t{width} + 2 || shape.context_starts[0] != 0 ||
      shape.context_starts[1] != 1)
    bad_table("the table has the wrong number of contexts");
  for (std::size_t d = 1; d < shape.context_starts.size(); ++d)
    if (shape.context_starts[d] < shape.context_starts[d - 1] || shape.context_starts[d] >= limit)
      bad_table("the contexts of the table are not in order");
  // Entries from the last level up, then contexts from the shortest on.
  std::uint64_t at = 0;
  const auto follows = [&](const Region& region) {
    if (region.begin != at || region.capacity == 0 || region.length < region.capacity ||
        region.length >= (std::uint64_t{1} << 40))
      bad_table("the regions of the table do not follow each other");
    at += region.length;
  };
  std::for_each(shape.entry_regions.rbegin(), shape.entry_regions.rend(), follows);
  std::for_each(shape.context_regions.begin(), shape.context_regions.end(), follows);
  for (std::size_t j = 0; j < shape.levels(); ++j)
    if (shape.direct(j) && shape.entry_regions[j].length != shape.outcomes)
      bad_table("the last level of the table needs a slot for every outcome");
  if (!shape.sequence && width > 0 && shape.context_regions[0].length != shape.first_contexts)
    bad_table("the table needs a slot for every first context");
  if (shape.base_size > shape.outcomes) bad_table("the base of the table is larger than its outcomes");
  if (shape.sequence) {
    if (shape.pad >= shape.outcomes) bad_table("the pad of the table is no outcome");
    if (shape.levels() != std::size_t{width} + 1) bad_table("a table of sequences drops one word a level");
  }
}

BackoffTable::BackoffTable(TableShape shape, const void* slots, const void* contexts, std::shared_ptr<const void> owner)
    : shape_(std::move(shape)), slots_(slots), contexts_(contexts), owner_(std::move(owner)) {
  check_table_shape(shape_);
}

template <class Value>
std::uint64_t BackoffTable::find_entry(std::size_t level, std::uint32_t context, std::uint32_t outcome) const {
  const Region& region = shape_.entry_regions[level];
  if (shape_.direct(level)) {
    if (outcome >= region.length || slot<Value>()[region.begin + outcome].key == empty_key) return empty_key;
    return region.begin + outcome;
  }
  return find_in_region(slot<Value>(), region, slot_key(context, outcome));
}

// What reading a word after a context gives: the context that comes next, and the probability.
template <class Value>
std::uint32_t BackoffTable::read(std::uint32_t context, std::uint32_t word, double* p) const {
  double weight = 1;
  std::uint32_t depth = shape_.depth_of(context);
  for (;;) {
    const std::uint64_t at = find_entry<Value>(shape_.widths.front() - depth, context, word);
    if (at != empty_key) {
      const Slot<Value>& found = slot<Value>()[at];
      *p = weight * usable_probability(static_cast<double>(found.probability));
      return found.next < shape_.contexts() ? found.next : empty_context;
    }
    weight *= usable_weight(static_cast<double>(info<Value>()[context].backoff));
    if (depth == 0) {
      *p = weight * uniform_base(word);
      return empty_context;
    }
    // Whatever the file says, the search goes down.
    const std::uint32_t shorter = info<Value>()[context].shorter;
    context = shorter < context ? shorter : empty_context;
    depth = std::min(depth - 1, shape_.depth_of(context));
    if (depth == 0) context = empty_context;
  }
}

template <class Value>
void BackoffTable::contexts_in(std::size_t from, const std::uint32_t* columns, std::uint32_t* found) const {
  std::fill(found + from, found + shape_.levels(), none);
  if (shape_.sequence) {
    // Read the words from the oldest on, then fall back.
    std::uint32_t context = empty_context;
    double ignored = 0;
    for (std::uint32_t c = shape_.widths[from]; c-- > 0;)
      context = columns[c] < shape_.outcomes ? read<Value>(context, columns[c], &ignored) : empty_context;
    for (;;) {
      const std::uint32_t depth = shape_.depth_of(context);
      const std::size_t level = shape_.widths.front() - depth;
      if (level >= from) found[level] = context;
      if (depth == 0) return;
      const std::uint32_t shorter = info<Value>()[context].shorter;
      context = shorter < context ? shorter : empty_context;
    }
  }
  std::uint32_t context = empty_context;
  std::size_t level = shape_.levels();
  for (std::uint32_t depth = 0;; ++depth) {
    if (level > from && shape_.widths[level - 1] == depth) found[--level] = context;
    if (level == from) return;
    std::uint64_t at;
    const Region& region = shape_.context_regions[depth];
    if (depth == 0)
      at = columns[0] < region.length && slot<Value>()[region.begin + columns[0]].key != empty_key
               ? region.begin + columns[0]
               : empty_key;
    else
      at = find_in_region(slot<Value>(), region, slot_key(context, columns[depth]));
    if (at == empty_key) return;
    context = slot<Value>()[at].next;
    if (context >= shape_.contexts()) return;
  }
}

void BackoffTable::find_contexts(std::size_t from, const std::uint32_t* columns, std::uint32_t* found) const {
  if (shape_.double_precision)
    contexts_in<double>(from, columns, found);
  else
    contexts_in<float>(from, columns, found);
}

template <class Value>
double BackoffTable::probability_in(std::size_t from, const std::uint32_t* row, double base) const {
  std::uint32_t contexts[max_columns + 1];
  contexts_in<Value>(from, row + 1, contexts);
  double weight = 1;
  for (std::size_t j = from; j < shape_.levels(); ++j) {
    if (contexts[j] == none) continue;
    const std::uint64_t at = find_entry<Value>(j, contexts[j], row[0]);
    if (at != empty_key) return weight * usable_probability(static_cast<double>(slot<Value>()[at].probability));
    weight *= usable_weight(static_cast<double>(info<Value>()[contexts[j]].backoff));
  }
  return weight * base;
}

double BackoffTable::probability_from(std::size_t from, const std::uint32_t* row, double base) const {
  return shape_.double_precision ? probability_in<double>(from, row, base) : probability_in<float>(from, row, base);
}

double BackoffTable::backoff_of(std::size_t j, const std::uint32_t* columns) const {
  std::uint32_t contexts[max_columns + 1];
  find_contexts(j, columns, contexts);
  return contexts[j] == none ? 1.0 : usable_weight(backoff(contexts[j]));
}

BackoffTable::Advance BackoffTable::advance(const std::uint32_t* context, std::uint32_t length,
                                            std::uint32_t word) const {
  const auto step = [&]<class Value>(Value) {
    std::uint32_t state = empty_context;
    double p = 0;
    for (std::uint32_t c = std::min(length, shape_.widths.front()); c-- > 0;)
      state = read<Value>(state, context[c], &p);
    state = read<Value>(state, word, &p);
    return Advance{std::log(p), shape_.depth_of(state)};
  };
  return shape_.double_precision ? step(double{}) : step(float{});
}

template std::uint32_t BackoffTable::read<float>(std::uint32_t, std::uint32_t, double*) const;
template std::uint32_t BackoffTable::read<double>(std::uint32_t, std::uint32_t, double*) const;

ContextColumns::ContextColumns(const BackoffTable& table)
    : shape_(table.shape()), shorter_(shape_.contexts(), none), column_(shape_.contexts(), none) {
  const auto note = [&](std::uint32_t context, std::uint32_t shorter, std::uint32_t column) {
    if (context < shape_.contexts() && shorter < shape_.contexts() &&
        shape_.depth_of(context) == shape_.depth_of(shorter) + 1) {
      shorter_[context] = shorter;
      column_[context] = column;
    }
  };
  if (shape_.sequence) {
    // An entry leads to the context that begins with its outcome.
    for (std::size_t j = 0; j < shape_.levels(); ++j)
      table.each_entry(j, [&](std::uint64_t, std::uint32_t context, std::uint32_t outcome, double, std::uint32_t next) {
        note(next, context, outcome);
      });
    return;
  }
  for (const Region& region : shape_.context_regions)
    for (std::uint64_t i = region.begin; i < region.begin + region.length; ++i) {
      const auto read = [&]<class Value>(const Slot<Value>& slot) {
        if (slot.key != empty_key)
          note(slot.next, static_cast<std::uint32_t>(slot.key >> 32), static_cast<std::uint32_t>(slot.key));
      };
      if (shape_.double_precision)
        read(static_cast<const Slot<double>*>(table.slots())[i]);
      else
        read(static_cast<const Slot<float>*>(table.slots())[i]);
    }
}

std::uint32_t ContextColumns::columns(std::uint32_t context, std::uint32_t* out) const {
  if (context >= shorter_.size()) return none;
  const std::uint32_t depth = shape_.depth_of(context);
  for (std::uint32_t c = 0; c < depth; ++c) {
    // A sequence grows at the front, another context at the end.
    out[shape_.sequence ? c : depth - 1 - c] = column_[context];
    context = shorter_[context];
    if (context == none) return none;
  }
  return depth;
}

}  // namespace treelm
