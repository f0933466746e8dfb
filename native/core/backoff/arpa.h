// ARPA files: the one format that every n-gram toolkit reads and writes. Log10, words in text order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backoff/table.h"
#include "base/symbols.h"

namespace treelm {

// Reads the bytes of an ARPA file, block by block. Errors carry the line.
class ArpaReader {
 public:
  void feed(std::string_view block);
  void finish();

  // Words in the order of their ids: <unk>, then as in the file; without <s> and </s>, whose ids
  // are size() and size() + 1 in the order </s>, <s>.
  std::vector<std::string> words() const;
  std::size_t order() const { return expected_.size(); }
  bool has_unknown() const { return has_unknown_; }
  // The table of what was read; the reader is empty then.
  std::shared_ptr<const BackoffTable> build(bool double_precision, std::size_t threads);

 private:
  struct Level {
    std::vector<std::uint32_t> rows;  // the last word first
    std::vector<float> log_probability, log_backoff;
    std::vector<std::uint64_t> line;
  };
  enum class Part { before, counts, between, rows, after };

  void read_line(std::string_view line);
  void read_count(std::string_view line);
  void open_section(std::string_view line);
  void close_section();
  void read_row(std::string_view line);
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_at(std::uint64_t line, const std::string& what) const;

  Part part_ = Part::before;
  std::string rest_;  // of a line that continues in the next block
  std::uint64_t line_ = 0;
  std::vector<std::uint64_t> expected_;  // rows by order
  std::vector<Level> levels_;
  Symbols symbols_;  // words in the order of the unigrams
  bool has_unknown_ = false;
};

// Writes a sequence table; `words` by id, then </s> and <s>. `write` takes the next bytes.
void write_arpa(const BackoffTable& table, const std::vector<std::string>& words,
                const std::function<void(std::string_view)>& write);

}  // namespace treelm
