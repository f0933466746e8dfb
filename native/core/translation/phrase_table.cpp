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

// -- tables -------------------------------------------------------------------------------------

namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::table, "the phrase table " + what); }

// What lies between two starts; they are not trusted.
template <class T>
std::span<const T> piece(std::span<const T> all, std::span<const std::uint64_t> starts, std::uint64_t place,
                         const char* what) {
  if (place + 1 >= starts.size()) refuse(std::string("has no such ") + what);
  const std::uint64_t first = starts[place], last = starts[place + 1];
  if (first > last || last > all.size())
    refuse(std::string("has a ") + what + " that ends before it begins, or nowhere");
  return all.subspan(first, last - first);
}

bool can_be_log_score(double value) { return value >= log_floor && value <= std::log(largest_score); }

}  // namespace

PhraseTable::PhraseTable(std::shared_ptr<const Symbols> words, PhraseArrays arrays, std::size_t score_count)
    : words_(std::move(words)), arrays_(std::move(arrays)), score_count_(score_count) {
  const std::size_t rows = arrays_.targets.size();
  const auto check_starts = [](auto starts, std::size_t things, std::size_t end, const char* what) {
    if (starts.size() != things + 1 || starts.front() != 0 || starts.back() != end)
      refuse(std::string("does not say where its ") + what + " begin");
  };
  if (rows == 0 || rows >= none || score_count == 0) refuse("has no rows, no scores, or too many rows");
  if (arrays_.source_starts.size() < 2 || arrays_.target_starts.size() < 2 || arrays_.source_starts.size() > none ||
      arrays_.target_starts.size() > none - words_->size())
    refuse("has no phrases, or too many");
  check_starts(arrays_.source_starts, sources(), arrays_.source_words.size(), "source phrases");
  check_starts(arrays_.target_starts, targets(), arrays_.target_words.size(), "target phrases");
  check_starts(arrays_.row_starts, sources(), rows, "rows");
  check_starts(arrays_.point_starts, rows, arrays_.points.size(), "alignments");
  if (arrays_.scores.size() / score_count != rows || arrays_.scores.size() % score_count != 0)
    refuse("has another number of scores than of rows");
  if (!arrays_.orientations.empty() && arrays_.orientations.size() != rows * orientations)
    refuse("has another number of orientations than of rows");
  if (arrays_.longest_source < 1 || arrays_.longest_source > longest_phrase)
    refuse("has an impossible length of source phrases");
}

std::span<const std::uint32_t> PhraseTable::source_words(std::uint32_t source) const {
  return piece(arrays_.source_words, arrays_.source_starts, source, "source phrase");
}

std::span<const std::uint32_t> PhraseTable::target_words(std::uint32_t target) const {
  return piece(arrays_.target_words, arrays_.target_starts, target, "target phrase");
}

std::uint32_t PhraseTable::find(std::span<const std::uint32_t> words) const {
  std::uint32_t first = 0, last = static_cast<std::uint32_t>(sources());
  while (first < last) {
    const std::uint32_t middle = first + (last - first) / 2;
    const auto found = source_words(middle);
    if (std::lexicographical_compare(found.begin(), found.end(), words.begin(), words.end()))
      first = middle + 1;
    else
      last = middle;
  }
  if (first == sources()) return none;
  const auto found = source_words(first);
  return std::equal(found.begin(), found.end(), words.begin(), words.end()) ? first : none;
}

std::pair<std::uint32_t, std::uint32_t> PhraseTable::rows_of(std::uint32_t source) const {
  const std::uint32_t first = arrays_.row_starts[source], last = arrays_.row_starts[source + 1];
  if (first > last || last > rows()) refuse("has a source phrase whose rows end before they begin, or nowhere");
  return {first, last};
}

bool PhraseTable::string_less(std::span<const std::uint32_t> one, std::span<const std::uint32_t> other) const {
  const auto less = [&](std::uint32_t x, std::uint32_t y) { return x != y && (*words_)[x] < (*words_)[y]; };
  return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end(), less);
}

std::uint32_t PhraseTable::find_row(std::uint32_t source, std::span<const std::uint32_t> target) const {
  auto [first, last] = rows_of(source);
  const std::uint32_t end = last;
  while (first < last) {
    const std::uint32_t middle = first + (last - first) / 2;
    check_row(source, middle);
    if (string_less(target_words(this->target(middle)), target))
      first = middle + 1;
    else
      last = middle;
  }
  if (first == end) return none;
  const auto found = target_words(this->target(first));
  return std::equal(found.begin(), found.end(), target.begin(), target.end()) ? first : none;
}

void PhraseTable::check_row(std::uint32_t source, std::uint32_t row) const {
  const std::size_t source_length = source_words(source).size();
  const auto words = target_words(target(row));
  if (words.size() > longest_phrase || (words.empty() && !arrays_.has_deletions))
    refuse("has a target phrase of " + std::to_string(words.size()) + " words");
  for (const std::uint32_t word : words)
    if (word >= words_->size() || is_reserved_word((*words_)[word]))
      refuse("has a target phrase with a word that it does not have");
  for (const double score : scores(row))
    if (!can_be_log_score(score)) refuse("has a score that is not the logarithm of a probability");
  for (const AlignmentPoint& point : piece(arrays_.points, arrays_.point_starts, row, "alignment"))
    if (point.source >= source_length || point.target >= words.size())
      refuse("has an alignment of words that are not in the phrases");
  if (!has_reordering()) return;
  for (const double value : reordering(row))
    if (!can_be_log_score(value)) refuse("has an orientation that is not the logarithm of a probability");
}

std::shared_ptr<const Symbols> saved_words(std::string_view bytes, std::span<const std::uint64_t> starts) {
  const auto words = std::make_shared<Symbols>();
  if (starts.empty() || starts.front() != 0 || starts.back() != bytes.size())
    refuse("does not say where its words begin");
  const std::span<const char> all(bytes.data(), bytes.size());
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    poll_interrupt();
    const auto found = piece(all, starts, i, "word");
    const std::string_view word(found.data(), found.size());
    if (word.empty() || std::any_of(word.begin(), word.end(), is_white_space) ||
        first_invalid_utf8(word) != std::string_view::npos)
      refuse("has a word that is empty, has white space in it, or is not valid UTF-8");
    if (words->intern(word) != i) refuse("has the word " + shown(word) + " twice");
  }
  return words;
}

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

void PhraseTableReader::read_phrase(std::string_view field, std::size_t number, std::vector<std::uint32_t>& words) {
  words.clear();
  each_word(field, [&](std::string_view word) {
    if (number == 2 && is_reserved_word(word))
      fail("field 2: " + shown(word) + " marks the boundary of a sentence, and cannot be a word");
    words.push_back(words_.intern(word));
  });
  if (words.size() > longest_phrase)
    fail("field " + std::to_string(number) + ": the phrase has " + std::to_string(words.size()) +
         " words; 255 are the most");
  if (!words.empty()) return;
  if (number == 1) fail("field 1: there is no source phrase");
  if (!allow_deletion_) fail("field 2: the target phrase is empty, and deletion is not allowed");
  has_deletions_ = true;
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
    points_.push_back({static_cast<std::uint8_t>(source), static_cast<std::uint8_t>(target)});
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
    score_count_ = row_scores_.size() - (has_penalty_ ? 1 : 0);
  }
  if (const std::size_t expected = score_count_ + (has_penalty_ ? 1 : 0); row_scores_.size() != expected)
    fail("field 3: " + std::to_string(expected) + " scores were expected, as in the first line, and " +
         std::to_string(row_scores_.size()) + " found");
  if (has_penalty_ && row_scores_.back() < least_penalty)
    fail("field 3: the last score is 2.718, the phrase penalty, in the first line, but not here");
  row_scores_.resize(score_count_);
  for (const double score : row_scores_)
    scores_.push_back(score > 0 ? std::max(log_floor, std::log(score)) : log_floor);
  if (fields.size() > needed_fields) read_alignment(fields[3]);
  point_start_.push_back(points_.size());
  longest_source_ = std::max(longest_source_, source_.size());
  source_of_.push_back(sources_.intern(source_));
  target_of_.push_back(targets_.intern(target_));
  line_of_.push_back(line());
  if (line_of_.size() >= none) throw Error(ErrorCode::too_large, "the table has more than four billion lines");
}

void PhraseTableReader::check_duplicates(std::span<const std::uint32_t> order) const {
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::uint32_t one = order[i - 1], other = order[i];
    if (source_of_[one] != source_of_[other] || target_of_[one] != target_of_[other]) continue;
    const auto [first, second] = std::minmax(line_of_[one], line_of_[other]);
    throw Error(
        ErrorCode::phrase_table,
        "the pair of phrases in lines " + std::to_string(first) + " and " + std::to_string(second) + " is the same",
        {second, 0});
  }
}

// Lines in the order of a table's rows.
std::vector<std::uint32_t> PhraseTableReader::ordered_rows(std::span<const std::uint32_t> source_ranks) const {
  std::vector<std::uint32_t> order(line_of_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (source_of_[a] != source_of_[b]) return source_ranks[source_of_[a]] < source_ranks[source_of_[b]];
    const auto one = targets_[target_of_[a]], other = targets_[target_of_[b]];
    const auto less = [&](std::uint32_t x, std::uint32_t y) { return x != y && words_[x] < words_[y]; };
    return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end(), less);
  });
  return order;
}

std::shared_ptr<PhraseTable> PhraseTableReader::finish() {
  end();
  const std::size_t rows = line_of_.size();
  if (rows == 0) throw Error(ErrorCode::phrase_table, "there are no phrases in the table");
  std::vector<std::uint32_t> sources(sources_.size()), ranks(sources_.size());
  std::iota(sources.begin(), sources.end(), 0u);
  std::sort(sources.begin(), sources.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto one = sources_[a], other = sources_[b];
    return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end());
  });
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) ranks[sources[rank]] = rank;
  const std::vector<std::uint32_t> order = ordered_rows(ranks);
  check_duplicates(order);

  struct Memory {
    std::vector<std::uint32_t> source_words, target_words, row_starts, targets;
    std::vector<std::uint64_t> source_starts{0}, target_starts, point_starts{0};
    std::vector<double> scores;
    std::vector<AlignmentPoint> points;
  };
  const auto made = std::make_shared<Memory>();
  made->source_words.reserve(sources_.data().size());
  made->source_starts.reserve(sources.size() + 1);
  for (const std::uint32_t source : sources) {
    const auto words = sources_[source];
    made->source_words.insert(made->source_words.end(), words.begin(), words.end());
    made->source_starts.push_back(made->source_words.size());
  }
  sources_ = IdSequences();
  made->target_words = targets_.data();
  made->target_starts = targets_.starts();
  targets_ = IdSequences();
  made->row_starts.assign(sources.size() + 1, 0);
  made->targets.reserve(rows);
  made->point_starts.reserve(rows + 1);
  made->points.reserve(points_.size());
  for (const std::uint32_t from : order) {
    ++made->row_starts[ranks[source_of_[from]] + 1];
    made->targets.push_back(target_of_[from]);
    made->points.insert(made->points.end(), points_.begin() + static_cast<std::ptrdiff_t>(point_start_[from]),
                        points_.begin() + static_cast<std::ptrdiff_t>(point_start_[from + 1]));
    made->point_starts.push_back(made->points.size());
  }
  std::partial_sum(made->row_starts.begin(), made->row_starts.end(), made->row_starts.begin());
  points_ = {};
  made->scores.reserve(scores_.size());
  for (const std::uint32_t from : order) {
    const auto first = scores_.begin() + static_cast<std::ptrdiff_t>(from * score_count_);
    made->scores.insert(made->scores.end(), first, first + static_cast<std::ptrdiff_t>(score_count_));
  }
  scores_ = {};
  const PhraseArrays arrays{.source_words = made->source_words,
                            .target_words = made->target_words,
                            .source_starts = made->source_starts,
                            .target_starts = made->target_starts,
                            .row_starts = made->row_starts,
                            .targets = made->targets,
                            .scores = made->scores,
                            .point_starts = made->point_starts,
                            .points = made->points,
                            .orientations = {},
                            .longest_source = longest_source_,
                            .has_deletions = has_deletions_,
                            .owner = made};
  return std::make_shared<PhraseTable>(std::make_shared<const Symbols>(std::move(words_)), arrays, score_count_);
}

// -- orientations -------------------------------------------------------------------------------

ReorderingReader::ReorderingReader(std::shared_ptr<const PhraseTable> table)
    : table_(std::move(table)), orientation_(table_->rows() * orientations, 0.0), line_of_(table_->rows(), 0) {}

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
      words.push_back(table_->words().find(word));
      known = known && words.back() != none;
    });
  };
  read(fields[0], source_);
  read(fields[1], target_);
  const std::uint32_t source = known ? table_->find(source_) : none;
  const std::uint32_t row = source == none ? none : table_->find_row(source, target_);
  if (row == none) {
    ++unused_;
    return;
  }
  if (line_of_[row] != 0) fail("the pair of phrases is the same as in line " + std::to_string(line_of_[row]));
  line_of_[row] = line();
  std::copy(values.begin(), values.end(),
            orientation_.begin() + static_cast<std::ptrdiff_t>(std::size_t{row} * orientations));
}

std::shared_ptr<PhraseTable> ReorderingReader::finish() {
  end();
  if (line() == 0) throw Error(ErrorCode::phrase_table, "there are no phrases in the table");
  struct Memory {
    std::shared_ptr<const PhraseTable> table;
    std::vector<double> orientations;
  };
  const auto made = std::make_shared<Memory>(Memory{table_, std::move(orientation_)});
  PhraseArrays arrays = table_->arrays();
  arrays.orientations = made->orientations;
  arrays.owner = made;
  // The words live in the table that the memory keeps.
  return std::make_shared<PhraseTable>(std::shared_ptr<const Symbols>(made, &made->table->words()), arrays,
                                       table_->score_count());
}

}  // namespace treelm
