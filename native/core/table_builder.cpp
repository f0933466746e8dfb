#include "table_builder.h"

#include <algorithm>
#include <limits>

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

// Eight of ten slots are used.
constexpr std::uint64_t capacity_for(std::uint64_t rows) { return rows + rows / 4 + 4; }

}  // namespace

TableBuilder::TableBuilder(TableShape shape, std::uint64_t expected_rows, std::size_t threads)
    : shape_(std::move(shape)), pool_(threads), memory_(std::make_shared<LargeVector<std::uint64_t>>()) {
  shape_.entry_regions.clear();
  shape_.context_regions.clear();
  constexpr std::uint64_t limit = context_root;
  if (shape_.outcomes >= limit || shape_.first_contexts >= limit || expected_rows >= limit)
    throw Error(ErrorCode::too_large, "the table would have more than four billion rows");
  const std::uint64_t stride = shape_.slot_bytes() / 8;
  memory_->reserve((shape_.roots() + capacity_for(expected_rows) + 64 * shape_.columns()) * stride);
  memory_->assign(shape_.roots() * stride, 0);
  for (std::uint64_t i = 0; i < shape_.roots(); ++i) (*memory_)[i * stride] = empty_key;
}

void TableBuilder::fill_direct(std::uint64_t slot, std::uint64_t key) {
  const auto fill = [&]<class Value>(Slot<Value>& at) {
    if (at.key == empty_key) at = {key, static_cast<Value>(-0.0), static_cast<Value>(-1.0)};
  };
  if (shape_.double_precision)
    fill(as<double>()[slot]);
  else
    fill(as<float>()[slot]);
}

std::uint32_t TableBuilder::first_entry(std::uint32_t element) {
  if (element >= shape_.outcomes) throw Error(ErrorCode::argument, "an outcome is outside the table");
  fill_direct(element, slot_key(entry_root, element));
  return element;
}

std::uint32_t TableBuilder::first_context(std::uint32_t element) {
  if (element >= shape_.first_contexts) throw Error(ErrorCode::argument, "a context is outside the table");
  const std::uint64_t slot = shape_.outcomes + element;
  fill_direct(slot, slot_key(context_root, element));
  return static_cast<std::uint32_t>(slot);
}

void TableBuilder::add(LargeVector<Row> rows, std::span<std::uint32_t> slots, bool entries) {
  radix_sort(std::span(rows), 64, pool_);
  Region region;
  region.begin = memory_->size() / (shape_.slot_bytes() / 8);
  region.capacity = capacity_for(rows.size());
  if (shape_.double_precision)
    place<double>(rows, slots, region, entries);
  else
    place<float>(rows, slots, region, entries);
  (entries ? shape_.entry_regions : shape_.context_regions).push_back(region);
}

template <class Value>
void TableBuilder::place(const LargeVector<Row>& rows, std::span<std::uint32_t> places, Region& region, bool entries) {
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
  while ((end = lay([](const Row&, std::uint64_t) {})) == 0) region.capacity += region.capacity / 8;
  if (end >= context_root) throw Error(ErrorCode::too_large, "the table would have more than four billion slots");
  region.length = end - region.begin;

  const std::uint64_t stride = sizeof(Slot<Value>) / 8;
  memory_->resize(end * stride, 0);
  Slot<Value>* slots = as<Value>();
  for (std::uint64_t i = region.begin; i < end; ++i) slots[i].key = empty_key;
  lay([&](const Row& row, std::uint64_t at) {
    const auto value = static_cast<Value>(row.value);
    slots[at] = {unmix64(row.key.w[0]), entries ? value : static_cast<Value>(-0.0),
                 entries ? static_cast<Value>(-1.0) : value};
    if (!places.empty()) places[row.index] = static_cast<std::uint32_t>(at);
  });
}

void TableBuilder::prefetch(std::uint32_t columns, std::uint32_t parent, std::uint32_t element) const {
#if defined(__GNUC__)
  if (columns < 2) return;
  const std::uint64_t at = shape_.entry_regions[columns - 2].home(mix64(slot_key(parent, element)));
  __builtin_prefetch(reinterpret_cast<const char*>(memory_->data()) + at * shape_.slot_bytes());
#else
  (void)columns, (void)parent, (void)element;
#endif
}

double TableBuilder::probability(std::uint32_t slot) const {
  return shape_.double_precision ? as<double>()[slot].probability : static_cast<double>(as<float>()[slot].probability);
}

double TableBuilder::backoff(std::uint32_t slot) const {
  return shape_.double_precision ? as<double>()[slot].backoff : static_cast<double>(as<float>()[slot].backoff);
}

void TableBuilder::set_probability(std::uint32_t slot, double value) {
  if (shape_.double_precision)
    as<double>()[slot].probability = value;
  else
    as<float>()[slot].probability = static_cast<float>(value);
}

void TableBuilder::set_backoff(std::uint32_t slot, double value) {
  if (shape_.double_precision)
    as<double>()[slot].backoff = value;
  else
    as<float>()[slot].backoff = static_cast<float>(value);
}

std::shared_ptr<const BackoffTable> TableBuilder::finish() {
  return std::make_shared<BackoffTable>(shape_, memory_->data(), memory_);
}

}  // namespace treelm
