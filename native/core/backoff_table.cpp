#include "backoff_table.h"

#include <cmath>
#include <string>

namespace treelm {

namespace {

[[noreturn]] void bad_table(const std::string& what) { throw Error(ErrorCode::table, what); }

}  // namespace

std::uint64_t TableShape::slots() const {
  std::uint64_t all = roots();
  for (const auto& regions : {&entry_regions, &context_regions})
    for (const Region& region : *regions) all += region.length;
  return all;
}

void check_table_shape(const TableShape& shape) {
  if (shape.widths.empty() || shape.widths.size() > max_columns) bad_table("the table has no levels, or too many");
  if (shape.widths.front() >= max_columns) bad_table("the table has too many columns");
  for (std::size_t j = 1; j < shape.widths.size(); ++j)
    if (shape.widths[j] >= shape.widths[j - 1]) bad_table("the levels of the table do not shrink");
  constexpr std::uint64_t limit = context_root;
  if (shape.outcomes == 0 || shape.outcomes >= limit || shape.first_contexts >= limit || shape.roots() >= limit)
    bad_table("the table has no outcomes, or more than can be indexed");
  const std::uint32_t width = shape.widths.front();
  if (shape.entry_regions.size() != width) bad_table("the table needs a region for every number of columns");
  const std::size_t context_regions = shape.sequence || width == 0 ? 0 : width - 1;
  if (shape.context_regions.size() != context_regions) bad_table("the table has the wrong number of context regions");
  if (shape.sequence && shape.first_contexts != 0) bad_table("a table of sequences has no contexts of their own");
  std::uint64_t at = shape.roots();
  for (const auto& regions : {&shape.entry_regions, &shape.context_regions})
    for (const Region& region : *regions) {
      if (region.begin != at || region.capacity == 0 || region.length < region.capacity || region.length >= limit - at)
        bad_table("the regions of the table do not follow each other");
      at += region.length;
    }
  if (shape.base_size > shape.outcomes) bad_table("the base of the table is larger than its outcomes");
  if (!(shape.empty_backoff >= 0 && shape.empty_backoff <= 1e30))
    bad_table("the weight of the empty context is no weight");
  if (shape.sequence && shape.pad >= shape.outcomes) bad_table("the pad of the table is no outcome");
}

BackoffTable::BackoffTable(TableShape shape, const void* slots, std::shared_ptr<const void> owner)
    : shape_(std::move(shape)), slots_(slots), owner_(std::move(owner)) {
  check_table_shape(shape_);
}

std::uint32_t BackoffTable::context_slot(const std::uint32_t* columns, std::uint32_t width) const {
  std::uint32_t slot = shape_.sequence ? entry_root : context_root;
  for (std::uint32_t c = 0; c < width && slot != none; ++c) slot = context(c + 1, slot, columns[c]);
  return slot;
}

double BackoffTable::backoff_of(std::size_t j, const std::uint32_t* columns) const {
  if (shape_.widths[j] == 0) return shape_.empty_backoff;
  const std::uint32_t slot = context_slot(columns, shape_.widths[j]);
  return slot == none ? 1.0 : usable_weight(backoff(slot));
}

double BackoffTable::probability_from(std::size_t from, const std::uint32_t* row, double base) const {
  // From the shortest row up: a longer one is stored only where the shorter one is.
  double p = base;
  std::size_t found = shape_.levels();  // the level p belongs to
  std::size_t level = shape_.levels();  // levels below this one have been passed
  std::uint32_t slot = entry_root;
  for (std::uint32_t columns = 1; columns <= shape_.widths[from] + 1; ++columns) {
    slot = entry(columns, slot, row[columns - 1]);
    if (slot == none) break;
    if (level > from && shape_.widths[level - 1] + 1 == columns) {
      p = usable_probability(probability(slot));
      found = --level;
    }
  }
  // The weights of the contexts in between; their slots share prefixes.
  std::uint32_t at = shape_.sequence ? entry_root : context_root, width = 0;
  for (std::size_t j = found; j-- > from;) {
    for (; width < shape_.widths[j] && at != none; ++width) at = context(width + 1, at, row[1 + width]);
    if (at == none) break;
    p *= shape_.widths[j] == 0 ? shape_.empty_backoff : usable_weight(backoff(at));
  }
  return p;
}

bool BackoffTable::path(std::uint32_t slot, std::uint32_t columns, std::uint32_t* row) const {
  for (std::uint32_t c = columns; c-- > 0;) {
    const std::uint64_t begin = c == 0 ? 0 : shape_.entry_regions[c - 1].begin;
    const std::uint64_t end = c == 0 ? shape_.outcomes : begin + shape_.entry_regions[c - 1].length;
    if (slot < begin || slot >= end) return false;
    const std::uint64_t found = key(slot);
    row[c] = static_cast<std::uint32_t>(found);
    if (c == 0 && row[0] != slot) return false;  // an outcome lies in the slot of its number
    slot = static_cast<std::uint32_t>(found >> 32);
  }
  return slot == entry_root;
}

}  // namespace treelm
