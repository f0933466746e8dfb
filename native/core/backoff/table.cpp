#include "backoff/table.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace treelm {

BackoffTable::BackoffTable(TableShape shape, TableArrays arrays)
    : shape_(std::move(shape)), layout_(shape_), arrays_(std::move(arrays)) {
  if (!shape_.compact) return;
  for (const auto* regions : {&layout_.entries, &layout_.contexts})
    for (const Region& region : *regions)
      if (!region.direct() && !region.ranges.check(arrays_.index + region.index))
        throw Error(ErrorCode::table, "the index of the table does not say where the rows of every context lie");
}

template <unsigned Bits>
std::uint64_t BackoffTable::find(const Region& region, std::uint64_t context, std::uint32_t last) const {
  if (region.direct()) return last < region.rows ? last : no_position;
  if (!region.fits(context, last)) return no_position;
  if constexpr (Bits == own_bits) {
    const auto [from, to] = rows_of(region, context);
    return find_sorted(region, from, to, last);
  }
  const std::uint64_t hash = region.mixer.mix(region.key(context, last));
  const Region::Place place = region.place(hash);
  const auto [from, to] = bucket_rows(region, place.bucket);
  return from == to ? no_position : find_between(region, hash, place, from, to);
}

double BackoffTable::backoff(std::uint32_t context) const {
  return with_value_bits(access(), [&]<unsigned Bits>() { return weight_of<Bits>(context, depth_of(context)); });
}

// What reading a word after a context gives: the context that comes next, and the probability.
template <unsigned Bits>
std::uint32_t BackoffTable::read(std::uint32_t context, std::uint32_t word, double* p) const {
  if constexpr (Bits == own_bits) {
    Suffixes suffixes = suffixes_of(context);
    *p = read_after(suffixes, word);
    return suffixes.contexts[suffixes.longest];
  }
  const auto look_up = [&](const Region& region, std::uint32_t, std::uint64_t row) {
    return find<Bits>(region, row, word);
  };
  return read_with<Bits>(look_up, context, word, p);
}

std::uint32_t BackoffTable::shorter_context(std::uint32_t context) const {
  if (context == empty_context) return empty_context;
  if (!shape_.compact) return shorter(context, depth_of(context));
  const Suffixes suffixes = suffixes_of(context);
  for (std::uint32_t depth = suffixes.longest; depth-- > 0;)
    if (suffixes.contexts[depth] != none) return suffixes.contexts[depth];
  return empty_context;
}

template <unsigned Bits>
void BackoffTable::contexts_in(std::size_t from, const std::uint32_t* columns, std::uint32_t* found) const {
  std::fill(found + from, found + shape_.levels(), none);
  if (Bits == own_bits && shape_.sequence) {
    const Suffixes suffixes = suffixes_after(columns, shape_.widths[from]);
    for (std::uint32_t depth = 0; depth <= suffixes.longest; ++depth)
      found[shape_.widths.front() - depth] = suffixes.contexts[depth];
    return;
  }
  if (shape_.sequence) {
    // Read the words from the oldest on, then fall back.
    std::uint32_t context = empty_context;
    double ignored = 0;
    for (std::uint32_t c = shape_.widths[from]; c-- > 0;)
      context = columns[c] < shape_.outcomes ? read<Bits>(context, columns[c], &ignored) : empty_context;
    for (std::uint32_t depth = depth_of(context);; depth = depth_of(context)) {
      const std::size_t level = shape_.widths.front() - depth;
      if (level >= from) found[level] = context;
      if (depth == 0) return;
      context = shorter(context, depth);
    }
  }
  std::uint32_t context = empty_context;
  std::size_t level = shape_.levels();
  for (std::uint32_t depth = 0;; ++depth) {
    if (level > from && shape_.widths[level - 1] == depth) found[--level] = context;
    if (level == from) return;
    const Region& region = layout_.contexts[depth];
    const std::uint64_t at = find<Bits>(region, context - layout_.starts[depth], columns[depth]);
    if (at == no_position || std::signbit(weight_at<Bits>(region, at))) return;
    context = static_cast<std::uint32_t>(region.first_own + at);
  }
}

void BackoffTable::find_contexts(std::size_t from, const std::uint32_t* columns, std::uint32_t* found) const {
  with_value_bits(access(), [&]<unsigned Bits>() { contexts_in<Bits>(from, columns, found); });
}

template <unsigned Bits>
double BackoffTable::probability_in(std::size_t from, const std::uint32_t* row, double base) const {
  std::uint32_t contexts[max_columns + 1];
  contexts_in<Bits>(from, row + 1, contexts);
  double weight = 1;
  for (std::size_t j = from; j < shape_.levels(); ++j) {
    if (contexts[j] == none) continue;
    const Region& region = layout_.entries[j];
    const std::uint32_t width = shape_.widths[j];
    const std::uint64_t at = find<Bits>(region, contexts[j] - layout_.starts[width], row[0]);
    const double stored = at == no_position ? absent : probability_at<Bits>(region, at);
    if (at != no_position && (!region.direct() || stored != absent)) return weight * usable_probability(stored);
    weight *= usable_weight(weight_of<Bits>(contexts[j], width));
  }
  return weight * base;
}

double BackoffTable::probability_from(std::size_t from, const std::uint32_t* row, double base) const {
  return with_value_bits(access(), [&]<unsigned Bits>() { return probability_in<Bits>(from, row, base); });
}

// Level after level, those outcomes that the levels above do not have.
template <unsigned Bits>
void BackoffTable::distribution_in(const std::uint32_t* columns, std::span<double> out) const {
  std::uint32_t contexts[max_columns + 1];
  contexts_in<Bits>(0, columns, contexts);
  std::vector<std::uint32_t> left(out.size());
  std::iota(left.begin(), left.end(), 0u);
  double weight = 1;
  for (std::size_t j = 0; j < shape_.levels(); ++j) {
    if (contexts[j] == none) continue;
    const Region& region = layout_.entries[j];
    const std::uint32_t width = shape_.widths[j];
    std::size_t kept = 0;
    for (const std::uint32_t outcome : left) {
      const std::uint64_t at = find<Bits>(region, contexts[j] - layout_.starts[width], outcome);
      const double stored = at == no_position ? absent : probability_at<Bits>(region, at);
      if (at != no_position && (!region.direct() || stored != absent))
        out[outcome] = weight * usable_probability(stored);
      else
        left[kept++] = outcome;
    }
    left.resize(kept);
    weight *= usable_weight(weight_of<Bits>(contexts[j], width));
  }
  for (const std::uint32_t outcome : left) out[outcome] = weight * uniform_base(outcome);
}

void BackoffTable::distribution(const std::uint32_t* columns, std::span<double> out) const {
  with_value_bits(access(), [&]<unsigned Bits>() { distribution_in<Bits>(columns, out); });
}

double BackoffTable::backoff_of(std::size_t j, const std::uint32_t* columns) const {
  std::uint32_t contexts[max_columns + 1];
  find_contexts(j, columns, contexts);
  return contexts[j] == none ? 1.0 : usable_weight(backoff(contexts[j]));
}

std::uint32_t BackoffTable::context_after(const std::uint32_t* words, std::uint32_t length) const {
  if (shape_.compact) {
    const Suffixes suffixes = suffixes_after(words, length);
    return suffixes.contexts[suffixes.longest];
  }
  return with_value_bits(shape_.value_bits, [&]<unsigned Bits>() {
    std::uint32_t context = empty_context;
    double ignored = 0;
    for (std::uint32_t c = std::min(length, shape_.widths.front()); c-- > 0;)
      context = read<Bits>(context, words[c], &ignored);
    return context;
  });
}

double BackoffTable::read_word(std::uint32_t& context, std::uint32_t word) const {
  double p = 0;
  context = with_value_bits(access(), [&]<unsigned Bits>() { return read<Bits>(context, word, &p); });
  return std::log(p);
}

std::uint32_t BackoffTable::matched_words(std::uint32_t context, std::uint32_t word) const {
  return with_value_bits(access(), [&]<unsigned Bits>() -> std::uint32_t {
    for (;; context = shorter_context(context)) {
      const std::uint32_t depth = depth_of(context);
      const Region& region = layout_.entries[shape_.widths.front() - depth];
      const std::uint64_t at = find<Bits>(region, context - layout_.starts[depth], word);
      // An entry that was not estimated only leads on.
      if (at != no_position && !std::signbit(probability_at<Bits>(region, at))) return depth + 1;
      if (depth == 0) return 0;
    }
  });
}

BackoffTable::Advance BackoffTable::advance(const std::uint32_t* context, std::uint32_t length,
                                            std::uint32_t word) const {
  std::uint32_t state = context_after(context, length);
  const double log_probability = read_word(state, word);
  return {log_probability, depth_of(state)};
}

template std::uint64_t BackoffTable::find<own_bits>(const Region&, std::uint64_t, std::uint32_t) const;
template std::uint64_t BackoffTable::find<8>(const Region&, std::uint64_t, std::uint32_t) const;
template std::uint64_t BackoffTable::find<16>(const Region&, std::uint64_t, std::uint32_t) const;
template std::uint64_t BackoffTable::find<32>(const Region&, std::uint64_t, std::uint32_t) const;
template std::uint64_t BackoffTable::find<64>(const Region&, std::uint64_t, std::uint32_t) const;
template std::uint32_t BackoffTable::read<own_bits>(std::uint32_t, std::uint32_t, double*) const;
template std::uint32_t BackoffTable::read<8>(std::uint32_t, std::uint32_t, double*) const;
template std::uint32_t BackoffTable::read<16>(std::uint32_t, std::uint32_t, double*) const;
template std::uint32_t BackoffTable::read<32>(std::uint32_t, std::uint32_t, double*) const;
template std::uint32_t BackoffTable::read<64>(std::uint32_t, std::uint32_t, double*) const;

ContextColumns::ContextColumns(const BackoffTable& table)
    : table_(table), shorter_(table.contexts(), none), column_(table.contexts(), none) {
  const auto note = [&](std::uint32_t context, std::uint32_t shorter, std::uint32_t column) {
    if (table.depth_of(context) != table.depth_of(shorter) + 1) return;
    shorter_[context] = shorter;
    column_[context] = column;
  };
  if (table.shape().sequence) {
    // An entry is the context that begins with its outcome.
    for (std::size_t j = 0; j < table.shape().levels(); ++j)
      table.each_entry(j, [&](std::uint64_t, std::uint32_t context, std::uint32_t outcome, double, std::uint32_t own) {
        note(own, context, outcome);
      });
    return;
  }
  for (const Region& region : table.layout().contexts)
    table.each_row(region, [&](std::uint64_t i, std::uint32_t context, std::uint32_t last) {
      note(static_cast<std::uint32_t>(region.first_own + i), context, last);
    });
}

std::uint32_t ContextColumns::columns(std::uint32_t context, std::uint32_t* out) const {
  if (context >= shorter_.size()) return none;
  const std::uint32_t depth = table_.depth_of(context);
  for (std::uint32_t c = 0; c < depth; ++c) {
    // A sequence grows at the front, another context at the end.
    out[table_.shape().sequence ? c : depth - 1 - c] = column_[context];
    context = shorter_[context];
    if (context == none) return none;
  }
  return depth;
}

}  // namespace treelm
