#include "translation/phrase_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/interrupt.h"
#include "text/unicode.h"
#include "text/word_encoder.h"

namespace treelm {

namespace {

constexpr std::string_view separator = " ||| ", closing = " |||", mark = "\xEF\xBB\xBF";
constexpr std::size_t longest_line = std::size_t{1} << 20;
// Tables of old versions have exp(1) as their last score, rounded: it is the phrase penalty.
constexpr double least_penalty = 2.718, largest_score = 2.7183;

std::string shown(std::string_view text) { return '"' + shown_word(text) + '"'; }

// Calls visit(word) for each piece between white space.
template <class Visit>
void each_word(std::string_view text, const Visit& visit) {
  const char* at = text.data();
  const char* const stop = at + text.size();
  for (;;) {
    at = std::find_if_not(at, stop, is_white_space);
    if (at == stop) return;
    const char* const end = std::find_if(at, stop, is_white_space);
    visit(std::string_view(at, static_cast<std::size_t>(end - at)));
    at = end;
  }
}

}  // namespace

// -- lines --------------------------------------------------------------------------------------

void FieldLines::feed(std::string_view block) {
  while (!block.empty()) {
    const std::size_t end = block.find('\n');
    const std::string_view piece = block.substr(0, end);
    if (rest_.size() + piece.size() > longest_line) {
      ++line_;
      fail("the line is longer than 1 MiB");
    }
    if (end == std::string_view::npos) {
      rest_.append(piece);
      return;
    }
    if (rest_.empty()) {
      read_line(piece);
    } else {
      rest_.append(piece);
      read_line(rest_);
      rest_.clear();
    }
    block.remove_prefix(end + 1);
  }
}

void FieldLines::end() {
  if (!rest_.empty()) read_line(rest_);
  rest_.clear();
}

void FieldLines::read_line(std::string_view line) {
  poll_interrupt();
  if (++line_ == 1 && line.starts_with(mark)) line.remove_prefix(mark.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (const std::size_t invalid = first_invalid_utf8(line); invalid != std::string_view::npos)
    throw Error(ErrorCode::encoding, std::string(code_sentence(ErrorCode::encoding)), {line_, invalid + 1});
  std::array<std::string_view, needed_fields + 1> fields;
  std::size_t count = 0;
  for (std::size_t at = 0; count < fields.size(); ++count) {
    const bool last = count + 1 >= needed_fields;  // what follows the scores may be empty
    const std::size_t next = line.find(last ? closing : separator, at);
    fields[count] = line.substr(at, next == std::string_view::npos ? next : next - at);
    if (next == std::string_view::npos) {
      ++count;
      break;
    }
    at = next + (last ? closing.size() : separator.size());
  }
  if (count < needed_fields)
    fail("the line has " + std::to_string(count) + (count == 1 ? " field" : " fields") +
         ", but at least 3 are needed, separated by \" ||| \"");
  read_fields({fields.data(), count});
}

void FieldLines::fail(const std::string& what) const { throw Error(ErrorCode::phrase_table, what, {line_, 0}); }

double FieldLines::probability(std::string_view text, std::size_t number, double largest) const {
  const char* const stop = text.data() + text.size();
  double value = 0;
  auto [end, problem] = std::from_chars(text.data(), stop, value);
  if (problem == std::errc::result_out_of_range) {  // too small counts as 0
    value = text.find("e-") == std::string_view::npos && text.find("E-") == std::string_view::npos ? HUGE_VAL : 0;
    problem = std::errc();
  }
  const auto refuse = [&](const char* why) {
    fail("field 3, score " + std::to_string(number) + ": " + shown(text) + why);
  };
  if (problem != std::errc() || end != stop || std::isnan(value)) refuse(" is not a number");
  if (value < 0) refuse(" is negative, and no probability");
  if (value > largest) refuse(" is larger than a probability can be");
  return value;
}

// -- phrases ------------------------------------------------------------------------------------

PhraseTableReader::PhraseTableReader(bool allow_deletion)
    : allow_deletion_(allow_deletion), table_(std::make_shared<PhraseTable>()) {
  table_->point_start_.push_back(0);
}

void PhraseTableReader::read_phrase(std::string_view field, std::size_t number, std::vector<std::uint32_t>& words) {
  words.clear();
  each_word(field, [&](std::string_view word) {
    if (number == 2 && is_reserved_word(word))
      fail("field 2: " + shown(word) + " marks the boundary of a sentence, and cannot be a word");
    words.push_back(table_->words_.intern(word));
  });
  if (words.size() > longest_phrase)
    fail("field " + std::to_string(number) + ": the phrase has " + std::to_string(words.size()) +
         " words; 255 are the most");
  if (!words.empty()) return;
  if (number == 1) fail("field 1: there is no source phrase");
  if (!allow_deletion_) fail("field 2: the target phrase is empty, and deletion is not allowed");
}

void PhraseTableReader::read_alignment(std::string_view field) {
  each_word(field, [&](std::string_view point) {
    const char* const stop = point.data() + point.size();
    unsigned source = 0, target = 0;
    const auto first = std::from_chars(point.data(), stop, source);
    bool good = first.ec == std::errc() && first.ptr != stop && *first.ptr == '-';
    if (good) {
      const auto second = std::from_chars(first.ptr + 1, stop, target);
      good = second.ec == std::errc() && second.ptr == stop && source < source_.size() && target < target_.size();
    }
    if (!good) fail("field 4: " + shown(point) + " is not an alignment of two words of these phrases");
    table_->points_.push_back({static_cast<std::uint8_t>(source), static_cast<std::uint8_t>(target)});
  });
}

void PhraseTableReader::read_fields(std::span<const std::string_view> fields) {
  read_phrase(fields[0], 1, source_);
  read_phrase(fields[1], 2, target_);
  row_scores_.clear();
  each_word(fields[2], [&](std::string_view text) {
    row_scores_.push_back(probability(text, row_scores_.size() + 1, largest_score));
  });
  if (row_scores_.empty()) fail("field 3: there are no scores");
  const bool is_first = line_of_.empty();
  if (is_first) {
    has_penalty_ = row_scores_.size() > 1 && row_scores_.back() >= least_penalty;
    table_->score_count_ = row_scores_.size() - (has_penalty_ ? 1 : 0);
  }
  if (const std::size_t expected = table_->score_count_ + (has_penalty_ ? 1 : 0); row_scores_.size() != expected)
    fail("field 3: " + std::to_string(expected) + " scores were expected, as in the first line, and " +
         std::to_string(row_scores_.size()) + " found");
  if (has_penalty_ && row_scores_.back() < least_penalty)
    fail("field 3: the last score is 2.718, the phrase penalty, in the first line, but not here");
  row_scores_.resize(table_->score_count_);
  for (const double score : row_scores_)
    table_->scores_.push_back(score > 0 ? std::max(log_floor, std::log(score)) : log_floor);
  if (fields.size() > needed_fields) read_alignment(fields[3]);
  table_->point_start_.push_back(table_->points_.size());
  table_->longest_source_ = std::max(table_->longest_source_, source_.size());
  source_of_.push_back(table_->sources_.intern(source_));
  table_->target_.push_back(table_->targets_.intern(target_));
  line_of_.push_back(line());
  if (line_of_.size() >= none) throw Error(ErrorCode::too_large, "the table has more than four billion lines");
}

void PhraseTableReader::check_duplicates(std::span<const std::uint32_t> order) const {
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::uint32_t one = order[i - 1], other = order[i];
    if (source_of_[one] != source_of_[other] || table_->target_[one] != table_->target_[other]) continue;
    const auto [first, second] = std::minmax(line_of_[one], line_of_[other]);
    throw Error(
        ErrorCode::phrase_table,
        "the pair of phrases in lines " + std::to_string(first) + " and " + std::to_string(second) + " is the same",
        {second, 0});
  }
}

std::shared_ptr<PhraseTable> PhraseTableReader::finish() {
  end();
  PhraseTable& table = *table_;
  const std::size_t rows = line_of_.size();
  if (rows == 0) throw Error(ErrorCode::phrase_table, "there are no phrases in the table");
  std::vector<std::uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0u);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    if (source_of_[a] != source_of_[b]) return source_of_[a] < source_of_[b];
    const auto one = table.targets_[table.target_[a]], other = table.targets_[table.target_[b]];
    const auto less = [&](std::uint32_t x, std::uint32_t y) { return x != y && table.words_[x] < table.words_[y]; };
    return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end(), less);
  };
  std::sort(order.begin(), order.end(), before);
  check_duplicates(order);

  std::vector<std::uint32_t> target(rows);
  std::vector<double> scores(table.scores_.size());
  std::vector<std::uint64_t> point_start{0};
  std::vector<AlignmentPoint> points;
  points.reserve(table.points_.size());
  table.row_start_.assign(table.sources_.size() + 1, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    const std::uint32_t from = order[i];
    ++table.row_start_[source_of_[from] + 1];
    target[i] = table.target_[from];
    std::copy_n(table.scores_.begin() + static_cast<std::ptrdiff_t>(from * table.score_count_), table.score_count_,
                scores.begin() + static_cast<std::ptrdiff_t>(i * table.score_count_));
    points.insert(points.end(), table.points_.begin() + static_cast<std::ptrdiff_t>(table.point_start_[from]),
                  table.points_.begin() + static_cast<std::ptrdiff_t>(table.point_start_[from + 1]));
    point_start.push_back(points.size());
  }
  std::partial_sum(table.row_start_.begin(), table.row_start_.end(), table.row_start_.begin());
  table.target_ = std::move(target);
  table.scores_ = std::move(scores);
  table.points_ = std::move(points);
  table.point_start_ = std::move(point_start);
  return std::move(table_);
}

// -- orientations -------------------------------------------------------------------------------

ReorderingReader::ReorderingReader(const PhraseTable& table)
    : table_(std::make_shared<PhraseTable>(table)), line_of_(table.rows(), 0) {
  table_->orientation_.assign(table.rows() * orientations, 0.0);
}

void ReorderingReader::read_fields(std::span<const std::string_view> fields) {
  std::array<double, orientations> values{};
  std::size_t count = 0;
  each_word(fields[2], [&](std::string_view text) {
    const double value = probability(text, count + 1, 1);
    if (count < orientations) values[count] = value > 0 ? std::max(log_floor, std::log(value)) : log_floor;
    ++count;
  });
  if (count != orientations)
    fail("field 3: 6 scores were expected (monotone, swap and discontinuous, backward and forward), and " +
         std::to_string(count) + " found");
  bool known = true;
  const auto read = [&](std::string_view field, std::vector<std::uint32_t>& words) {
    words.clear();
    each_word(field, [&](std::string_view word) {
      words.push_back(table_->words_.find(word));
      known = known && words.back() != none;
    });
  };
  read(fields[0], source_);
  read(fields[1], target_);
  const std::uint32_t source = known ? table_->sources_.find(source_) : none;
  const std::uint32_t target = known ? table_->targets_.find(target_) : none;
  if (source != none && target != none) {
    const auto [first, last] = table_->rows_of(source);
    for (std::uint32_t row = first; row < last; ++row) {
      if (table_->target_[row] != target) continue;
      if (line_of_[row] != 0) fail("the pair of phrases is the same as in line " + std::to_string(line_of_[row]));
      line_of_[row] = line();
      std::copy(values.begin(), values.end(),
                table_->orientation_.begin() + static_cast<std::ptrdiff_t>(std::size_t{row} * orientations));
      return;
    }
  }
  ++unused_;
}

std::shared_ptr<PhraseTable> ReorderingReader::finish() {
  end();
  if (line() == 0) throw Error(ErrorCode::phrase_table, "there are no phrases in the table");
  return std::move(table_);
}

}  // namespace treelm
