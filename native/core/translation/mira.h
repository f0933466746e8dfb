// Passes of batch MIRA over lists of hypotheses (Cherry and Foster 2012).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace treelm {

// What hypotheses are measured by: BLEU, whose statistics are matches and n-grams of each order and both lengths, or
// word errors, the first of their statistics.
enum class TuningMetric { bleu, word_errors };

// What a pass changes.
struct MiraState {
  std::vector<double> weights;
  std::vector<double> background;  // a decaying sum of the statistics of what was chosen
};

struct MiraOptions {
  double most_step = 0;  // of a sentence
  double decay = 1;      // of the background, with each sentence
};

class MiraLists {
 public:
  // List i has the rows from starts[i] to starts[i + 1], at least one. Throws Error(argument) unless all fits together.
  MiraLists(std::vector<double> features, std::vector<std::int64_t> starts, std::span<const std::int64_t> statistics,
            TuningMetric metric);

  std::size_t size() const { return starts_.size() - 1; }
  std::size_t feature_count() const { return feature_count_; }
  std::size_t columns() const { return columns_; }

  // Goes through lists in an order, moving the weights of each feature as readily as `mobility` says; returns the sum
  // of the weights after every list.
  std::vector<double> pass(std::span<const std::int64_t> order, std::span<const double> mobility,
                           const MiraOptions& options, MiraState& state) const;

 private:
  void number_kinds(std::span<const std::int64_t> statistics);

  std::vector<double> features_;
  std::vector<std::int64_t> starts_;
  TuningMetric metric_;
  std::size_t feature_count_ = 0, columns_ = 0;
  // Most hypotheses of a list are exactly as good as others: only different statistics are measured.
  std::vector<double> kinds_;
  std::vector<std::uint32_t> kind_;         // of each hypothesis, within its list
  std::vector<std::size_t> kind_start_{0};  // of each list
};

}  // namespace treelm
