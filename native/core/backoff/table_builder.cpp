#include "backoff/table_builder.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/radix_sort.h"

namespace treelm {

namespace {

// More make the index smaller and searches longer.
constexpr std::uint64_t rows_a_bucket = 8;

// Writes a slot where `largest_slot` bytes are free.
void encode(const Region& region, std::uint8_t* place, std::uint64_t check, double probability, double weight,
            std::uint32_t link) {
  const std::uint64_t head = check | (region.link_bits == 0 ? 0 : std::uint64_t{link} << region.check_bits);
  std::memcpy(place, &head, sizeof head);  // all of its bytes: a value comes behind those that count
  place += region.head_bytes;
  const auto put = [&](double value) {
    if (region.value_bytes == sizeof(double)) {
      std::memcpy(place, &value, sizeof value);
    } else {
      const auto narrow = static_cast<float>(value);
      std::memcpy(place, &narrow, sizeof narrow);
    }
    place += region.value_bytes;
  };
  if (region.has_probability) put(probability);
  if (region.has_weight) put(weight);
}

constexpr std::size_t largest_slot = 8 + 2 * sizeof(double);

void copy_slot(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  if (bytes < 8 || bytes > 16) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::uint64_t first, last;
  std::memcpy(&first, from, 8);
  std::memcpy(&last, from + bytes - 8, 8);
  std::memcpy(to, &first, 8);
  std::memcpy(to + bytes - 8, &last, 8);
}

// A region to come: of as many buckets as can be, so that it has a layout whatever its rows.
RegionSize size_to_come(bool direct, unsigned last_bits) {
  return {0, direct ? 0 : std::uint64_t{none} - 2, direct ? 0 : last_bits};
}

// A head has 64 bits at most: few rows over many contexts need more buckets.
RegionSize size_of(const Region& to_come, std::uint64_t rows) {
  if (to_come.buckets == 0) return {rows, 0, 0};
  const unsigned bits = to_come.key_bits() + to_come.link_bits;
  const std::uint64_t least = bits <= 64 ? 1 : std::uint64_t{1} << std::min(bits - 64, 31u);
  return {rows, std::max(least, rows / rows_a_bucket), to_come.last_bits};
}

}  // namespace

void RowBatch::reserve(std::size_t rows) {
  if (wide_)
    doubles_.reserve(rows);
  else
    floats_.reserve(rows);
}

RegionWriter::RegionWriter(const Region& region, ByteArena& slots, ByteArena& index)
    : region_(region), slots_(slots), index_(index) {
  const std::uint32_t first = 0;
  index_.append(&first, sizeof first);
}

std::uint64_t RegionWriter::add(std::uint64_t hash, double probability, double weight, std::uint32_t link) {
  const std::uint64_t bucket = region_.bucket(hash);
  const auto here = static_cast<std::uint32_t>(position_);
  for (; bucket_ < bucket; ++bucket_) {
    index_.append(&here, sizeof here);
    bucket_begin_ = position_;
  }
  if (position_ - bucket_begin_ >= longest_bucket)
    throw Error(ErrorCode::too_large, "more than " + std::to_string(longest_bucket) + " rows have the same hash");
  std::array<std::uint8_t, largest_slot> slot{};
  encode(region_, slot.data(), region_.check(hash), probability, weight, link);
  slots_.append(slot.data(), region_.slot_bytes);
  return position_++;
}

void RegionWriter::finish() {
  const auto end = static_cast<std::uint32_t>(position_);
  for (; bucket_ < region_.buckets; ++bucket_) index_.append(&end, sizeof end);
}

RegionFiller::RegionFiller(const Region& region, std::uint8_t* slots, std::uint32_t* index, bool shared)
    : region_(region), slots_(slots), index_(index), shared_(shared) {
  std::fill_n(index_, region_.buckets + 1, 0);
}

void RegionFiller::allot() {
  std::uint64_t begin = 0;
  for (std::uint64_t bucket = 0; bucket <= region_.buckets; ++bucket) {
    const std::uint64_t rows = index_[bucket];
    if (rows > longest_bucket)
      throw Error(ErrorCode::too_large, "more than " + std::to_string(longest_bucket) + " rows have the same hash");
    index_[bucket] = static_cast<std::uint32_t>(begin);
    begin += rows;
  }
}

void RegionFiller::put(std::uint8_t* place, std::uint64_t hash, double probability, double weight,
                       std::uint32_t link) const {
  std::array<std::uint8_t, largest_slot> slot;
  encode(region_, slot.data(), region_.check(hash), probability, weight, link);
  copy_slot(place, slot.data(), region_.slot_bytes);
}

// Every bucket now says where it ends, which is where the next one begins.
void RegionFiller::close() {
  std::copy_backward(index_, index_ + region_.buckets, index_ + region_.buckets + 1);
  index_[0] = 0;
}

void RegionFiller::sort_bucket(std::uint64_t bucket) const {
  const std::uint64_t from = index_[bucket], rows = index_[bucket + 1] - from;
  if (rows < 2) return;
  const std::size_t bytes = region_.slot_bytes;
  const std::uint64_t lowest = region_.lowest(bucket);
  std::uint8_t* const slots = slots_ + from * bytes;
  const auto offset = [&](const std::uint8_t* slot) {
    std::uint64_t head = 0;
    if (bytes >= sizeof head)
      std::memcpy(&head, slot, sizeof head);
    else
      std::memcpy(&head, slot, bytes);
    return region_.check(region_.check_of(head) - lowest);
  };
  std::array<std::uint64_t, longest_bucket> offsets;
  std::array<std::uint8_t, largest_slot> row;
  offsets[0] = offset(slots);
  for (std::uint64_t i = 1; i < rows; ++i) {
    const std::uint64_t own = offset(slots + i * bytes);
    std::uint64_t to = i;
    for (; to > 0 && offsets[to - 1] > own; --to) offsets[to] = offsets[to - 1];
    offsets[to] = own;
    if (to == i) continue;
    copy_slot(row.data(), slots + i * bytes, bytes);
    std::memmove(slots + (to + 1) * bytes, slots + to * bytes, (i - to) * bytes);
    copy_slot(slots + to * bytes, row.data(), bytes);
  }
}

TableBuilder::TableBuilder(TableShape shape, std::uint64_t expected_rows, std::size_t threads,
                           const std::string& folder)
    : shape_(std::move(shape)), pool_(threads), slots_(folder), index_(folder) {
  if (shape_.outcomes >= none - 1 || shape_.first_contexts >= none - 1)
    throw Error(ErrorCode::too_large, "more ids than can be indexed");
  shape_.entries.assign(shape_.levels(), {});
  shape_.contexts.assign(shape_.sequence ? 0 : shape_.widths.front(), {});
  // Room for everything: what is not used in the end is never touched.
  slots_.reserve((expected_rows + shape_.outcomes + shape_.first_contexts) * largest_slot);
  index_.reserve((expected_rows / rows_a_bucket + 2 * max_columns) * sizeof(std::uint32_t));
}

RegionFiller TableBuilder::filler(const Region& region) {
  std::uint8_t* const slots = slots_.extend(region.rows * region.slot_bytes);
  std::uint8_t* const index = index_.extend((region.buckets + 1) * sizeof(std::uint32_t));
  return {region, slots, reinterpret_cast<std::uint32_t*>(index), pool_.size() > 1};
}

Region TableBuilder::entries_to_come(std::size_t level, unsigned last_bits) const {
  return entry_region(shape_, level, size_to_come(shape_.direct(level), last_bits), starts_);
}

Region TableBuilder::contexts_to_come(std::uint32_t depth, unsigned last_bits) const {
  return context_region(shape_, depth, size_to_come(depth == 1, last_bits), starts_);
}

Region TableBuilder::open_entries(std::size_t level, std::uint64_t rows, unsigned last_bits) {
  shape_.entries[level] = size_of(entries_to_come(level, last_bits), shape_.direct(level) ? shape_.outcomes : rows);
  Region region = entry_region(shape_, level, shape_.entries[level], starts_);
  region.begin = slots_.size();
  if (shape_.sequence && level > 0) {
    starts_.push_back(starts_.back() + region.rows);
    if (starts_.back() >= none - 1) throw Error(ErrorCode::too_large, "more than four billion contexts");
  }
  return region;
}

Region TableBuilder::open_contexts(std::uint32_t depth, std::uint64_t rows, unsigned last_bits) {
  shape_.contexts[depth - 1] = size_of(contexts_to_come(depth, last_bits), depth == 1 ? shape_.first_contexts : rows);
  Region region = context_region(shape_, depth, shape_.contexts[depth - 1], starts_);
  region.begin = slots_.size();
  starts_.push_back(starts_.back() + region.rows);
  if (starts_.back() >= none - 1) throw Error(ErrorCode::too_large, "more than four billion contexts");
  return region;
}

template <class Value>
void TableBuilder::write_sorted(const Region& region, LargeVector<TableRow<Value>>& rows,
                                LargeVector<std::uint32_t>* positions) {
  const unsigned unused = 64 - region.key_bits();
  for (TableRow<Value>& row : rows) {
    const std::uint64_t key = row.key.w[0];
    const std::uint64_t hash = region.mixer.mix(region.key(key >> 32, static_cast<std::uint32_t>(key)));
    row.key.w[0] = unused == 64 ? 0 : hash << unused;
  }
  radix_sort(std::span(rows), region.key_bits(), pool_);
  RegionWriter writer(region, slots_, index_);
  constexpr std::size_t early = 24;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TableRow<Value>& row = rows[i];
#if defined(__GNUC__)
    if (positions != nullptr && i + early < rows.size())
      __builtin_prefetch(positions->data() + rows[i + early].rank, 1);
#endif
    const std::uint64_t position =
        writer.add(unused == 64 ? 0 : row.key.w[0] >> unused, static_cast<double>(row.probability),
                   static_cast<double>(row.weight), row.link);
    if (positions != nullptr) (*positions)[row.rank] = static_cast<std::uint32_t>(position);
  }
  writer.finish();
}

template <class Value>
void TableBuilder::write_direct(const Region& region, const LargeVector<TableRow<Value>>& rows,
                                LargeVector<std::uint32_t>* positions) {
  LargeVector<std::uint8_t> bytes(region.rows * region.slot_bytes);
  std::array<std::uint8_t, largest_slot> slot{};
  encode(region, slot.data(), 0, absent, not_a_context, 0);
  for (std::uint64_t i = 0; i < region.rows; ++i)
    copy_slot(bytes.data() + i * region.slot_bytes, slot.data(), region.slot_bytes);
  for (const TableRow<Value>& row : rows) {
    const auto last = static_cast<std::uint32_t>(row.key.w[0]);
    if (last >= region.rows) throw Error(ErrorCode::argument, "an id is outside the table");
    encode(region, slot.data(), 0, static_cast<double>(row.probability), static_cast<double>(row.weight), row.link);
    copy_slot(bytes.data() + last * region.slot_bytes, slot.data(), region.slot_bytes);
    if (positions != nullptr) (*positions)[row.rank] = last;
  }
  slots_.append(bytes.data(), bytes.size());
}

void TableBuilder::add_rows(const Region& region, RowBatch rows, LargeVector<std::uint32_t>* positions) {
  const auto write = [&](auto& batch) {
    if (region.direct())
      write_direct(region, batch, positions);
    else
      write_sorted(region, batch, positions);
  };
  if (wide())
    write(rows.doubles_);
  else
    write(rows.floats_);
}

void TableBuilder::add_entries(std::size_t level, RowBatch rows, LargeVector<std::uint32_t>* positions) {
  const auto bits = static_cast<unsigned>(std::bit_width(rows.largest_last_));
  const Region region = open_entries(level, rows.size(), bits);
  add_rows(region, std::move(rows), positions);
}

void TableBuilder::add_contexts(std::uint32_t depth, RowBatch rows, LargeVector<std::uint32_t>* positions) {
  const auto bits = static_cast<unsigned>(std::bit_width(rows.largest_last_));
  const Region region = open_contexts(depth, rows.size(), bits);
  add_rows(region, std::move(rows), positions);
}

std::shared_ptr<const BackoffTable> TableBuilder::finish() {
  const TableLayout layout(shape_);
  const std::array<std::uint8_t, 2 * slot_padding> padding{};
  slots_.append(padding.data(), layout.slot_bytes - slots_.size());
  using Owner = std::pair<std::shared_ptr<const StoredBytes>, std::shared_ptr<const StoredBytes>>;
  const auto owner = std::make_shared<Owner>(slots_.finish(), index_.finish());
  std::function<void()> forget;
  if (owner->first->mapped())
    forget = [owner] {
      owner->first->forget(0, owner->first->size());
      owner->second->forget(0, owner->second->size());
    };
  const auto* index = reinterpret_cast<const std::uint32_t*>(owner->second->data());
  return std::make_shared<BackoffTable>(shape_,
                                        TableArrays{owner->first->data(), index, nullptr, owner, std::move(forget)});
}

}  // namespace treelm
