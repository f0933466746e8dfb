// A phrase table in memory: phrases as spans of word ids, the logarithms of their scores, alignments and, if there is a
// table of them, orientations. Read from the text form of Moses, never changed afterwards.
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

// Rows are pairs of phrases; those of one source phrase lie side by side, in the order of the target strings.
class PhraseTable {
 public:
  const Symbols& words() const { return words_; }
  std::size_t rows() const { return target_.size(); }
  std::size_t sources() const { return sources_.size(); }
  std::size_t targets() const { return targets_.size(); }
  std::size_t score_count() const { return score_count_; }
  std::size_t longest_source() const { return longest_source_; }
  bool has_alignments() const { return !points_.empty(); }
  bool has_reordering() const { return !orientation_.empty(); }

  // The source phrase of these words, or `none`; and its rows.
  std::uint32_t find(std::span<const std::uint32_t> words) const { return sources_.find(words); }
  std::pair<std::uint32_t, std::uint32_t> rows_of(std::uint32_t source) const {
    return {row_start_[source], row_start_[source + 1]};
  }
  std::uint32_t target(std::uint32_t row) const { return target_[row]; }
  std::span<const std::uint32_t> target_words(std::uint32_t target) const { return targets_[target]; }
  std::span<const double> scores(std::uint32_t row) const {
    return {scores_.data() + std::size_t{row} * score_count_, score_count_};
  }
  std::span<const AlignmentPoint> alignment(std::uint32_t row) const {
    return {points_.data() + point_start_[row], points_.data() + point_start_[row + 1]};
  }
  // Logarithms of the probabilities of orientations; 0 for a pair that the table of them does not have.
  std::span<const double, orientations> reordering(std::uint32_t row) const {
    return std::span<const double, orientations>(orientation_.data() + std::size_t{row} * orientations, orientations);
  }

 private:
  friend class PhraseTableReader;
  friend class ReorderingReader;

  Symbols words_;
  IdSequences sources_, targets_;
  std::size_t score_count_ = 0, longest_source_ = 0;
  std::vector<std::uint32_t> row_start_, target_;
  std::vector<double> scores_, orientation_;
  std::vector<std::uint64_t> point_start_;
  std::vector<AlignmentPoint> points_;
};

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
  explicit PhraseTableReader(bool allow_deletion);
  // The table of what was read; the reader is empty then.
  std::shared_ptr<PhraseTable> finish();

 private:
  void read_fields(std::span<const std::string_view> fields) override;
  void read_phrase(std::string_view field, std::size_t number, std::vector<std::uint32_t>& words);
  void read_alignment(std::string_view field);
  void check_duplicates(std::span<const std::uint32_t> order) const;

  bool allow_deletion_;
  bool has_penalty_ = false;  // the last score is the constant of old tables
  std::shared_ptr<PhraseTable> table_;
  std::vector<std::uint32_t> source_of_, source_, target_;
  std::vector<double> row_scores_;
  std::vector<std::uint64_t> line_of_;
};

// Gives a table its orientations; pairs that it does not have are passed over.
class ReorderingReader : public FieldLines {
 public:
  explicit ReorderingReader(const PhraseTable& table);
  std::shared_ptr<PhraseTable> finish();
  std::uint64_t unused() const { return unused_; }

 private:
  void read_fields(std::span<const std::string_view> fields) override;

  std::shared_ptr<PhraseTable> table_;
  std::vector<std::uint64_t> line_of_;
  std::vector<std::uint32_t> source_, target_;
  std::uint64_t unused_ = 0;
};

}  // namespace treelm
