#include "backoff/table_layout.h"

#include <algorithm>
#include <string>

namespace treelm {

namespace {

[[noreturn]] void bad_table(const std::string& what) { throw Error(ErrorCode::table, what); }

constexpr std::uint64_t limit = none - 1;

void check_numbers(const TableShape& shape) {
  if (shape.widths.empty() || shape.widths.size() > max_columns) bad_table("the table has no levels, or too many");
  if (shape.widths.front() >= max_columns) bad_table("the table has too many columns");
  for (std::size_t j = 1; j < shape.widths.size(); ++j)
    if (shape.widths[j] >= shape.widths[j - 1]) bad_table("the levels of the table do not shrink");
  const std::uint32_t width = shape.widths.front();
  if (shape.outcomes == 0 || shape.outcomes >= limit || shape.first_contexts >= limit)
    bad_table("the table has no outcomes, or more than can be indexed");
  if (shape.entries.size() != shape.levels()) bad_table("the table needs a region for every level");
  if (shape.contexts.size() != (shape.sequence ? 0 : width))
    bad_table("the table has the wrong number of context regions");
  const bool few_bits = shape.compact && shape.value_bits >= 4 && shape.value_bits < 8;
  if (shape.value_bits != 8 && shape.value_bits != 16 && shape.value_bits != 32 && shape.value_bits != 64 && !few_bits)
    bad_table("the table has values of " + std::to_string(shape.value_bits) + " bits");
  for (std::size_t j = 0; j < shape.levels(); ++j)
    if (shape.direct(j) && shape.entries[j].rows != shape.outcomes)
      bad_table("the last level of the table needs a slot for every outcome");
  if (!shape.sequence && width > 0 && shape.contexts[0].rows != shape.first_contexts)
    bad_table("the table needs a slot for every first context");
  if (shape.base_size > shape.outcomes) bad_table("the base of the table is larger than its outcomes");
  if (shape.sequence) {
    if (shape.pad >= shape.outcomes) bad_table("the pad of the table is not an outcome");
    if (shape.levels() != std::size_t{width} + 1) bad_table("a table of sequences drops one word per level");
  }
}

// What follows from the number of contexts that the rows go on from.
Region region_of(const TableShape& shape, const RegionSize& size, bool direct, std::uint64_t first_context,
                 std::uint64_t contexts) {
  Region region;
  region.rows = size.rows;
  region.first_context = first_context;
  region.contexts = contexts;
  region.last_bits = size.last_bits;
  region.value_bytes = shape.value_bits / 8;
  if (size.rows >= limit || size.buckets >= limit || size.last_bits > 32 || direct != (size.buckets == 0))
    bad_table("a region of the table has an impossible size");
  if (shape.compact) {
    const auto possible = [&](unsigned bits) {
      return bits <= most_code_bits || (!shape.coded() && bits == shape.value_bits);
    };
    region.probability_bits = size.probability_bits;
    region.weight_bits = size.weight_bits;
    if (!possible(region.probability_bits) || !possible(region.weight_bits) || size.buckets > 1)
      bad_table("a region of the table has an impossible size");
    if (direct) return region;
    region.buckets = size.buckets;
    if (contexts + size.rows >= limit) bad_table("a region of the table has more rows than can be indexed");
    region.ranges = ChildRanges(contexts, size.rows);
    return region;
  }
  if (size.probability_bits != 0 || size.weight_bits != 0) bad_table("a region of the table has an impossible size");
  if (direct) return region;
  region.context_bits = contexts <= 1 ? 0 : static_cast<unsigned>(std::bit_width(contexts - 1));
  region.divide(size.buckets);
  return region;
}

void settle(const TableShape& shape, Region& region) {
  if (shape.compact) {
    if ((!region.has_probability && region.probability_bits != 0) || (!region.has_weight && region.weight_bits != 0) ||
        (region.direct() && region.last_bits != 0))
      bad_table("a region of the table has an impossible size");
    region.row_bits = region.last_bits + region.probability_bits + region.weight_bits;
    return;
  }
  if (region.check_bits + region.link_bits > 64) bad_table("a region of the table has an impossible size");
  region.head_bytes = (region.check_bits + region.link_bits + 7) / 8;
  region.slot_bytes =
      region.head_bytes + region.value_bytes * (std::size_t{region.has_probability} + std::size_t{region.has_weight});
}

}  // namespace

void Region::divide(std::uint64_t into) {
  buckets = into;
  mixer = BitMixer(key_bits());
  const auto told = static_cast<unsigned>(std::bit_width(buckets) - 1);
  check_bits = key_bits() > told ? key_bits() - told : 0;
  hashes_a_bucket = hashes_left = 0;
  if (key_bits() == 0) return;  // the only hash is 0
  hashes_a_bucket = low_bits(key_bits()) / buckets;
  hashes_left = low_bits(key_bits()) % buckets + 1;
  if (hashes_left < buckets) return;
  ++hashes_a_bucket;
  hashes_left = 0;
}

Region entry_region(const TableShape& shape, std::size_t level, const RegionSize& size,
                    const std::vector<std::uint64_t>& starts) {
  const std::uint32_t width = shape.widths[level];
  Region region = region_of(shape, size, width == 0, starts[width], starts[width + 1] - starts[width]);
  region.has_probability = true;
  if (shape.sequence) {
    region.has_weight = level > 0;
    region.first_own = starts[width + 1];
    if (width > 0 && !shape.compact) region.link_bits = static_cast<unsigned>(std::bit_width(starts[width + 1] - 1));
  }
  settle(shape, region);
  return region;
}

Region context_region(const TableShape& shape, std::uint32_t depth, const RegionSize& size,
                      const std::vector<std::uint64_t>& starts) {
  Region region = region_of(shape, size, depth == 1, starts[depth - 1], starts[depth] - starts[depth - 1]);
  region.has_weight = true;
  region.first_own = starts[depth];
  settle(shape, region);
  return region;
}

TableLayout::TableLayout(const TableShape& shape) {
  check_numbers(shape);
  const std::uint32_t width = shape.widths.front();
  entries.resize(shape.levels());
  contexts.resize(shape.contexts.size());
  starts = {0, 1};
  const auto add = [&](Region& region, const Region& made) {
    region = made;
    region.begin = slot_bytes;
    region.index = index_length;
    if (shape.compact) {
      slot_bytes += (region.rows * region.row_bits + 63) / 64 * 8;
      if (!region.direct()) index_length += region.ranges.words();
      const auto codes = [&](bool present, unsigned bits) {
        const std::uint64_t first = codebook_length;
        if (present && bits <= most_code_bits) codebook_length += std::uint64_t{1} << bits;
        return first;
      };
      region.codebook = codes(region.has_probability, region.probability_bits);
      region.weight_codebook = codes(region.has_weight, region.weight_bits);
      return;
    }
    slot_bytes += region.rows * region.slot_bytes;
    if (!region.direct()) index_length += region.buckets + 1;
    if (shape.coded()) {
      region.codebook = codebook_length;
      codebook_length += (std::uint64_t{region.has_probability} + std::uint64_t{region.has_weight}) << shape.value_bits;
    }
  };
  const auto grow = [&](std::uint64_t rows) {
    starts.push_back(starts.back() + rows);
    if (starts.back() >= limit) bad_table("the table has more contexts than can be indexed");
  };
  for (std::size_t j = shape.levels(); j-- > 0;) {
    if (!shape.sequence)
      for (auto depth = static_cast<std::uint32_t>(starts.size() - 1); depth <= shape.widths[j]; ++depth) {
        add(contexts[depth - 1], context_region(shape, depth, shape.contexts[depth - 1], starts));
        grow(shape.contexts[depth - 1].rows);
      }
    add(entries[j], entry_region(shape, j, shape.entries[j], starts));
    if (shape.sequence && j > 0) grow(shape.entries[j].rows);
  }
  if (starts.size() != std::size_t{width} + 2) bad_table("the table has the wrong number of contexts");
  slot_bytes = (slot_bytes + slot_padding + 7) / 8 * 8;
}

}  // namespace treelm
