#include "backoff/table_quantizer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/large_vector.h"
#include "base/packed_keys.h"
#include "base/radix_sort.h"
#include "base/thread_pool.h"

namespace treelm {

namespace {

constexpr std::uint64_t piece_rows = std::uint64_t{1} << 16;
constexpr std::uint64_t pieces_a_round = 64;  // between rounds an interruption is heard

// A number in the order of the floats, -0 before 0.
std::uint32_t order_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

float value_of(std::uint32_t order) { return std::bit_cast<float>(order >> 31 != 0 ? order & 0x7FFFFFFFu : ~order); }

// What is positive stays positive.
float narrow(double value) {
  const auto narrowed = static_cast<float>(value);
  return narrowed == 0 && value > 0 ? std::numeric_limits<float>::denorm_min() : narrowed;
}

float meant_probability(double stored) {
  if (stored == absent) return static_cast<float>(absent);
  return std::copysign(narrow(usable_probability(stored)), std::signbit(stored) ? -1.0f : 1.0f);
}

float meant_weight(double stored) {
  return std::signbit(stored) ? static_cast<float>(not_a_context) : narrow(usable_weight(stored));
}

bool is_exact(float value) { return value == 0 || std::fabs(value) == 1 || value == static_cast<float>(absent); }

// One value, then one different value with its count, in the halves of its key.
struct Item {
  static constexpr bool has_ties = false;
  Key<1> key;

  std::uint32_t order() const { return static_cast<std::uint32_t>(key.w[0] >> 32); }
  float value() const { return value_of(order()); }
  std::uint64_t count() const { return key.w[0] & 0xFFFFFFFFu; }
  friend bool operator<(const Item& a, const Item& b) { return a.key < b.key; }
};

// Makes one item of equal ones, which lie side by side, and counts them.
void merge_equal(LargeVector<Item>& items) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < items.size();) {
    const std::uint64_t key = items[i].key.w[0];
    std::size_t end = i + 1;
    while (end < items.size() && items[end].key.w[0] == key) ++end;
    items[kept++].key.w[0] = key | (end - i);
    i = end;
  }
  items.resize(kept);
}

// Values that may share a bin: negative ones, those below 1, those above.
//
// What a bin holds is measured by its share of the values and by its share of the range, each for one
// half: the first makes most values nearly exact, the second keeps the few at the ends, such as the
// most frequent words, from being thrown together. The numbers of floats in their order grow like
// logarithms, so they serve as these.
struct Group {
  std::uint64_t values = 0, different = 0, bins = 0;
  std::uint32_t first = 0, last = 0;  // in order
  double left = 1;                    // of the measure

  double share(std::uint64_t count) const { return 0.5 * static_cast<double>(count) / static_cast<double>(values); }
  // Of the step from one value to the next.
  double step(const Item& from, const Item& to) const {
    return 0.5 * static_cast<double>(to.order() - from.order()) / static_cast<double>(last - first);
  }
  static std::size_t of(float value) { return std::signbit(value) ? 0 : (value < 1 ? 1 : 2); }
};
using Groups = std::array<Group, 3>;

// Gives every group bins for its share of the values, at least one and no more than it can use.
void share_bins(Groups& groups, std::uint64_t bins) {
  std::uint64_t all = 0, given = 0;
  for (const Group& group : groups) all += group.values;
  for (Group& group : groups) {
    if (group.values == 0) continue;
    group.bins = std::min(group.different, std::max<std::uint64_t>(1, bins * group.values / all));
    given += group.bins;
  }
  for (; given > bins; --given)
    --std::max_element(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
        return a.bins < b.bins;
      })->bins;
  for (Group& group : groups) {
    const std::uint64_t more = std::min(bins - given, group.different - group.bins);
    group.bins += more;
    given += more;
  }
}

// The bins of the values of one region and kind.
class Codebook {
 public:
  // `items`: the different values, in their order.
  Codebook(std::span<const Item> items, std::uint64_t codes, ValueChange& change) : change_(change) {
    Groups groups;
    std::uint64_t exact = 0;
    for (const Item& item : items) {
      if (is_exact(item.value())) {
        ++exact;
        continue;
      }
      Group& group = groups[Group::of(item.value())];
      if (group.different++ == 0) group.first = item.order();
      group.last = item.order();
      group.values += item.count();
    }
    share_bins(groups, codes - std::min(codes, exact));
    std::size_t begin = 0;
    while (begin < items.size()) {
      const std::size_t end = bin_end(items, begin, groups);
      add_bin(items.subspan(begin, end - begin));
      begin = end;
    }
    first_.resize((std::size_t{1} << 16) + 1);
    for (std::size_t i = 0, code = 0; i < first_.size(); ++i) {
      while (code < upto_.size() && upto_[code] >> 16 < i) ++code;
      first_[i] = static_cast<std::uint32_t>(code);
    }
  }

  const std::vector<float>& values() const { return values_; }
  std::uint32_t code(float value) const {
    const std::uint32_t order = order_of(value);
    const auto from = upto_.begin() + first_[order >> 16], to = upto_.begin() + first_[(order >> 16) + 1];
    return static_cast<std::uint32_t>(std::lower_bound(from, to, order) - upto_.begin());
  }

 private:
  // Where the bin that begins at an item ends.
  static std::size_t bin_end(std::span<const Item> items, std::size_t begin, Groups& groups) {
    const float first = items[begin].value();
    if (is_exact(first)) return begin + 1;
    Group& group = groups[Group::of(first)];
    if (items[begin].order() != group.first) group.left -= group.step(items[begin - 1], items[begin]);
    const double target = group.left / static_cast<double>(group.bins);
    double held = group.share(items[begin].count());
    --group.bins;
    --group.different;
    std::size_t end = begin + 1;
    for (; group.different > 0; ++end) {
      // Another value comes in as long as that brings the bin nearer to its size, and no bin is
      // left without a value.
      const double more = group.share(items[end].count()) + group.step(items[end - 1], items[end]);
      if (group.bins > 0 && (group.different <= group.bins || held + 0.5 * more > target)) break;
      held += more;
      --group.different;
    }
    group.left -= held;
    return end;
  }

  void add_bin(std::span<const Item> bin) {
    const float lowest = bin.front().value(), highest = bin.back().value();
    float value = lowest;
    if (bin.size() > 1) {
      double sum = 0, count = 0;
      for (const Item& item : bin) {
        sum += static_cast<double>(item.count()) * std::log(std::fabs(static_cast<double>(item.value())));
        count += static_cast<double>(item.count());
      }
      value = std::clamp(static_cast<float>(std::copysign(std::exp(sum / count), lowest)), lowest, highest);
    }
    upto_.push_back(order_of(highest));
    values_.push_back(value);
    if (value == 0 || value == static_cast<float>(absent) || value == static_cast<float>(not_a_context)) return;
    const double middle = std::log2(std::fabs(static_cast<double>(value)));
    for (const Item& item : bin) {
      change_.values += item.count();
      if (bin.size() == 1) continue;
      const double moved = std::fabs(std::log2(std::fabs(static_cast<double>(item.value()))) - middle);
      change_.sum += static_cast<double>(item.count()) * moved;
      change_.largest = std::max(change_.largest, moved);
    }
  }

  ValueChange& change_;
  std::vector<std::uint32_t> upto_;  // the last value of each bin, as a number in order
  std::vector<float> values_;
  std::vector<std::uint32_t> first_;  // by the first half of a number: the first bin that may hold it
};

class Quantizer {
 public:
  Quantizer(const BackoffTable& table, unsigned bits, std::size_t threads, const ProgressCallback& progress)
      : table_(table), bits_(bits), pool_(threads), progress_(progress), shape_(table.shape()) {
    shape_.value_bits = bits <= 8 ? 8 : 16;
    layout_ = TableLayout(shape_);
    for (const auto* regions : {&layout_.entries, &layout_.contexts})
      for (const Region& region : *regions) rows_ += region.rows;
  }

  QuantizedTable run() {
    const std::uint32_t* index = table_.arrays().index;
    out_->index.assign(index, index + layout_.index_length);
    out_->slots.resize(layout_.slot_bytes);
    out_->codebooks.assign(layout_.codebook_length, 0.0f);
    std::uint64_t end = 0;
    const auto convert_all = [&](const std::vector<Region>& from, const std::vector<Region>& to) {
      for (std::size_t i = 0; i < from.size(); ++i) {
        convert(from[i], to[i]);
        end = std::max(end, to[i].slot(to[i].rows));
      }
    };
    convert_all(table_.layout().entries, layout_.entries);
    convert_all(table_.layout().contexts, layout_.contexts);
    std::fill(out_->slots.begin() + static_cast<std::ptrdiff_t>(end), out_->slots.end(), std::uint8_t{0});
    result_.table = std::make_shared<BackoffTable>(
        shape_, TableArrays{out_->slots.data(), out_->index.data(), out_->codebooks.data(), out_});
    return std::move(result_);
  }

 private:
  struct Arrays {
    LargeVector<std::uint8_t> slots;
    std::vector<std::uint32_t> index;
    std::vector<float> codebooks;
  };

  // Runs body(from, to) for pieces of the rows of a region.
  template <class Body>
  void each_piece(std::uint64_t rows, std::uint64_t counted, const Body& body) {
    for (std::uint64_t round = 0; round < rows; round += piece_rows * pieces_a_round) {
      const std::uint64_t end = std::min(rows, round + piece_rows * pieces_a_round);
      pool_.map((end - round + piece_rows - 1) / piece_rows, [&](std::size_t i, std::size_t) {
        const std::uint64_t from = round + i * piece_rows;
        body(from, std::min(end, from + piece_rows));
      });
      done_ += counted * (end - round);
      progress_(done_, 2 * rows_);
    }
  }

  void convert(const Region& from, const Region& to) {
    const std::uint8_t* const slots = table_.arrays().slots;
    std::uint64_t book = to.codebook;
    each_piece(from.rows, 0, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i)
        std::memcpy(out_->slots.data() + to.slot(i), slots + from.slot(i), from.head_bytes);
    });
    const std::uint64_t counted = from.has_probability && from.has_weight ? 1 : 2;
    if (from.has_probability) {
      convert_values(from, to, {from.head_bytes, to.head_bytes, counted}, book, meant_probability,
                     result_.probabilities);
      book += std::uint64_t{1} << shape_.value_bits;
    }
    if (from.has_weight)
      convert_values(from, to, {from.weight_at(), to.weight_at(), counted}, book, meant_weight, result_.weights);
  }

  // Where a value stands in a slot, before and after.
  struct Place {
    std::size_t from, to;
    std::uint64_t counted;  // what its rows count for progress
  };

  template <class Meant>
  void convert_values(const Region& from, const Region& to, Place place, std::uint64_t book, const Meant& meant,
                      ValueChange& change) {
    const std::uint8_t* const values = table_.arrays().slots + place.from;
    const auto load = [&](std::uint64_t i) {
      return meant(from.value_bytes == sizeof(double) ? load_value<64>(values + from.slot(i), nullptr)
                                                      : load_value<32>(values + from.slot(i), nullptr));
    };
    LargeVector<Item> items(from.rows);
    each_piece(from.rows, 0, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i) items[i].key.w[0] = std::uint64_t{order_of(load(i))} << 32;
    });
    radix_sort(std::span(items), 32, pool_);
    merge_equal(items);
    const Codebook codes(items, std::uint64_t{1} << bits_, change);
    LargeVector<Item>().swap(items);
    std::copy(codes.values().begin(), codes.values().end(),
              out_->codebooks.begin() + static_cast<std::ptrdiff_t>(book));
    each_piece(from.rows, place.counted, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i) {
        std::uint8_t* const target = out_->slots.data() + to.slot(i) + place.to;
        const auto code = static_cast<std::uint16_t>(codes.code(load(i)));
        if (bits_ <= 8)
          *target = static_cast<std::uint8_t>(code);
        else
          std::memcpy(target, &code, sizeof code);
      }
    });
  }

  const BackoffTable& table_;
  unsigned bits_;
  ThreadPool pool_;
  const ProgressCallback& progress_;
  TableShape shape_;
  TableLayout layout_;
  std::uint64_t rows_ = 0, done_ = 0;
  std::shared_ptr<Arrays> out_ = std::make_shared<Arrays>();
  QuantizedTable result_;
};

}  // namespace

QuantizedTable quantize(const BackoffTable& table, unsigned bits, std::size_t threads,
                        const ProgressCallback& progress) {
  if ((bits < 4 || bits > 8) && bits != 16) throw Error(ErrorCode::argument, "codes must have 4 to 8 or 16 bits");
  if (table.shape().compact)
    throw Error(ErrorCode::argument, "a compact table cannot be quantised: quantise the table that it was made from");
  if (table.shape().coded()) throw Error(ErrorCode::argument, "the values of the table are codes already");
  return Quantizer(table, bits, threads, progress).run();
}

}  // namespace treelm
