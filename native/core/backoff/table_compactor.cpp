#include "backoff/table_compactor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>
#include <vector>

#include "base/byte_arena.h"
#include "base/interrupt.h"
#include "base/large_vector.h"
#include "base/random.h"

namespace treelm {

namespace {

constexpr std::uint64_t rows_a_report = std::uint64_t{1} << 16;

// The different values of a region, as long as there are few.
class ValueSet {
 public:
  explicit ValueSet(std::uint64_t most) : most_(most), places_(std::bit_ceil(2 * most + 2), none) {}

  // False if there are more values than wanted.
  bool add(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::size_t place = place_of(bits);
    if (places_[place] != none) return true;
    if (values_.size() == most_) return false;
    places_[place] = static_cast<std::uint32_t>(values_.size());
    values_.push_back(bits);
    return true;
  }
  std::uint32_t code(float value) const { return places_[place_of(std::bit_cast<std::uint32_t>(value))]; }
  std::size_t size() const { return values_.size(); }
  float value(std::size_t code) const { return std::bit_cast<float>(values_[code]); }

 private:
  std::size_t place_of(std::uint32_t bits) const {
    const std::size_t mask = places_.size() - 1;
    std::size_t place = mix64(bits) & mask;
    while (places_[place] != none && values_[places_[place]] != bits) place = (place + 1) & mask;
    return place;
  }

  std::uint64_t most_;
  std::vector<std::uint32_t> places_, values_;
};

class Compactor {
 public:
  Compactor(const BackoffTable& table, unsigned code_bits, const std::string& folder, const ProgressCallback& progress)
      : table_(table), progress_(progress), shape_(table.shape()), slots_(folder) {
    shape_.compact = true;
    if (shape_.coded()) shape_.value_bits = code_bits;
    slots_.reserve(table.layout().slot_bytes);  // more than enough, and what is not used is never touched
    for (const auto* sizes : {&shape_.entries, &shape_.contexts})
      for (const RegionSize& size : *sizes) all_rows_ += size.rows;
  }

  std::shared_ptr<const BackoffTable> run() {
    // By the number of columns of a context: the position of each, and what it was.
    const std::uint32_t width = shape_.widths.front();
    std::uint32_t depth = 0;  // of the contexts that have been added
    for (std::size_t j = shape_.levels(); j-- > 0;) {
      for (; !shape_.sequence && depth < shape_.widths[j]; ++depth)
        positions_ = add_region(table_.layout().contexts[depth], shape_.contexts[depth]);
      LargeVector<std::uint32_t> own = add_region(table_.layout().entries[j], shape_.entries[j]);
      if (shape_.sequence && depth < width) {
        positions_ = std::move(own);
        ++depth;
      }
    }
    return finish();
  }

 private:
  // A row on its way to its place.
  struct Row {
    std::uint32_t last, before;  // last column, and position before
  };

  // Writes a region, and returns where each of its rows is now.
  LargeVector<std::uint32_t> add_region(const Region& from, RegionSize& size) {
    LargeVector<Row> rows;
    std::vector<std::uint32_t> begins;
    std::uint32_t columns = 0;
    if (!from.direct()) {
      begins = sort_rows(from, rows);
      for (const Row& row : rows) columns |= row.last;
    }
    const std::uint64_t count = from.direct() ? from.rows : rows.size();
    size = {count, from.direct() ? 0u : 1u, static_cast<std::uint32_t>(std::bit_width(columns)), 0, 0};
    const auto position = [&](std::uint64_t i) { return from.direct() ? i : rows[i].before; };
    const auto probability = [&](std::uint64_t i) { return table_.probability_of(from, i); };
    const auto weight = [&](std::uint64_t i) { return table_.weight_of_row(from, i); };
    const Values probabilities = from.has_probability ? values_of(from, probability) : Values{};
    const Values weights = from.has_weight ? values_of(from, weight) : Values{};
    size.probability_bits = probabilities.bits;
    size.weight_bits = weights.bits;
    LargeVector<std::uint32_t> now(from.has_weight ? from.rows : 0);
    const auto append = [&](std::uint64_t word) { slots_.append(&word, sizeof word); };
    BitWriter writer(append);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i % rows_a_report == 0) report(0);
      constexpr std::uint64_t early = 16;
      if (!from.direct() && i + early < count) prefetch(table_.arrays().slots + from.slot(rows[i + early].before));
      const std::uint64_t before = position(i);
      if (!from.direct()) writer.add(rows[i].last, size.last_bits);
      if (from.has_probability) put(writer, probabilities, probability(before));
      if (!from.has_weight) continue;
      put(writer, weights, weight(before));
      now[before] = static_cast<std::uint32_t>(i);
    }
    writer.finish();
    if (!from.direct()) {
      const std::vector<std::uint32_t> words = ChildRanges(from.contexts, count).encode(begins);
      index_.insert(index_.end(), words.begin(), words.end());
    }
    report(count);
    return now;
  }

  // The rows sorted by context and last column; returns where those of each context begin, and where the last ends.
  std::vector<std::uint32_t> sort_rows(const Region& from, LargeVector<Row>& rows) {
    std::vector<std::uint32_t> begins(from.contexts + 1, 0);
    const auto place = [&](std::uint32_t context) {
      const std::uint64_t before = context - from.first_context;
      return before < positions_.size() ? positions_[before] : static_cast<std::uint32_t>(before);
    };
    std::uint64_t count = 0;
    table_.each_row(from, [&](std::uint64_t, std::uint32_t context, std::uint32_t) {
      ++begins[place(context)];
      ++count;
    });
    if (count != from.rows) throw Error(ErrorCode::table, "the table has rows that no context leads to");
    rows.resize(count);
    // First the end of each; it becomes the beginning while its rows are put down, from the last one on.
    for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    table_.each_row(from, [&](std::uint64_t i, std::uint32_t context, std::uint32_t last) {
      rows[--begins[place(context)]] = {last, static_cast<std::uint32_t>(i)};
    });
    for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
      if (i % rows_a_report == 0) poll_interrupt();
      std::sort(rows.begin() + begins[i], rows.begin() + begins[i + 1],
                [](const Row& a, const Row& b) { return a.last < b.last; });
    }
    return begins;
  }

  // How the values of a region are written.
  struct Values {
    unsigned bits = 0;
    ValueSet codes{0};  // used if there are few
  };

  // Codes if they take less room than the values themselves.
  template <class Value>
  Values values_of(const Region& from, const Value& value) {
    Values values;
    values.bits = shape_.value_bits;
    if (shape_.value_bits == 64) return values;
    const std::uint64_t most = std::min(from.rows / 2 + 1, std::uint64_t{1} << most_code_bits);
    ValueSet found(shape_.coded() ? std::uint64_t{1} << shape_.value_bits : most);
    for (std::uint64_t i = 0; i < from.rows; ++i)
      if (!found.add(static_cast<float>(value(i)))) {
        if (!shape_.coded()) return values;
        throw Error(ErrorCode::argument, "the table has more codes than so many bits can tell apart");
      }
    const unsigned bits = found.size() < 2 ? 0 : static_cast<unsigned>(std::bit_width(found.size() - 1));
    if (!shape_.coded() && bits * from.rows + (std::uint64_t{32} << bits) >= 32 * from.rows) return values;
    values.bits = bits;
    for (std::size_t code = 0; code < std::size_t{1} << bits; ++code)
      codebooks_.push_back(code < found.size() ? found.value(code) : 0.0f);
    values.codes = std::move(found);
    return values;
  }

  template <class Writer>
  static void put(Writer& writer, const Values& values, double value) {
    if (values.bits <= most_code_bits) {
      writer.add(values.codes.code(static_cast<float>(value)), values.bits);
    } else if (values.bits == 32) {
      writer.add(std::bit_cast<std::uint32_t>(static_cast<float>(value)), 32);
    } else {
      const auto whole = std::bit_cast<std::uint64_t>(value);
      writer.add(whole, 32);
      writer.add(whole >> 32, 32);
    }
  }

  void report(std::uint64_t rows) {
    done_ += rows;
    progress_(done_, all_rows_);
  }

  std::shared_ptr<const BackoffTable> finish() {
    struct Owner {
      std::shared_ptr<const StoredBytes> slots;
      LargeVector<std::uint32_t> index;
      std::vector<float> codebooks;
    };
    const TableLayout layout(shape_);
    const std::array<std::uint8_t, 2 * slot_padding> padding{};
    slots_.append(padding.data(), layout.slot_bytes - slots_.size());
    const auto owner = std::make_shared<Owner>(slots_.finish(), std::move(index_), std::move(codebooks_));
    std::function<void()> forget;
    if (owner->slots->mapped()) forget = [owner] { owner->slots->forget(0, owner->slots->size()); };
    return std::make_shared<BackoffTable>(
        shape_, TableArrays{owner->slots->data(), owner->index.data(), owner->codebooks.data(), owner, forget});
  }

  const BackoffTable& table_;
  const ProgressCallback& progress_;
  TableShape shape_;
  ByteArena slots_;
  LargeVector<std::uint32_t> index_;
  std::vector<float> codebooks_;
  LargeVector<std::uint32_t> positions_;  // of the contexts that the next rows go on from, by what they were
  std::uint64_t all_rows_ = 0, done_ = 0;
};

}  // namespace

std::shared_ptr<const BackoffTable> make_compact(const BackoffTable& table, unsigned code_bits,
                                                 const std::string& folder, const ProgressCallback& progress) {
  if (table.shape().compact) throw Error(ErrorCode::argument, "the table is compact already");
  if (table.shape().coded() && (code_bits < 4 || code_bits > table.shape().value_bits))
    throw Error(ErrorCode::argument, "codes of a compact table have 4 bits or more, and none are added");
  return Compactor(table, code_bits, folder, progress).run();
}

}  // namespace treelm
