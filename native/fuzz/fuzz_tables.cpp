// Fuzz target: back-off tables over arrays that anybody may have written. Input: the numbers of a
// shape, then slots, index, codebooks and questions, each with its length; arrays that are longer than
// what is given repeat it.
//
// A shape or an index is refused, or nothing outside the arrays is read, every search ends, and whatever comes out
// is in range. Arrays are as long as the shape says, so the address sanitizer sees a read beyond them.
#include <cmath>
#include <cstring>

#include "backoff/arpa.h"
#include "backoff/chain_sampler.h"
#include "backoff/table_builder.h"
#include "backoff/table_compactor.h"
#include "backoff/table_quantizer.h"
#include "target.h"

using namespace treelm;

namespace treelm::fuzz {

const char* const target_name = "tables";

namespace {

// Larger arrays would have to be there: a file is compared with its shape before it is used.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 20;
constexpr std::uint32_t value_bits[] = {32, 64, 8, 16};
// Small numbers are one byte; from here on the byte says how many bytes follow.
constexpr std::uint8_t first_long = 252;

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  std::uint8_t byte() { return at_ == end_ ? 0 : *at_++; }
  std::uint64_t number() {
    const std::uint8_t first = byte();
    if (first < first_long) return first;
    std::uint64_t value = 0;
    for (unsigned i = 0; i < 1u << (first - first_long); ++i) value |= std::uint64_t{byte()} << (8 * i);
    return value;
  }
  template <class Number>
  void fill(std::vector<Number>& numbers) {
    const auto left = static_cast<std::size_t>(end_ - at_);
    const std::size_t given = std::min<std::uint64_t>(number(), left), wanted = numbers.size() * sizeof(Number);
    const std::size_t here = std::min<std::size_t>(given, static_cast<std::size_t>(end_ - at_));
    auto* const bytes = reinterpret_cast<std::uint8_t*>(numbers.data());
    for (std::size_t i = 0; here > 0 && i < wanted; i += here) std::memcpy(bytes + i, at_, std::min(here, wanted - i));
    at_ += here;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

class Output {
 public:
  void byte(std::uint64_t value) { text_.push_back(static_cast<char>(value)); }
  void number(std::uint64_t value) {
    if (value < first_long) return byte(value);
    byte(first_long + 3);
    for (unsigned i = 0; i < 8; ++i) byte(value >> (8 * i) & 255);
  }
  void bytes(const void* data, std::size_t size) {
    number(size);
    text_.append(static_cast<const char*>(data), size);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

TableShape read_shape(Input& input) {
  TableShape shape;
  const std::uint8_t kind = input.byte();
  shape.sequence = (kind & 1) != 0;
  shape.compact = (kind & 64) != 0;
  shape.value_bits = (kind & 128) != 0 ? input.byte() : value_bits[kind >> 1 & 3];
  for (std::size_t left = input.byte() % 40; left > 0; --left)
    shape.widths.push_back(static_cast<std::uint32_t>(input.number()));
  shape.outcomes = input.number();
  shape.first_contexts = input.number();
  shape.base_size = input.number();
  shape.pad = static_cast<std::uint32_t>(input.number());
  std::vector<double> weight(1);
  input.fill(weight);
  shape.empty_weight = weight[0];
  for (auto* regions : {&shape.entries, &shape.contexts})
    for (std::size_t left = input.byte() % 40; left > 0; --left) {
      RegionSize size;
      size.rows = input.number();
      size.buckets = input.number();
      size.last_bits = static_cast<std::uint32_t>(input.number());
      if (shape.compact) {
        size.probability_bits = static_cast<std::uint32_t>(input.number());
        size.weight_bits = static_cast<std::uint32_t>(input.number());
      }
      regions->push_back(size);
    }
  return shape;
}

std::string write_table(const BackoffTable& table) {
  const TableShape& shape = table.shape();
  Output out;
  std::uint64_t bits = 0;
  while (value_bits[bits] != shape.value_bits) ++bits;
  out.byte(std::uint64_t{shape.sequence} | bits << 1 | std::uint64_t{shape.compact} << 6);
  out.byte(shape.widths.size());
  for (const std::uint32_t width : shape.widths) out.number(width);
  out.number(shape.outcomes);
  out.number(shape.first_contexts);
  out.number(shape.base_size);
  out.number(shape.pad);
  out.bytes(&shape.empty_weight, sizeof shape.empty_weight);
  for (const auto* regions : {&shape.entries, &shape.contexts}) {
    out.byte(regions->size());
    for (const RegionSize& size : *regions) {
      out.number(size.rows);
      out.number(size.buckets);
      out.number(size.last_bits);
      if (!shape.compact) continue;
      out.number(size.probability_bits);
      out.number(size.weight_bits);
    }
  }
  out.bytes(table.arrays().slots, table.layout().slot_bytes);
  out.bytes(table.arrays().index, table.layout().index_length * sizeof(std::uint32_t));
  out.bytes(table.arrays().codebooks, table.layout().codebook_length * sizeof(float));
  const std::uint8_t questions[] = {0, 1, 2, 3, 4, 5, 2, 1, 9, 250, 3, 3, 2, 0, 4, 1};
  out.bytes(questions, sizeof questions);
  return out.text();
}

std::shared_ptr<const BackoffTable> sequences(bool double_precision) {
  ArpaReader reader;
  reader.feed(
      "\\data\\\nngram 1=5\nngram 2=4\nngram 3=2\n\\1-grams:\n-1\t<unk>\n-99\t<s>\t-0.3\n-0.7\t</s>\n-0.5\ta\t-0.25\n"
      "-0.6\tb\t0\n\\2-grams:\n-0.2\t<s> a\t-0.1\n-0.4\ta b\t-0.2\n-0.3\tb </s>\n-1.5\ta a\n"
      "\\3-grams:\n-0.1\t<s> a b\n-0.05\ta b </s>\n\\end\\\n");
  reader.finish();
  return reader.build(double_precision, 1);
}

std::shared_ptr<const BackoffTable> chain() {
  TableShape shape;
  shape.widths = {2, 0};
  shape.outcomes = shape.base_size = 4;
  shape.first_contexts = 3;
  TableBuilder builder(shape, 10, 1);
  const auto add = [&](RowBatch& rows, std::uint64_t context, std::uint32_t last, double p, double weight) {
    rows.add(context, last, p, weight, 0, static_cast<std::uint32_t>(rows.size()));
  };
  RowBatch outcomes = builder.batch(), first = builder.batch(), second = builder.batch(), entries = builder.batch();
  for (std::uint32_t i = 0; i < 3; ++i) add(outcomes, 0, i, 0.3, 0);
  builder.add_entries(1, std::move(outcomes), nullptr);
  for (std::uint32_t i = 0; i < 2; ++i) add(first, 0, i, 0, 0.5);
  builder.add_contexts(1, std::move(first), nullptr);
  LargeVector<std::uint32_t> positions(4);
  for (std::uint32_t i = 0; i < 4; ++i) add(second, i % 2, i, 0, 0.25);
  builder.add_contexts(2, std::move(second), &positions);
  for (std::uint32_t i = 0; i < 6; ++i) add(entries, positions[i % 4], i % 3, 0.6, 0);
  builder.add_entries(0, std::move(entries), nullptr);
  return builder.finish();
}

struct Memory {
  std::vector<std::uint8_t> slots;
  std::vector<std::uint32_t> index;
  std::vector<float> codebooks;
};

// Ids from bytes: small ones, and now and then one far outside.
std::uint32_t id_of(std::uint8_t byte) { return byte < 240 ? byte : none - (byte - 240u) * 0x01111111u; }

void ask(const BackoffTable& table, const std::vector<std::uint32_t>& ids) {
  const TableShape& shape = table.shape();
  const std::uint32_t columns = shape.columns();
  std::vector<std::uint32_t> row(columns);
  for (std::size_t round = 0; round < 4; ++round) {
    for (std::size_t c = 0; c < columns; ++c) row[c] = ids[(round * columns + c) % ids.size()];
    for (const std::size_t level : {std::size_t{0}, shape.levels() / 2, shape.levels() - 1}) {
      require(!(table.probability_from(level, row.data(), table.uniform_base(row[0])) < 0),
              "a probability is not negative");
      require(!(table.backoff_of(level, row.data() + 1) < 0), "a weight is not negative");
      std::vector<std::uint32_t> contexts(shape.levels());
      table.find_contexts(level, row.data() + 1, contexts.data());
      for (std::size_t j = level; j < shape.levels(); ++j)
        require(contexts[j] == none || contexts[j] < table.contexts(), "a context is one");
    }
    if (shape.sequence)
      require(table.advance(row.data() + 1, columns - 1, row[0]).kept < columns, "a state is shorter than the order");
  }
  if (!shape.sequence) return;
  const std::vector<std::uint64_t> starts{0, 0, 1, ids.size() / 2, ids.size()};
  std::vector<double> out(ids.size() + starts.size() - 1);
  table.score_sequences(ids, starts, ids[0], ids[1], out.data());
  table.score_sequences(ids, starts, shape.pad, none, out.data());
}

void list(const BackoffTable& table) {
  const TableShape& shape = table.shape();
  const ContextColumns columns_of(table);
  std::vector<std::uint32_t> columns(shape.columns());
  std::uint64_t visited = 0;
  for (std::size_t j = 0; j < shape.levels(); ++j)
    table.each_entry(j, [&](std::uint64_t row, std::uint32_t context, std::uint32_t outcome, double,
                            std::uint32_t next) {
      require(row < shape.entries[j].rows && outcome < shape.outcomes && next < table.contexts(), "an entry is one");
      const std::uint32_t found = columns_of.columns(context, columns.data());
      require(found == none || found < shape.columns(), "a context has its columns");
      ++visited;
    });
  std::uint64_t rows = 0;
  for (const RegionSize& size : shape.entries) rows += size.rows;
  require(visited <= rows, "an entry is listed once");
}

void draw(const std::shared_ptr<const BackoffTable>& table, const std::vector<std::uint32_t>& ids) {
  const ChainSampler sampler(table, {}, ids[0]);
  std::vector<std::uint32_t> context(sampler.context_columns());
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t c = 0; c < context.size(); ++c) context[c] = ids[(i + c) % ids.size()];
    const std::uint32_t drawn = sampler.draw(context.data(), 1, i, i);
    require(drawn == none || drawn < table->shape().outcomes, "what is drawn is an outcome");
  }
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> written;
  const auto ignore = [](std::uint64_t, std::uint64_t) {};
  for (const auto& table : {sequences(false), sequences(true), chain()}) {
    written.push_back(write_table(*table));
    written.push_back(write_table(*make_compact(*table, 0, {}, ignore)));
    written.push_back(write_table(*make_compact(*quantize(*table, 8, 1, ignore).table, 8, {}, ignore)));
  }
  return written;
}

std::vector<std::string> tokens() {
  std::vector<std::string> made;
  for (const double value : {0.0, -0.0, 1.0, -1.0, absent, 2.0, 1e30, 1e300, double{INFINITY}, double{NAN}}) {
    const auto narrow = static_cast<float>(value);
    made.emplace_back(reinterpret_cast<const char*>(&value), sizeof value);
    made.emplace_back(reinterpret_cast<const char*>(&narrow), sizeof narrow);
  }
  for (const std::uint32_t value : {0u, 1u, 2u, 4u, 1024u, 65536u, none - 2, none - 1, none})
    made.emplace_back(reinterpret_cast<const char*>(&value), sizeof value);
  made.insert(made.end(),
              {std::string("\x03\x02\x01\x00", 4), "\xFC\xFF", "\xFD\xFF\x0F", "\xFE\xFF\xFF\xFF\xFF", "\xFF"});
  return made;
}

}  // namespace treelm::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace treelm::fuzz;
  Input input(data, size);
  const TableShape shape = read_shape(input);
  const auto memory = std::make_shared<Memory>();
  std::shared_ptr<const BackoffTable> table;
  try {
    const TableLayout layout(shape);
    if (layout.slot_bytes + 4 * layout.index_length + 4 * layout.codebook_length > most_bytes) return 0;
    memory->slots.resize(layout.slot_bytes);
    memory->index.resize(layout.index_length);
    memory->codebooks.resize(layout.codebook_length);
    input.fill(memory->slots);
    input.fill(memory->index);
    input.fill(memory->codebooks);
    table = std::make_shared<const BackoffTable>(
        shape, TableArrays{memory->slots.data(), memory->index.data(), memory->codebooks.data(), memory});
  } catch (const Error&) {
    return 0;
  }
  std::vector<std::uint8_t> questions(32);
  input.fill(questions);
  std::vector<std::uint32_t> ids;
  for (const std::uint8_t byte : questions) ids.push_back(id_of(byte));
  ask(*table, ids);
  list(*table);
  draw(table, ids);
  return 0;
}
