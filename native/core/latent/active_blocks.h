// The weights of a latent grammar without what is zero: training leaves a few in a hundred.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "latent/rule_contraction.h"
#include "latent/rules.h"

namespace treelm {

// Blocks of rules without the rows and columns that are zero. Memory is kept from one packing to the next.
class ActiveBlocks {
 public:
  // Both arguments must outlive the use of the blocks.
  void pack(const RuleBlocks& shapes, std::span<const double> weights, ThreadPool& pool);

  const RuleBlocks& shapes() const { return *shapes_; }
  // The weights of a lexical rule, one for each subcategory of its tag.
  const double* lexical(std::size_t rule) const { return all_.data() + shapes_->start(rule); }
  ActiveBlock active(std::size_t rule) const {
    const std::size_t first_row = rows_start_[rule], first_column = columns_start_[rule];
    const std::size_t columns = columns_start_[rule + 1] - first_column;
    return {{rows_.data() + first_row, rows_start_[rule + 1] - first_row},
            {left_.data() + first_column, columns},
            {right_.data() + first_column, columns},
            weights_.data() + weights_start_[rule]};
  }
  // Rows of a rule that expected counts may fall into.
  std::size_t counted_rows(std::size_t rule) const {
    return shapes_->rule(rule).left == no_symbol ? shapes_->rows(rule) : rows_start_[rule + 1] - rows_start_[rule];
  }
  // Sums that one instance of a rule adds to, in one of these rows.
  std::size_t counted_columns(std::size_t rule) const {
    return shapes_->rule(rule).left == no_symbol ? 1 : columns_start_[rule + 1] - columns_start_[rule];
  }

 private:
  // Marks the rows, then the columns of a block that are not zero, and counts them.
  std::pair<std::size_t, std::size_t> look(std::size_t rule, std::vector<char>& used) const;
  void fill(std::size_t rule, std::vector<char>& used);

  const RuleBlocks* shapes_ = nullptr;
  std::span<const double> all_;
  std::vector<std::uint16_t> rows_, left_, right_;
  std::vector<double> weights_;
  std::vector<std::size_t> rows_start_, columns_start_, weights_start_;
};

}  // namespace treelm
