#include "latent/active_blocks.h"

#include <algorithm>
#include <numeric>

namespace treelm {

namespace {

// Rules in one piece of work.
constexpr std::size_t work_rules = 64;

}  // namespace

void ActiveBlocks::pack(const RuleBlocks& shapes, std::span<const double> weights, ThreadPool& pool) {
  shapes_ = &shapes;
  all_ = weights;
  for (auto* starts : {&rows_start_, &columns_start_, &weights_start_}) starts->assign(shapes.size() + 1, 0);
  // Many rules are one piece of work. First the sizes, then the places, then the numbers.
  const std::size_t pieces = (shapes.size() + work_rules - 1) / work_rules;
  const auto for_each_rule = [&](const auto& body) {
    pool.map(pieces, [&](std::size_t piece, std::size_t) {
      std::vector<char> used;
      for (std::size_t r = piece * work_rules; r < std::min(shapes.size(), (piece + 1) * work_rules); ++r)
        if (shapes.rule(r).left != no_symbol) body(r, used);
    });
  };
  for_each_rule([&](std::size_t r, std::vector<char>& used) {
    const auto [rows, columns] = look(r, used);
    rows_start_[r + 1] = rows;
    columns_start_[r + 1] = columns;
    weights_start_[r + 1] = rows * columns;
  });
  for (auto* starts : {&rows_start_, &columns_start_, &weights_start_})
    std::partial_sum(starts->begin(), starts->end(), starts->begin());
  rows_.resize(rows_start_.back());
  left_.resize(columns_start_.back());
  right_.resize(columns_start_.back());
  weights_.resize(weights_start_.back());
  for_each_rule([&](std::size_t r, std::vector<char>& used) { fill(r, used); });
}

std::pair<std::size_t, std::size_t> ActiveBlocks::look(std::size_t rule, std::vector<char>& used) const {
  const std::size_t rows = shapes_->rows(rule), columns = shapes_->columns(rule);
  const double* weight = all_.data() + shapes_->start(rule);
  used.assign(rows + columns, 0);
  char* column = used.data() + rows;
  for (std::size_t x = 0; x < rows; ++x, weight += columns) {
    char any = 0;
    for (std::size_t j = 0; j < columns; ++j) {
      const char here = weight[j] > 0;
      column[j] = static_cast<char>(column[j] | here);
      any = static_cast<char>(any | here);
    }
    used[x] = any;
  }
  const auto count = [](const char* from, std::size_t size) {
    return static_cast<std::size_t>(std::count(from, from + size, 1));
  };
  return {count(used.data(), rows), count(column, columns)};
}

void ActiveBlocks::fill(std::size_t rule, std::vector<char>& used) {
  look(rule, used);
  const std::size_t rows = shapes_->rows(rule), columns = shapes_->columns(rule), rights = shapes_->right(rule);
  const double* block = all_.data() + shapes_->start(rule);
  std::uint16_t* row = rows_.data() + rows_start_[rule];
  for (std::size_t x = 0; x < rows; ++x)
    if (used[x]) *row++ = static_cast<std::uint16_t>(x);
  std::size_t column = columns_start_[rule];
  double* to = weights_.data() + weights_start_[rule];
  const std::span<const std::uint16_t> kept = active(rule).rows;
  for (std::size_t j = 0; j < columns; ++j) {
    if (!used[rows + j]) continue;
    left_[column] = static_cast<std::uint16_t>(j / rights);
    right_[column++] = static_cast<std::uint16_t>(j % rights);
    for (const std::uint16_t x : kept) *to++ = block[x * columns + j];
  }
}

}  // namespace treelm
