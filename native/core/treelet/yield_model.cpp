#include "treelet/yield_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace treelm {

YieldModel::YieldModel(std::shared_ptr<const BackoffTable> conditional,
                       std::shared_ptr<const BackoffTable> unconditional, std::vector<std::uint32_t> symbol_of,
                       std::uint32_t seen_symbols, bool unknown, std::vector<std::uint8_t> seen_parents, double weight)
    : conditional_(std::move(conditional)),
      unconditional_(std::move(unconditional)),
      symbol_of_(std::move(symbol_of)),
      seen_symbols_(seen_symbols),
      unknown_(unknown),
      seen_parents_(std::move(seen_parents)),
      weight_(weight) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw Error(ErrorCode::table, what);
  };
  require(conditional_->shape().widths.front() == history + 1 && unconditional_->shape().widths.front() == history,
          "the tables of right-hand sides must look at three symbols");
  require(!conditional_->shape().sequence && !unconditional_->shape().sequence,
          "the tables of right-hand sides have the wrong columns");
  require(weight_ >= 0 && weight_ <= 1, "the weight of a mixture must lie in [0, 1]");
  std::vector<bool> found(seen_symbols_, false);
  for (const std::uint32_t symbol : symbol_of_) {
    if (symbol == none) continue;
    require(symbol < seen_symbols_ && !found[symbol], "two labels have the same symbol");
    found[symbol] = true;
  }
  for (const bool has_label : found) require(has_label, "a symbol has no label");
}

double YieldModel::log_product(const BackoffTable& table, const std::uint32_t* parent,
                               std::span<const std::uint32_t> symbols) const {
  std::uint32_t row[2 + history] = {};
  std::uint32_t* before = row + 1;
  if (parent != nullptr) *before++ = *parent;
  for (std::size_t i = 0; i < history; ++i) before[i] = start();
  const auto probability = [&](std::uint32_t symbol) {
    row[0] = symbol;
    return table.probability_from(0, row, table.uniform_base(symbol));
  };
  // There are no empty right-hand sides; a damaged table may give nothing else.
  const double empty = probability(stop());
  if (!(empty < 1)) return -std::numeric_limits<double>::infinity();
  double sum = -std::log1p(-empty);
  for (std::size_t i = 0; i <= symbols.size(); ++i) {
    const std::uint32_t symbol = i < symbols.size() ? symbols[i] : stop();
    sum += std::log(probability(symbol));
    for (std::size_t back = history; back-- > 1;) before[back] = before[back - 1];
    before[0] = symbol;
  }
  return sum;
}

double YieldModel::probability(std::uint32_t parent, std::span<const std::uint32_t> symbols) const {
  for (const std::uint32_t symbol : symbols)
    if (symbol == none) return 0;
  const double free = std::exp(log_product(*unconditional_, nullptr, symbols));
  if (!is_parent(parent)) return free;
  const double bound = std::exp(log_product(*conditional_, &parent, symbols));
  return weight_ * bound + (1 - weight_) * free;
}

double YieldModel::log_probability(std::uint32_t parent, std::span<const std::uint32_t> symbols) const {
  for (const std::uint32_t symbol : symbols)
    if (symbol == none) return -std::numeric_limits<double>::infinity();
  const double free = log_product(*unconditional_, nullptr, symbols);
  if (!is_parent(parent)) return free;
  const double left = std::log(weight_) + log_product(*conditional_, &parent, symbols);
  const double right = std::log1p(-weight_) + free;
  const double largest = std::max(left, right);
  if (std::isinf(largest)) return largest;
  return largest + std::log(std::exp(left - largest) + std::exp(right - largest));
}

YieldSampler::YieldSampler(std::shared_ptr<const YieldModel> model)
    : model_(std::move(model)),
      conditional_(model_->conditional_, {}, model_->usym()),
      unconditional_(model_->unconditional_, {}, model_->usym()),
      label_of_(model_->seen_symbols_, none) {
  for (std::uint32_t label = 0; label < model_->symbol_of_.size(); ++label)
    if (model_->symbol_of_[label] != none) label_of_[model_->symbol_of_[label]] = label;
}

void YieldSampler::draw(std::uint32_t parent, std::uint64_t seed, std::uint64_t stream, std::uint64_t& counter,
                        std::vector<std::uint32_t>& out) const {
  const bool bound = model_->is_parent(parent) && random_uniform(seed, stream, counter << 8) < model_->weight_;
  const ChainSampler& sampler = bound ? conditional_ : unconditional_;
  std::uint32_t context[1 + YieldModel::history];
  std::uint32_t* before = context;
  if (bound) *before++ = parent;
  for (std::size_t i = 0; i < YieldModel::history; ++i) before[i] = model_->start();
  const std::size_t first = out.size();
  for (std::size_t draws = 0;; ++draws) {
    const std::uint32_t symbol = sampler.draw(context, seed, stream, ++counter);
    if (draws > longest) throw Error(ErrorCode::table, "a right-hand side does not end, or does not begin");
    if (symbol >= label_of_.size()) {  // STOP; nothing else lies behind the labels and is drawn
      if (out.size() == first) continue;
      ++counter;
      return;
    }
    out.push_back(label_of_[symbol]);
    for (std::size_t back = YieldModel::history; back-- > 1;) before[back] = before[back - 1];
    before[0] = symbol;
  }
}

}  // namespace treelm
