#include "table_builder.h"

#include <algorithm>
#include <bit>

#include "radix_sort.h"

namespace treelm {

namespace {

// mix64 backwards: rows are sorted by hash, and the key comes back from it.
constexpr std::uint64_t unmix64(std::uint64_t x) {
  x ^= x >> 31 ^ x >> 62;
  x *= 0x319642B2D24D8EC3ull;
  x ^= x >> 27 ^ x >> 54;
  x *= 0x96DE1B173F119089ull;
  x ^= x >> 30 ^ x >> 60;
  return x - 0x9E3779B97F4A7C15ull;
}
static_assert(unmix64(mix64(0)) == 0 && unmix64(mix64(0x123456789ABCDEF0ull)) == 0x123456789ABCDEF0ull);

// Nine of ten slots are used.
constexpr std::uint64_t capacity_for(std::uint64_t rows) { return rows + rows / 9 + 4; }

}  // namespace

TableBuilder::TableBuilder(TableShape shape, std::uint64_t expected_rows, std::size_t threads)
    : shape_(std::move(shape)), pool_(threads), memory_(std::make_shared<Memory>()) {
  if (shape_.outcomes >= none - 1 || shape_.first_contexts >= none - 1)
    throw Error(ErrorCode::too_large, "more ids than can be indexed");
  const std::uint32_t width = shape_.widths.front();
  shape_.entry_regions.assign(shape_.levels(), {});
  shape_.context_regions.assign(shape_.sequence ? 0 : width, {});
  shape_.context_starts.assign(std::size_t{width} + 2, 0);
  // Room for everything: what is not used in the end is never touched.
  const std::uint64_t slots = capacity_for(expected_rows) + shape_.outcomes + shape_.first_contexts + 64 * max_columns;
  memory_->slots.reserve(slots * (shape_.slot_bytes() / 8));
}

void TableBuilder::add_context(std::uint32_t depth, double backoff, std::uint32_t shorter) {
  if (++context_count_ >= none - 1) throw Error(ErrorCode::too_large, "more than four billion contexts");
  for (std::size_t d = std::size_t{depth} + 1; d < shape_.context_starts.size(); ++d)
    shape_.context_starts[d] = context_count_;
  if (shape_.double_precision) {
    memory_->contexts.push_back(std::bit_cast<std::uint64_t>(backoff));
    memory_->contexts.push_back(shorter);
  } else {
    const ContextInfo<float> info{static_cast<float>(backoff), shorter};
    memory_->contexts.push_back(std::bit_cast<std::uint64_t>(info));
  }
}

double TableBuilder::backoff(std::uint32_t context) const {
  if (shape_.double_precision) return std::bit_cast<double>(memory_->contexts[2 * std::size_t{context}]);
  return static_cast<double>(std::bit_cast<ContextInfo<float>>(memory_->contexts[context]).backoff);
}

void TableBuilder::write(std::uint64_t at, std::uint64_t key, const Row& row) {
  // Word by word, padding included: equal tables have equal bytes.
  std::uint64_t* place = memory_->slots.data() + at * (shape_.slot_bytes() / 8);
  place[0] = key;
  if (shape_.double_precision) {
    place[1] = std::bit_cast<std::uint64_t>(row.probability);
    place[2] = row.next;
  } else {
    const ContextInfo<float> pair{static_cast<float>(row.probability), row.next};
    place[1] = std::bit_cast<std::uint64_t>(pair);
  }
}

void TableBuilder::clear(std::uint64_t from, std::uint64_t to) {
  const std::uint64_t stride = shape_.slot_bytes() / 8;
  for (std::uint64_t at = from; at < to; ++at) {
    std::uint64_t* place = memory_->slots.data() + at * stride;
    place[0] = empty_key;
    for (std::uint64_t w = 1; w < stride; ++w) place[w] = 0;
  }
}

Region TableBuilder::direct_region(std::uint64_t size, const LargeVector<Row>& rows) {
  const std::uint64_t stride = shape_.slot_bytes() / 8;
  const Region region{memory_->slots.size() / stride, size, size};
  memory_->slots.resize((region.begin + size) * stride);
  clear(region.begin, region.begin + size);
  for (const Row& row : rows) {
    const std::uint64_t key = unmix64(row.key.w[0]);
    if (key >= size) throw Error(ErrorCode::argument, "an id is outside the table");  // the context is the empty one
    write(region.begin + key, key, row);
  }
  return region;
}

Region TableBuilder::hashed_region(LargeVector<Row> rows) {
  radix_sort(std::span(rows), 64, pool_);
  const std::uint64_t stride = shape_.slot_bytes() / 8;
  Region region{memory_->slots.size() / stride, capacity_for(rows.size()), 0};
  const auto lay = [&](const auto& put) {  // the slot after the last row, or 0 if a row is pushed too far
    std::uint64_t next = region.begin;
    for (const Row& row : rows) {
      const std::uint64_t home = region.home(row.key.w[0]);
      next = std::max(next, home);
      if (next - home >= longest_probe) return std::uint64_t{0};
      put(row, next++);
    }
    return std::max(next, region.begin + region.capacity);
  };
  std::uint64_t end = 0;
  while ((end = lay([](const Row&, std::uint64_t) {})) == 0) region.capacity += region.capacity / 16 + 1;
  region.length = end - region.begin;
  memory_->slots.resize(end * stride);
  std::uint64_t cleared = region.begin;
  lay([&](const Row& row, std::uint64_t at) {
    clear(cleared, at);
    cleared = at + 1;
    write(at, unmix64(row.key.w[0]), row);
  });
  clear(cleared, end);
  return region;
}

void TableBuilder::add_entries(std::size_t level, LargeVector<Row> rows) {
  shape_.entry_regions[level] =
      shape_.direct(level) ? direct_region(shape_.outcomes, rows) : hashed_region(std::move(rows));
}

void TableBuilder::add_context_rows(std::uint32_t depth, LargeVector<Row> rows) {
  shape_.context_regions[depth - 1] =
      depth == 1 ? direct_region(shape_.first_contexts, rows) : hashed_region(std::move(rows));
}

std::shared_ptr<const BackoffTable> TableBuilder::finish() {
  return std::make_shared<BackoffTable>(shape_, memory_->slots.data(), memory_->contexts.data(), memory_);
}

}  // namespace treelm
