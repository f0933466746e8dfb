#include "backoff/arpa.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "backoff/sequence_builder.h"
#include "text/unicode.h"

namespace treelm {

namespace {

constexpr std::string_view unknown_word = "<unk>", start_word = "<s>", end_word = "</s>";
constexpr std::size_t longest_line = std::size_t{64} << 20;

// A carriage return as well, wherever it stands: a word that ended with one could not be written.
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}

// The next field, and what follows it.
std::string_view next_field(std::string_view& text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  std::size_t end = 0;
  while (end < text.size() && !is_blank(text[end])) ++end;
  const std::string_view field = text.substr(0, end);
  text.remove_prefix(end);
  return field;
}

std::string quoted(std::string_view word) {
  // Messages are text: what is not valid, or is cut, is left out.
  const std::string_view shown = word.substr(0, 100);
  std::string out(1, '"');
  out.append(shown.substr(0, first_invalid_utf8(shown)));
  out.push_back('"');
  return out;
}

bool read_number(std::string_view text, float& value) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc::result_out_of_range && end == text.data() + text.size()) {
    value = text.front() == '-' ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
    return true;
  }
  return problem == std::errc() && end == text.data() + text.size() && !std::isnan(value);
}

}  // namespace

void ArpaReader::fail_at(std::uint64_t line, const std::string& what) const {
  throw Error(ErrorCode::arpa, what, {line, 0});
}

void ArpaReader::fail(const std::string& what) const { fail_at(line_, what); }

void ArpaReader::feed(std::string_view block) {
  while (!block.empty()) {
    const std::size_t end = block.find('\n');
    if (end == std::string_view::npos) {
      if (rest_.size() + block.size() > longest_line) fail("a line is longer than 64 MiB");
      rest_ += block;
      return;
    }
    ++line_;
    if (rest_.empty()) {
      read_line(block.substr(0, end));
    } else {
      rest_ += block.substr(0, end);
      read_line(rest_);
      rest_.clear();
    }
    block.remove_prefix(end + 1);
  }
}

void ArpaReader::finish() {
  if (!rest_.empty()) {
    ++line_;
    read_line(rest_);
    rest_.clear();
  }
  if (part_ == Part::before) fail("there is no line \\data\\, so this is not an ARPA file");
  if (part_ != Part::after) fail("the file ends before \\end\\; it was cut off");
}

void ArpaReader::read_line(std::string_view text) {
  const std::string_view line = trimmed(text);
  if (part_ == Part::before) {
    if (line == "\\data\\") part_ = Part::counts;
    return;
  }
  if (line.empty() || part_ == Part::after) return;
  if (line == "\\end\\") {
    close_section();
    if (levels_.size() != expected_.size()) fail("there are fewer sections than counts");
    part_ = Part::after;
  } else if (line.front() == '\\' && line.ends_with("-grams:")) {
    open_section(line);
  } else if (part_ == Part::counts) {
    read_count(line);
  } else if (part_ == Part::rows) {
    read_row(line);
  } else {
    fail("expected a section such as \\1-grams:");
  }
}

void ArpaReader::read_count(std::string_view line) {
  std::string_view rest = line;
  std::uint64_t order = 0, count = 0;
  const auto number = [&](std::uint64_t& value) {
    const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (problem != std::errc()) return false;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return true;
  };
  if (!rest.starts_with("ngram ")) fail("expected a count such as ngram 1=5000");
  rest = trimmed(rest.substr(6));
  if (!number(order) || !rest.starts_with('=')) fail("expected a count such as ngram 1=5000");
  rest.remove_prefix(1);
  if (!number(count) || !rest.empty()) fail("expected a count such as ngram 1=5000");
  if (order != expected_.size() + 1) fail("the counts do not go 1, 2, 3, ...");
  if (order >= max_columns) fail("the order is larger than " + std::to_string(max_columns - 1));
  if (count >= none - 1) fail("the count is larger than can be indexed");
  expected_.push_back(count);
}

void ArpaReader::open_section(std::string_view line) {
  close_section();
  std::string wanted("\\");
  wanted.append(std::to_string(levels_.size() + 1)).append("-grams:");
  if (line != wanted) fail("expected the section " + wanted);
  if (levels_.size() == expected_.size()) fail("there are more sections than counts");
  levels_.emplace_back();
  part_ = Part::rows;
}

void ArpaReader::close_section() {
  if (levels_.empty()) {
    if (expected_.empty()) fail("there are no counts such as ngram 1=5000");
    return;
  }
  const std::size_t order = levels_.size();
  const std::uint64_t found = levels_.back().log_probability.size();
  if (found != expected_[order - 1])
    fail("there are " + std::to_string(found) + " " + std::to_string(order) + "-grams, and " +
         std::to_string(expected_[order - 1]) + " were announced");
  if (order > 1) return;
  if (symbols_.find(start_word) == none || symbols_.find(end_word) == none)
    fail("<s> or </s> is not among the 1-grams");
  has_unknown_ = symbols_.find(unknown_word) != none;
}

void ArpaReader::read_row(std::string_view line) {
  Level& level = levels_.back();
  const std::size_t order = levels_.size();
  float log_probability = 0, log_backoff = 0;
  if (!read_number(next_field(line), log_probability) || !(log_probability <= 1e-6F))
    fail("a line begins with a log10 probability, 0 or less");
  const std::size_t at = level.rows.size();
  level.rows.resize(at + order);
  for (std::size_t i = order; i-- > 0;) {
    const std::string_view word = next_field(line);
    if (word.empty()) fail("expected " + std::to_string(order) + " words");
    std::uint32_t id = symbols_.find(word);
    if (order == 1) {
      if (id != none) fail(quoted(word) + " occurs twice among the 1-grams");
      if (first_invalid_utf8(word) != std::string_view::npos) fail("the text is not valid UTF-8");
      id = symbols_.intern(word);
    } else if (id == none) {
      fail(quoted(word) + " is not among the 1-grams");
    }
    level.rows[at + i] = id;
  }
  if (const std::string_view field = next_field(line); !field.empty())
    if (!read_number(field, log_backoff) || log_backoff > 30) fail("a back-off weight is not a number");
  if (!next_field(line).empty())
    fail("there is more on the line than " + std::to_string(order) + " words and a weight");
  level.log_probability.push_back(std::min(log_probability, 0.0F));
  level.log_backoff.push_back(log_backoff);
  level.line.push_back(line_);
}

std::vector<std::string> ArpaReader::words() const {
  std::vector<std::string> result{std::string(unknown_word)};
  for (std::uint32_t i = 0; i < symbols_.size(); ++i) {
    const std::string_view word = symbols_[i];
    if (word != unknown_word && word != start_word && word != end_word) result.emplace_back(word);
  }
  return result;
}

std::shared_ptr<const BackoffTable> ArpaReader::build(bool double_precision, std::size_t threads) {
  std::vector<std::uint32_t> id_of(symbols_.size());
  std::uint32_t next = 1;
  for (std::uint32_t i = 0; i < symbols_.size(); ++i) {
    const std::string_view word = symbols_[i];
    if (word == unknown_word)
      id_of[i] = 0;
    else if (word != start_word && word != end_word)
      id_of[i] = next++;
  }
  id_of[symbols_.find(end_word)] = next;
  const std::uint32_t start = id_of[symbols_.find(start_word)] = next + 1;

  TableShape shape;
  for (std::size_t width = order(); width-- > 0;) shape.widths.push_back(static_cast<std::uint32_t>(width));
  shape.outcomes = start + 1;
  shape.sequence = true;
  shape.value_bits = double_precision ? 64 : 32;
  shape.pad = start;
  shape.base_size = start;
  std::vector<SequenceRows> levels;
  std::vector<std::vector<std::uint64_t>> lines;
  for (Level& level : levels_) {
    for (std::uint32_t& word : level.rows) word = id_of[word];
    levels.push_back({std::move(level.rows), std::move(level.log_probability), std::move(level.log_backoff)});
    lines.push_back(std::move(level.line));
  }
  levels_.clear();
  return build_sequences(
      std::move(shape), std::move(levels), threads, [&](std::size_t order, std::size_t index, RowProblem problem) {
        std::string what("this ");
        what.append(std::to_string(order)).append("-gram ");
        what.append(problem == RowProblem::duplicate ? "occurs twice in the file"
                                                     : "continues words that are not an n-gram of the file");
        fail_at(lines[order - 1][index], what);
      });
}

void write_arpa(const BackoffTable& table, const std::vector<std::string>& words,
                const std::function<void(std::string_view)>& write) {
  const TableShape& shape = table.shape();
  const std::uint32_t order = shape.columns();
  if (!shape.sequence || words.size() != shape.outcomes)
    throw Error(ErrorCode::argument, "the words do not fit the table");
  std::string out = "\\data\\\n";
  for (std::uint32_t n = 1; n <= order; ++n) {
    std::uint64_t rows = n == 1 ? shape.outcomes : 0;
    if (n > 1)
      table.each_entry(order - n, [&](std::uint64_t, std::uint32_t, std::uint32_t, double p, std::uint32_t) {
        rows += !std::signbit(p);
      });
    out.append("ngram ").append(std::to_string(n)).append("=").append(std::to_string(rows)).append("\n");
  }
  const auto number = [&](double value) {
    char text[32];
    const double log = value > 0 ? std::log10(value) : -99.0;
    const auto end = std::to_chars(text, text + sizeof text, static_cast<float>(log == 0 ? 0.0 : log)).ptr;
    out.append(text, end);
  };
  const ContextColumns columns_of(table);
  std::uint32_t columns[max_columns + 1];
  const auto row = [&](double p, std::uint32_t n, std::uint32_t own) {
    number(p);
    for (std::uint32_t c = n; c-- > 0;) {
      out += c + 1 == n ? '\t' : ' ';
      out += columns[c] < words.size() ? std::string_view(words[columns[c]]) : std::string_view("<unk>");
    }
    if (n < order) {
      out += '\t';
      number(own == empty_context ? 1.0 : usable_weight(table.backoff(own)));
    }
    out += '\n';
    if (out.size() > (std::size_t{1} << 20)) {
      write(out);
      out.clear();
    }
  };
  for (std::uint32_t n = 1; n <= order; ++n) {
    out.append("\n\\").append(std::to_string(n)).append("-grams:\n");
    std::uint32_t expected = 0;  // among the 1-grams, the next word
    const auto unseen = [&](std::uint32_t to) {
      // A word never seen in training has its share of the base.
      for (; expected < to; ++expected) {
        columns[0] = expected;
        row(table.uniform_base(expected) * usable_weight(table.backoff(empty_context)), 1, empty_context);
      }
    };
    table.each_entry(order - n,
                     [&](std::uint64_t, std::uint32_t context, std::uint32_t outcome, double p, std::uint32_t own) {
                       if (n == 1) {
                         unseen(outcome);
                         expected = outcome + 1;
                       } else if (std::signbit(p) || columns_of.columns(context, columns + 1) != n - 1) {
                         return;
                       }
                       columns[0] = outcome;
                       row(usable_probability(p), n, own);
                     });
    if (n == 1) unseen(static_cast<std::uint32_t>(shape.outcomes));
  }
  out += "\n\\end\\\n";
  write(out);
}

}  // namespace treelm
