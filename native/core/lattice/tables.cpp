#include "lattice/tables.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/starts.h"

namespace treelm {

namespace {

[[noreturn]] void damaged(std::size_t stem, const std::string& what) {
  throw Error(ErrorCode::table, "stem " + std::to_string(stem) + " of a lattice " + what);
}

template <class Values>
bool ascends(const Values& values, std::size_t from, std::size_t to) {
  for (std::size_t i = from + 1; i < to; ++i)
    if (!(values[i - 1] < values[i])) return false;
  return true;
}

template <class Values>
void check_offsets(std::size_t stem, const Values& begin, std::size_t size, const char* of) {
  if (!starts_fit(begin, size)) damaged(stem, std::string("has ") + of + " that do not follow each other");
}

bool negative(const LargeVector<std::int64_t>& counts) {
  return std::any_of(counts.begin(), counts.end(), [](std::int64_t count) { return count < 0; });
}

void check_topics(const StemTable::Stored& stored, std::size_t stem) {
  if (stored.topic_begin.size() != stored.outcomes.size() + 1)
    damaged(stem, "does not say which topics its entries have");
  check_offsets(stem, stored.topic_begin, stored.topics.size(), "topics");
  if (stored.topic_counts.size() != stored.topics.size() || negative(stored.topic_counts))
    damaged(stem, "has topics without a count");
  for (std::size_t entry = 0; entry < stored.outcomes.size(); ++entry)
    if (!ascends(stored.topics, stored.topic_begin[entry], stored.topic_begin[entry + 1]))
      damaged(stem, "has topics that do not ascend");
}

// Whatever a file says, the look-ups stay inside the arrays.
void check_stored(const StemTable::Stored& stored, const LatticeShape& shape, std::size_t stem) {
  if (stored.width != shape.stems()[stem].size()) damaged(stem, "has a different number of columns");
  check_offsets(stem, stored.begin, stored.outcomes.size(), "contexts");
  const std::size_t contexts = stored.begin.size() - 1;
  if (stored.keys.size() != contexts * stored.width) damaged(stem, "has keys for a different number of contexts");
  if (stored.width == 0 && contexts > 1) damaged(stem, "has more than one empty context");
  if (stored.counts.size() != stored.outcomes.size() || negative(stored.counts))
    damaged(stem, "has outcomes without a count");
  const std::uint32_t* keys = stored.keys.data();
  for (std::size_t context = 0; context < contexts; ++context) {
    if (context > 0 && stored.width > 0 &&
        !std::lexicographical_compare(keys + (context - 1) * stored.width, keys + context * stored.width,
                                      keys + context * stored.width, keys + (context + 1) * stored.width))
      damaged(stem, "has contexts that do not ascend");
    if (!ascends(stored.outcomes, stored.begin[context], stored.begin[context + 1]))
      damaged(stem, "has outcomes that do not ascend");
  }
  if (std::any_of(stored.outcomes.begin(), stored.outcomes.end(), [&](auto o) { return o >= shape.outcomes(); }))
    damaged(stem, "has outcomes that are out of range");
  if (shape.stem_has_topic(stem))
    check_topics(stored, stem);
  else if (!stored.topic_begin.empty() || !stored.topics.empty() || !stored.topic_counts.empty())
    damaged(stem, "has topics, and should have none");
}

// The table of sorted distinct rows.
template <std::size_t W>
StemTable::Stored stored_of(const LargeVector<CountedKey<W>>& rows, const KeyLayout& layout, bool topics) {
  StemTable::Stored stored;
  const std::size_t width = layout.columns() - 2;
  stored.width = width;
  const unsigned context_bits = layout.prefix(width), entry_bits = layout.prefix(width + 1);
  // Counted first, so that no array is larger than it must be.
  std::size_t contexts = 0, entries = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const unsigned same = i == 0 ? 0 : common_bits(rows[i - 1].key, rows[i].key);
    contexts += i == 0 || same < context_bits;
    entries += i == 0 || same < entry_bits;
  }
  stored.keys.reserve(contexts * width);
  stored.begin.reserve(contexts + 1);
  stored.outcomes.reserve(entries);
  stored.counts.reserve(entries);
  if (topics) {
    if (rows.size() >= StemTable::none) throw Error(ErrorCode::too_large, "a lattice has too many events with topics");
    stored.topic_begin.reserve(entries + 1);
    stored.topics.reserve(rows.size());
    stored.topic_counts.reserve(rows.size());
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const unsigned same = i == 0 ? 0 : common_bits(rows[i - 1].key, rows[i].key);
    if (i == 0 || same < context_bits) {
      for (std::size_t c = 0; c < width; ++c) stored.keys.push_back(layout.column(rows[i].key, c));
      stored.begin.push_back(stored.outcomes.size());
    }
    if (i == 0 || same < entry_bits) {
      stored.outcomes.push_back(layout.column(rows[i].key, width));
      stored.counts.push_back(0);
      if (topics) stored.topic_begin.push_back(static_cast<std::uint32_t>(i));
    }
    stored.counts.back() = add_counts(stored.counts.back(), rows[i].count);
    if (!topics) continue;
    stored.topics.push_back(static_cast<std::uint16_t>(layout.column(rows[i].key, width + 1)));
    stored.topic_counts.push_back(rows[i].count);
  }
  stored.begin.push_back(stored.outcomes.size());
  if (topics) stored.topic_begin.push_back(static_cast<std::uint32_t>(rows.size()));
  return stored;
}

// The rows of a smaller stem: those of a larger one with columns left out.
template <std::size_t W>
LargeVector<CountedKey<W>> marginal_rows(const StemTable::Stored& larger, const KeyLayout& layout,
                                         const std::vector<std::uint32_t>& from, bool topics) {
  LargeVector<CountedKey<W>> rows;
  rows.reserve(topics ? larger.topics.size() : larger.outcomes.size());
  std::vector<std::uint32_t> row(from.size() + 2, 0);
  for (std::size_t context = 0; context + 1 < larger.begin.size(); ++context) {
    const std::uint32_t* key = larger.keys.data() + context * larger.width;
    for (std::size_t i = 0; i < from.size(); ++i) row[i] = key[from[i]];
    for (std::uint64_t entry = larger.begin[context]; entry < larger.begin[context + 1]; ++entry) {
      row[from.size()] = larger.outcomes[entry];
      if (!topics) {
        rows.push_back({layout.pack<W>(row.data()), larger.counts[entry]});
        continue;
      }
      for (std::size_t i = larger.topic_begin[entry]; i < larger.topic_begin[entry + 1]; ++i) {
        row[from.size() + 1] = larger.topics[i];
        rows.push_back({layout.pack<W>(row.data()), larger.topic_counts[i]});
      }
    }
  }
  return rows;
}

}  // namespace

LatticeTables::LatticeTables(LatticeEvents& events, std::int64_t least, const ProgressCallback& progress)
    : shape_(events.shape()) {
  with_key_words(events.runs().layout.words(), [&]<std::size_t W>() { build<W>(events, least, progress); });
}

LatticeTables::LatticeTables(LatticeShape shape, std::vector<StemTable::Stored> stems) : shape_(std::move(shape)) {
  if (stems.size() != shape_.stems().size()) throw Error(ErrorCode::table, "a lattice has a different number of stems");
  for (std::size_t s = 0; s < stems.size(); ++s) {
    check_stored(stems[s], shape_, s);
    stems_.emplace_back(std::move(stems[s]));
  }
}

template <std::size_t W>
void LatticeTables::build(LatticeEvents& events, std::int64_t least, const ProgressCallback& progress) {
  stems_.resize(shape_.stems().size());
  const std::vector<std::size_t> stems = order();
  std::vector<StemTable::Stored> whole(stems.size());
  std::vector<std::size_t> waiting(stems.size(), 0);  // smaller stems that are summed up from this one
  for (const std::size_t stem : stems)
    if (stem != shape_.top_stem()) ++waiting[source(stem)];
  const auto settle = [&](std::size_t stem) {
    if (waiting[stem] > 0) return;
    if (least > 0) whole[stem] = frequent(whole[stem], stem, least);
    stems_[stem] = StemTable(std::exchange(whole[stem], {}));
  };
  for (std::size_t done = 0; done < stems.size(); ++done) {
    const std::size_t stem = stems[done];
    const bool topics = shape_.stem_has_topic(stem);
    progress(done, stems.size());
    const KeyLayout layout = lattice_layout(shape_, stem, events.limits());
    if (stem == shape_.top_stem()) {
      const auto rows = static_cast<KeyRuns<W>&>(events.runs()).finish();
      if (rows.empty()) throw Error(ErrorCode::no_data, "there are no events for a lattice");
      whole[stem] = stored_of(rows, layout, topics);
    } else {
      const std::size_t larger = source(stem);
      auto rows = marginal_rows<W>(whole[larger], layout, places(stem, larger), topics);
      --waiting[larger];
      settle(larger);
      sort_and_sum(rows, layout.total(), events.pool());
      whole[stem] = stored_of(rows, layout, topics);
    }
    settle(stem);
  }
  progress(stems.size(), stems.size());
}

StemTable::Stored LatticeTables::frequent(const StemTable::Stored& stored, std::size_t stem, std::int64_t least) const {
  StemTable::Stored kept = StemTable::cut(stored, least);
  const bool with_topics = shape_.stem_has_topic(stem);
  if (stem == shape_.top_stem() && (with_topics ? kept.topics.empty() : kept.outcomes.empty())) {
    const LargeVector<std::int64_t>& counts = with_topics ? stored.topic_counts : stored.counts;
    const std::int64_t largest = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
    throw Error(ErrorCode::no_data, "the cut-off of " + std::to_string(static_cast<double>(least) * count_unit) +
                                        " leaves nothing of the largest context: its largest count is " +
                                        std::to_string(static_cast<double>(largest) * count_unit));
  }
  return kept;
}

std::vector<std::size_t> LatticeTables::order() const {
  std::vector<std::size_t> stems(shape_.stems().size());
  std::iota(stems.begin(), stems.end(), std::size_t{0});
  std::stable_sort(stems.begin(), stems.end(),
                   [&](std::size_t a, std::size_t b) { return shape_.stems()[a].size() > shape_.stems()[b].size(); });
  return stems;
}

// The smallest stem that holds all columns, so that there is little to sum up.
std::size_t LatticeTables::source(std::size_t stem) const {
  std::size_t best = shape_.top_stem();
  const std::vector<std::uint32_t>& wanted = shape_.stems()[stem];
  for (std::size_t s = 0; s < shape_.stems().size(); ++s) {
    const std::vector<std::uint32_t>& columns = shape_.stems()[s];
    const bool holds =
        columns.size() > wanted.size() && std::all_of(wanted.begin(), wanted.end(), [&](std::uint32_t c) {
          return std::find(columns.begin(), columns.end(), c) != columns.end();
        });
    const bool topics = shape_.stem_has_topic(s) || !shape_.stem_has_topic(stem);
    if (holds && topics && columns.size() < shape_.stems()[best].size()) best = s;
  }
  return best;
}

std::vector<std::uint32_t> LatticeTables::places(std::size_t stem, std::size_t in) const {
  std::vector<std::uint32_t> found;
  const std::vector<std::uint32_t>& columns = shape_.stems()[in];
  for (const std::uint32_t column : shape_.stems()[stem])
    found.push_back(static_cast<std::uint32_t>(std::find(columns.begin(), columns.end(), column) - columns.begin()));
  return found;
}

std::size_t LatticeTables::bytes() const {
  std::size_t sum = 0;
  for (const StemTable& stem : stems_) sum += stem.bytes();
  return sum;
}

std::size_t LatticeTables::types(std::size_t node) const {
  const StemTable& stem = stems_[shape_.stem(node)];
  return shape_.with_topic(node) ? stem.topic_entries() : stem.entries();
}

void LatticeTables::refill(std::span<const std::int64_t> counts) {
  for (const std::size_t stem : order()) {
    if (stem == shape_.top_stem())
      stems_[stem].refill(counts);
    else
      stems_[stem].refill_from(stems_[source(stem)], places(stem, source(stem)));
  }
}

LatticeTables LatticeTables::cut(std::int64_t least) const {
  std::vector<StemTable> kept;
  for (std::size_t stem = 0; stem < stems_.size(); ++stem)
    kept.emplace_back(frequent(stems_[stem].stored(), stem, least));
  return LatticeTables(shape_, std::move(kept));
}

}  // namespace treelm
