#include "backoff/streamed_counts.h"

#include <algorithm>
#include <limits>
#include <string>

namespace treelm {

template <std::size_t W>
LevelCursor<W>::LevelCursor(const SortedEvents& events, const ChainShape& shape, bool token_counts, std::size_t j)
    : events_(events),
      shape_(shape),
      j_(j),
      raw_(token_counts || j == 0),
      prefix_(events.layout().prefix(1 + shape.widths[j])),
      above_prefix_(j == 0 ? 0 : events.layout().prefix(1 + shape.widths[j - 1])) {}

template <std::size_t W>
std::uint32_t LevelCursor<W>::pads(const Key<W>& key, std::uint32_t width) const {
  std::uint32_t found = 0;
  for (std::uint32_t c = 0; c < width; ++c)
    found += shape_.pads[c] != none && events_.layout().column(key, 1 + c) == shape_.pads[c];
  return found;
}

template <std::size_t W>
bool LevelCursor<W>::next() {
  const auto* keys = events_.keys_as<W>();
  const std::size_t rows = events_.rows();
  while (row_ < rows) {
    key_ = keys[row_];
    const std::uint32_t own_pads = pads(key_, shape_.widths[j_]);
    std::uint64_t tokens = 0, types = 0;
    Key<W> before = key_;
    const std::size_t first = row_;
    for (; row_ < rows; ++row_) {
      const Key<W>& key = keys[row_];
      const unsigned common = row_ == first ? 0 : common_bits(before, key);
      if (row_ != first && common < prefix_) break;
      if (j_ > 0 && (row_ == first || common < above_prefix_)) types += pads(key, shape_.widths[j_ - 1]) <= 1;
      tokens += events_.counts()[row_];
      before = key;
    }
    events_.pass(first, passed_);
    if (own_pads > 1) continue;
    const std::uint64_t count = raw_ || own_pads == 1 ? tokens : types;
    if (std::max(tokens, count) > std::numeric_limits<std::uint32_t>::max())
      throw Error(ErrorCode::overflow, "the counts of one entry sum to " + std::to_string(tokens));
    count_ = static_cast<std::uint32_t>(count);
    tokens_ = static_cast<std::uint32_t>(tokens);
    ++rank_;
    return true;
  }
  return false;
}

template class LevelCursor<1>;
template class LevelCursor<2>;
template class LevelCursor<4>;
template class LevelCursor<max_key_words>;

StreamedCounts::StreamedCounts(std::shared_ptr<const SortedEvents> events, ChainShape shape, bool token_counts,
                               std::size_t threads, MemoryLimit limit, const ProgressCallback& progress)
    : events_(std::move(events)),
      shape_(std::move(shape)),
      token_counts_(token_counts),
      threads_(threads),
      limit_(std::move(limit)) {
  check_events(*events_, shape_);
  sizes_.assign(levels(), 0);
  counts_of_counts_.assign(levels(), {});
  with_key_words(events_->layout().words(), [&]<std::size_t W>() {
    const std::uint64_t rows = events_->rows(), all = rows * levels();
    for (std::size_t j = 0; j < levels(); ++j) {
      for (LevelCursor<W> cursor(*events_, shape_, token_counts_, j); cursor.next(); ++sizes_[j]) {
        if (cursor.count() >= 1 && cursor.count() <= 4) ++counts_of_counts_[j][cursor.count() - 1];
        if (cursor.rank() % 1000000 == 999999) progress(j * rows + cursor.rank(), all);
      }
      progress((j + 1) * rows, all);
    }
  });
}

std::vector<std::size_t> level_sizes(const SortedEvents& events, const ChainShape& shape) {
  check_events(events, shape);
  const std::size_t depth = shape.levels();
  std::vector<std::size_t> size(depth, 0);
  with_key_words(events.layout().words(), [&]<std::size_t W>() {
    const auto* keys = events.keys_as<W>();
    std::size_t passed = 0;
    for (std::size_t i = 0; i < events.rows(); ++i) {
      const unsigned common = i == 0 ? 0 : common_bits(keys[i - 1], keys[i]);
      for (std::size_t j = 0; j < depth && (i == 0 || common < events.layout().prefix(1 + shape.widths[j])); ++j)
        ++size[j];
      events.pass(i, passed);
    }
  });
  return size;
}

std::size_t memory_to_estimate(const SortedEvents& events, const ChainShape& shape, bool keep_tokens) {
  const std::vector<std::size_t> size = level_sizes(events, shape);
  const std::size_t depth = shape.levels();
  const std::size_t key_bytes = events.stride() * sizeof(std::uint64_t);
  std::size_t table = 0, held = events.bytes(), most = 0;
  for (std::size_t j = 0; j < depth; ++j) held += size[j] * (keep_tokens && j > 0 ? 12 : 8);
  // A context of a level is about an entry of the level below.
  const auto contexts = [&](std::size_t j) { return j + 1 < depth ? size[j + 1] : std::size_t{1}; };
  for (std::size_t j = depth; j-- > 0;) {
    table += size[j] * (j == 0 ? 11 : 15);
    const std::size_t prepared = size[j] * 4 + contexts(j) * 64;
    const std::size_t above = j == 0 ? 0 : size[j - 1] * 4 + contexts(j - 1) * 40;
    const std::size_t sorting = j == 0 ? 0 : size[j - 1] * (key_bytes + 8);
    const std::size_t adding = size[j] * (24 + (j > 0 ? 16 : 0));
    const std::size_t below = j + 1 < depth ? size[j + 1] * 12 : 0;
    most = std::max(most, table + prepared + above + below + std::max(sorting, adding));
  }
  return held + most;
}

}  // namespace treelm
