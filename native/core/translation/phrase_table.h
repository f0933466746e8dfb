// A phrase table: phrases as spans of word ids, the logarithms of their scores, alignments and, if there is a table of
// them, orientations. Read from the text form of Moses, or used where it lies in a mapped file; never changed
// afterwards.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id_sequences.h"
#include "base/symbols.h"

namespace treelm {

// No logarithm of a score or of a word counts less.
inline constexpr double log_floor = -100;

inline constexpr std::size_t longest_phrase = 255;
inline constexpr std::size_t orientations = 6;  // monotone, swap, discontinuous: backward, then forward

// Words of the two sides that belong to each other, by their places in the phrases.
struct AlignmentPoint {
  std::uint8_t source, target;
};

// The numbers of a table, wherever they lie. Source phrases are in the order of their word ids, rows in that of the
// sources and then of the target strings; "starts" have one number more than there are things, from 0 on.
struct PhraseArrays {
  std::span<const std::uint32_t> source_words, target_words;
  std::span<const std::uint64_t> source_starts, target_starts;
  std::span<const std::uint32_t> row_starts;  // the first row of each source phrase
  std::span<const std::uint32_t> targets;     // the target phrase of each row
  std::span<const double> scores;             // of each row
  std::span<const std::uint64_t> point_starts;
  std::span<const AlignmentPoint> points;
  std::span<const double> orientations;  // of each row, or none
  std::uint64_t longest_source = 0;
  bool has_deletions = false;         // whether a target phrase is empty
  std::shared_ptr<const void> owner;  // of the memory
};

class PhraseTable {
 public:
  // Nothing about the arrays is believed: their sizes are checked here, what is in them when it is used, so that a
  // large file is not read to be opened. Throws Error(table).
  PhraseTable(std::shared_ptr<const Symbols> words, PhraseArrays arrays, std::size_t score_count);

  const Symbols& words() const { return *words_; }
  const PhraseArrays& arrays() const { return arrays_; }
  std::size_t rows() const { return arrays_.targets.size(); }
  std::size_t sources() const { return arrays_.source_starts.size() - 1; }
  std::size_t targets() const { return arrays_.target_starts.size() - 1; }
  std::size_t score_count() const { return score_count_; }
  std::size_t longest_source() const { return arrays_.longest_source; }
  bool has_deletions() const { return arrays_.has_deletions; }
  bool has_alignments() const { return !arrays_.points.empty(); }
  bool has_reordering() const { return !arrays_.orientations.empty(); }

  // The source phrase of these words, or `none`; and its rows.
  std::uint32_t find(std::span<const std::uint32_t> words) const;
  std::pair<std::uint32_t, std::uint32_t> rows_of(std::uint32_t source) const;
  // The row of a source phrase that has this target phrase, or `none`.
  std::uint32_t find_row(std::uint32_t source, std::span<const std::uint32_t> target) const;
  std::span<const std::uint32_t> target_words(std::uint32_t target) const;
  std::uint32_t target(std::uint32_t row) const { return arrays_.targets[row]; }
  // Throws Error(table) unless everything about a row of a source phrase can be used. The following are for rows of
  // which this is known.
  void check_row(std::uint32_t source, std::uint32_t row) const;
  std::span<const double> scores(std::uint32_t row) const {
    return arrays_.scores.subspan(std::size_t{row} * score_count_, score_count_);
  }
  std::span<const AlignmentPoint> alignment(std::uint32_t row) const {
    return arrays_.points.subspan(arrays_.point_starts[row], arrays_.point_starts[row + 1] - arrays_.point_starts[row]);
  }
  // Logarithms of the probabilities of orientations; 0 for a pair that the table of them does not have.
  std::span<const double, orientations> reordering(std::uint32_t row) const {
    return std::span<const double, orientations>(arrays_.orientations.data() + std::size_t{row} * orientations,
                                                 orientations);
  }

 private:
  std::span<const std::uint32_t> source_words(std::uint32_t source) const;
  bool string_less(std::span<const std::uint32_t> one, std::span<const std::uint32_t> other) const;

  std::shared_ptr<const Symbols> words_;
  PhraseArrays arrays_;
  std::size_t score_count_;
};

// The words of a saved table, which is not trusted: throws Error(table) unless they are words, and different.
std::shared_ptr<const Symbols> saved_words(std::string_view bytes, std::span<const std::uint64_t> starts);

// Lines of fields, block by block. Errors carry the line.
class FieldLines {
 public:
  virtual ~FieldLines() = default;
  void feed(std::string_view block);

 protected:
  void end();  // reads what is left of the last line
  std::uint64_t line() const { return line_; }
  // Source, target, scores; the rest of the line follows.
  static constexpr std::size_t needed_fields = 3;
  virtual void read_fields(std::span<const std::string_view> fields) = 0;
  [[noreturn]] void fail(const std::string& what) const;
  // The probability that a text is; `number` counts scores from 1.
  double probability(std::string_view text, std::size_t number, double largest) const;

 private:
  void read_line(std::string_view line);

  std::string rest_;  // of a line that continues in the next block
  std::uint64_t line_ = 0;
};

class PhraseTableReader : public FieldLines {
 public:
  explicit PhraseTableReader(bool allow_deletion) : allow_deletion_(allow_deletion) {}
  // The table of what was read; the reader is empty then.
  std::shared_ptr<PhraseTable> finish();

 private:
  void read_fields(std::span<const std::string_view> fields) override;
  void read_phrase(std::string_view field, std::size_t number, std::vector<std::uint32_t>& words);
  void read_alignment(std::string_view field);
  std::vector<std::uint32_t> ordered_rows(std::span<const std::uint32_t> source_ranks) const;
  void check_duplicates(std::span<const std::uint32_t> order) const;

  bool allow_deletion_;
  bool has_penalty_ = false;  // the last score is the constant of old tables
  bool has_deletions_ = false;
  std::size_t score_count_ = 0, longest_source_ = 0;
  Symbols words_;
  IdSequences sources_, targets_;
  // Of each line, in the order of the file.
  std::vector<std::uint32_t> source_of_, target_of_;
  std::vector<double> scores_;
  std::vector<std::uint64_t> point_start_{0}, line_of_;
  std::vector<AlignmentPoint> points_;
  std::vector<std::uint32_t> source_, target_;
  std::vector<double> row_scores_;
};

// Gives a table its orientations; pairs that it does not have are passed over.
class ReorderingReader : public FieldLines {
 public:
  explicit ReorderingReader(std::shared_ptr<const PhraseTable> table);
  std::shared_ptr<PhraseTable> finish();
  std::uint64_t unused() const { return unused_; }

 private:
  void read_fields(std::span<const std::string_view> fields) override;

  std::shared_ptr<const PhraseTable> table_;
  std::vector<double> orientation_;
  std::vector<std::uint64_t> line_of_;
  std::vector<std::uint32_t> source_, target_;
  std::uint64_t unused_ = 0;
};

}  // namespace treelm
