#include "backoff/continuation.h"

#include <algorithm>
#include <limits>

#include "base/radix_sort.h"

namespace treelm {

namespace {

[[noreturn]] void bad_chain(const std::string& what) { throw Error(ErrorCode::chain, what); }

template <std::size_t W>
struct ContextRecord {
  static constexpr bool has_ties = false;
  Key<W> key;
  std::uint32_t entry;
  std::uint32_t count;
  friend bool operator<(const ContextRecord& a, const ContextRecord& b) { return a.key < b.key; }
};

void add_to(std::uint32_t& count, std::uint64_t more) {
  const std::uint64_t sum = std::uint64_t{count} + more;
  if (sum > std::numeric_limits<std::uint32_t>::max())
    throw Error(ErrorCode::overflow, "the counts of one entry sum to " + std::to_string(sum));
  count = static_cast<std::uint32_t>(sum);
}

}  // namespace

void check_shape(const ChainShape& shape) {
  if (shape.widths.empty()) bad_chain("a chain has at least one level");
  if (shape.widths.front() != shape.pads.size())
    bad_chain("the first level must keep all " + std::to_string(shape.pads.size()) + " context columns");
  for (std::size_t j = 1; j < shape.widths.size(); ++j) {
    const std::uint32_t above = shape.widths[j - 1], here = shape.widths[j];
    if (here >= above) bad_chain("level " + std::to_string(j) + " drops nothing");
    std::size_t pads_dropped = 0;
    for (std::uint32_t c = here; c < above; ++c) pads_dropped += shape.pads[c] != none;
    if (pads_dropped > 1) bad_chain("level " + std::to_string(j) + " drops more than one padded column");
  }
}

void check_events(const SortedEvents& events, const ChainShape& shape) {
  check_shape(shape);
  if (events.layout().columns() != shape.columns())
    bad_chain("the chain has " + std::to_string(shape.columns()) + " columns, the events " +
              std::to_string(events.layout().columns()));
  if (events.rows() == 0) throw Error(ErrorCode::no_data, "no event was counted");
  if (events.rows() >= none) throw Error(ErrorCode::too_large, "more than four billion distinct events");
}

ChainCounts::ChainCounts(std::shared_ptr<const SortedEvents> events, ChainShape shape, bool token_counts,
                         bool keep_tokens, std::size_t threads)
    : events_(std::move(events)),
      shape_(std::move(shape)),
      token_counts_(token_counts),
      keep_tokens_(keep_tokens),
      threads_(threads) {
  check_events(*events_, shape_);
  with_key_words(events_->layout().words(), [&]<std::size_t W>() { count_levels<W>(); });
}

template <std::size_t W>
void ChainCounts::count_levels() {
  const SortedEvents& events = *events_;
  const KeyLayout& layout = events.layout();
  const auto* keys = events.keys_as<W>();
  const std::size_t rows = events.rows(), depth = shape_.levels();
  std::vector<unsigned> prefix(depth);
  for (std::size_t j = 0; j < depth; ++j) prefix[j] = layout.prefix(1 + shape_.widths[j]);

  const auto keeps = [&](std::size_t j) { return keep_tokens_ && !token_counts_ && j > 0; };
  levels_.assign(depth, {});
  {
    std::vector<std::size_t> size(depth, 0);
    for (std::size_t i = 0; i < rows; ++i) {
      const unsigned common = i == 0 ? 0 : common_bits(keys[i - 1], keys[i]);
      for (std::size_t j = 0; j < depth && (i == 0 || common < prefix[j]); ++j) ++size[j];
    }
    for (std::size_t j = 0; j < depth; ++j) {
      levels_[j].first_row.reserve(size[j]);
      levels_[j].count.reserve(size[j]);
      // At the first level, and where all levels count tokens, they are the counts themselves.
      if (keeps(j)) levels_[j].tokens.reserve(size[j]);
    }
  }
  enum class Kind : std::uint8_t { types, raw, without };
  std::vector<Kind> kind(depth, Kind::without);
  for (std::size_t i = 0; i < rows; ++i) {
    const unsigned common = i == 0 ? 0 : common_bits(keys[i - 1], keys[i]);
    std::size_t opened = 0;  // levels [0, opened) begin a new entry here
    while (opened < depth && (i == 0 || common < prefix[opened])) ++opened;
    std::uint32_t pads = 0, seen = 0;
    if (opened > 0)
      for (std::size_t j = depth; j-- > 0;) {
        for (; seen < shape_.widths[j]; ++seen)
          pads += shape_.pads[seen] != none && layout.column(keys[i], 1 + seen) == shape_.pads[seen];
        if (j >= opened) continue;
        LevelCounts& level = levels_[j];
        kind[j] = pads > 1 ? Kind::without : (pads == 1 || j == 0 || token_counts_) ? Kind::raw : Kind::types;
        if (kind[j] == Kind::without) continue;
        level.first_row.push_back(static_cast<std::uint32_t>(i));
        level.count.push_back(0);
        if (keeps(j)) level.tokens.push_back(0);
        if (j + 1 < depth && kind[j + 1] == Kind::types) ++levels_[j + 1].count.back();
      }
    for (std::size_t j = 0; j < depth; ++j) {
      if (kind[j] == Kind::without) continue;
      if (keeps(j)) add_to(levels_[j].tokens.back(), events.counts()[i]);
      if (kind[j] == Kind::raw) add_to(levels_[j].count.back(), events.counts()[i]);
    }
  }
}

std::array<std::uint64_t, 4> ChainCounts::counts_of_counts(std::size_t j) const {
  std::array<std::uint64_t, 4> result{};
  for (const std::uint32_t count : levels_[j].count)
    if (count >= 1 && count <= 4) ++result[count - 1];
  return result;
}

LevelContexts ChainCounts::contexts(std::size_t j) const {
  const KeyLayout& layout = events_->layout();
  const unsigned bits = layout.prefix(1 + shape_.widths[j]) - layout.prefix(1);
  return with_key_words(layout.words(), [&]<std::size_t W>() {
    return with_key_words((bits + 63) / 64, [&]<std::size_t V>() {
      // A context is shorter than its entries.
      if constexpr (V <= W)
        return group<W, V>(j);
      else
        return LevelContexts();
    });
  });
}

template <std::size_t W, std::size_t V>
LevelContexts ChainCounts::group(std::size_t j) const {
  const KeyLayout& layout = events_->layout();
  const LevelCounts& level = levels_[j];
  const auto* keys = events_->keys_as<W>();
  const unsigned from = layout.prefix(1), to = layout.prefix(1 + shape_.widths[j]);
  const std::size_t entries = level.count.size();
  LargeVector<ContextRecord<V>> records;
  // As large as for the largest level, so that all levels can use the same memory in turn.
  std::size_t most = 0;
  for (const LevelCounts& each : levels_) most = std::max(most, each.count.size());
  records.reserve(most * sizeof(ContextRecord<W>) / sizeof(ContextRecord<V>));
  records.resize(entries);
  for (std::size_t i = 0; i < entries; ++i)
    records[i] = {slice<V>(keys[level.first_row[i]], from, to), static_cast<std::uint32_t>(i), level.count[i]};
  if (to > from) {
    ThreadPool pool(threads_);
    radix_sort(std::span(records), to - from, pool);
  }
  LevelContexts result;
  std::size_t contexts = 0;
  for (std::size_t i = 0; i < entries; ++i) contexts += i == 0 || !(records[i].key == records[i - 1].key);
  result.counts.reserve(contexts);
  result.an_entry.reserve(contexts);
  result.context_of.resize(entries);
  for (std::size_t i = 0; i < entries; ++i) {
    const auto& record = records[i];
    if (i == 0 || !(record.key == records[i - 1].key)) {
      result.counts.emplace_back();
      result.an_entry.push_back(record.entry);
    }
    ContextCounts& counts = result.counts.back();
    counts.total += record.count;
    if (record.count > 0) ++counts.outcomes_of[std::min<std::uint32_t>(record.count, 3) - 1];
    result.context_of[record.entry] = static_cast<std::uint32_t>(result.counts.size() - 1);
  }
  return result;
}

std::uint32_t ChainCounts::find(std::size_t j, const std::uint32_t* row) const {
  const KeyLayout& layout = events_->layout();
  const std::size_t columns = 1 + shape_.widths[j];
  std::vector<std::uint32_t> wanted(layout.columns(), 0);
  for (std::size_t c = 0; c < columns; ++c) {
    if (!layout.fits(c, row[c])) return none;
    wanted[c] = row[c];
  }
  return with_key_words(layout.words(), [&]<std::size_t W>() -> std::uint32_t {
    const Key<W> key = layout.pack<W>(wanted.data());
    const auto* keys = events_->keys_as<W>();
    const LevelCounts& level = levels_[j];
    const auto at = std::lower_bound(level.first_row.begin(), level.first_row.end(), key,
                                     [&](std::uint32_t first, const Key<W>& value) {
                                       return slice<W>(keys[first], 0, layout.prefix(columns)) < value;
                                     });
    if (at == level.first_row.end() || !(slice<W>(keys[*at], 0, layout.prefix(columns)) == key)) return none;
    return static_cast<std::uint32_t>(at - level.first_row.begin());
  });
}

std::vector<std::uint32_t> ChainCounts::row(std::size_t j, std::size_t entry) const {
  std::vector<std::uint32_t> row(events_->layout().columns());
  with_key_words(events_->layout().words(), [&]<std::size_t W>() {
    events_->layout().unpack(events_->keys_as<W>()[levels_[j].first_row[entry]], row.data());
  });
  row.resize(1 + shape_.widths[j]);
  return row;
}

}  // namespace treelm
