#include "hhmm/grammar.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/random.h"

namespace treelm {

namespace {

[[noreturn]] void wrong(const std::string& what) { throw Error(ErrorCode::table, what); }

bool is_probability(double value) { return value >= 0 && value <= 1 + 1e-9; }

// Starts of pieces, from 0 to `total`, never falling.
std::vector<std::size_t> checked_starts(std::span<const std::int64_t> starts, std::size_t total, const char* what) {
  if (starts.empty() || starts.front() != 0 || starts.back() != static_cast<std::int64_t>(total))
    wrong(std::string(what) + " do not begin and end where they should");
  std::vector<std::size_t> found(starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] < 0 || (i > 0 && starts[i] < starts[i - 1])) wrong(std::string(what) + " are out of order");
    found[i] = static_cast<std::size_t>(starts[i]);
  }
  return found;
}

}  // namespace

HhmmGrammar::HhmmGrammar(const HhmmArrays& arrays)
    : symbols_(arrays.symbols),
      phrasal_(arrays.phrasal),
      end_(arrays.end),
      depth_(arrays.depth),
      end_share_(arrays.end_share),
      contexts_(arrays.contexts) {
  if (depth_ < 1 || depth_ > largest_stack_depth) wrong("the depth of the stack is out of range");
  if (phrasal_ < 1 || phrasal_ >= symbols_ || symbols_ > (1u << 30) || end_ < phrasal_ || end_ >= symbols_)
    wrong("the numbers of symbols do not fit together");
  if (!(end_share_ >= 0 && end_share_ <= 1)) wrong("the share of sentence ends is not a probability");
  copy_rows(arrays);
  copy_words(arrays);
  index_rules(arrays);
  if (contexts_) contexts_->check(words(), symbols_ - phrasal_);
}

void HhmmGrammar::copy_rows(const HhmmArrays& arrays) {
  if (arrays.row_of.size() != std::size_t{symbols_} * (depth_ + 2)) wrong("rows of progeny are missing");
  if (arrays.row_symbol.size() != arrays.row_value.size()) wrong("the rows of progeny lack values");
  row_start_ = checked_starts(arrays.row_start, arrays.row_symbol.size(), "rows of progeny");
  const auto rows = static_cast<std::int64_t>(row_start_.size()) - 1;
  row_of_.assign(arrays.row_of.begin(), arrays.row_of.end());
  for (const std::int32_t row : row_of_)
    if (row < -1 || row >= rows) wrong("a row of progeny is out of range");
  row_symbol_.reserve(arrays.row_symbol.size());
  for (std::size_t row = 0; row + 1 < row_start_.size(); ++row)
    for (std::size_t i = row_start_[row]; i < row_start_[row + 1]; ++i) {
      const std::int32_t symbol = arrays.row_symbol[i];
      if (symbol < 0 || static_cast<std::uint32_t>(symbol) >= symbols_)
        wrong("a symbol of a row of progeny is out of range");
      if (i > row_start_[row] && symbol <= arrays.row_symbol[i - 1])
        wrong("the symbols of a row of progeny are out of order");
      if (!(arrays.row_value[i] >= 0) || !std::isfinite(arrays.row_value[i]))
        wrong("a value of a row of progeny is negative, NaN or infinite");
      row_symbol_.push_back(static_cast<std::uint32_t>(symbol));
    }
  row_value_.assign(arrays.row_value.begin(), arrays.row_value.end());
  column_start_.assign(symbols_ - phrasal_ + 1, 0);
  for (const std::uint32_t symbol : row_symbol_)
    if (is_tag(symbol)) ++column_start_[symbol - phrasal_ + 1];
  std::partial_sum(column_start_.begin(), column_start_.end(), column_start_.begin());
  column_row_.resize(column_start_.back());
  column_value_.resize(column_start_.back());
  std::vector<std::size_t> next(column_start_.begin(), column_start_.end() - 1);
  for (std::size_t row = 0; row + 1 < row_start_.size(); ++row)
    for (std::size_t i = row_start_[row]; i < row_start_[row + 1]; ++i)
      if (is_tag(row_symbol_[i])) {
        const std::size_t place = next[row_symbol_[i] - phrasal_]++;
        column_row_[place] = static_cast<std::uint32_t>(row);
        column_value_[place] = row_value_[i];
      }
}

void HhmmGrammar::copy_words(const HhmmArrays& arrays) {
  if (arrays.word_tag.size() != arrays.word_value.size()) wrong("the words lack probabilities");
  word_start_ = checked_starts(arrays.word_start, arrays.word_tag.size(), "words");
  if (arrays.unigram.size() + 1 != word_start_.size()) wrong("the words lack frequencies");
  emissions_.reserve(arrays.word_tag.size());
  for (std::size_t word = 0; word + 1 < word_start_.size(); ++word)
    for (std::size_t i = word_start_[word]; i < word_start_[word + 1]; ++i) {
      const std::int32_t tag = arrays.word_tag[i];
      if (tag < static_cast<std::int32_t>(phrasal_) || tag >= static_cast<std::int32_t>(symbols_) ||
          static_cast<std::uint32_t>(tag) == end_)
        wrong("a tag of a word is out of range");
      if (i > word_start_[word] && tag <= arrays.word_tag[i - 1]) wrong("the tags of a word are out of order");
      if (!is_probability(arrays.word_value[i])) wrong("an emission probability of a word is not a probability");
      emissions_.push_back({static_cast<std::uint32_t>(tag), arrays.word_value[i]});
    }
  unigram_.assign(arrays.unigram.begin(), arrays.unigram.end());
  for (const double value : unigram_)
    if (!is_probability(value)) wrong("the frequency of a word is not a probability");
}

void HhmmGrammar::index_rules(const HhmmArrays& arrays) {
  if (arrays.rules.size() % 3 != 0) wrong("rules are incomplete");
  const std::size_t count = arrays.rules.size() / 3;
  const std::size_t levels = depth_ + 1;
  if (arrays.left.size() != count * levels || arrays.right.size() != count * levels)
    wrong("the rules lack probabilities");
  for (const std::span<const double> values : {arrays.left, arrays.right})
    for (const double value : values)
      if (!is_probability(value)) wrong("the probability of a rule is not a probability");
  std::vector<std::array<std::uint32_t, 3>> rules(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t part = 0; part < 3; ++part) {
      const std::int32_t symbol = arrays.rules[3 * i + part];
      if (symbol < 0 || static_cast<std::uint32_t>(symbol) >= symbols_) wrong("a symbol of a rule is out of range");
      rules[i][part] = static_cast<std::uint32_t>(symbol);
    }
    const auto [parent, left, right] = rules[i];
    if (parent >= phrasal_) wrong("a tag is the left-hand side of a rule");
    if (left == 0 || right == 0 || left == end_ || (right == end_) != (parent == 0))
      wrong("the top or the end of the sentence is in an impossible place");
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rules[a] < rules[b]; });
  for (std::size_t i = 1; i < count; ++i)
    if (rules[order[i]] == rules[order[i - 1]]) wrong("a rule occurs twice");
  cross_start_.assign(symbols_ + 1, 0);
  cross_value_.resize(count * levels);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& rule = rules[order[i]];
    ++cross_start_[rule[0] + 1];
    cross_left_.push_back(rule[1]);
    cross_right_.push_back(rule[2]);
    for (std::size_t level = 0; level < levels; ++level)
      cross_value_[level * count + i] = arrays.right[level * count + order[i]];
  }
  std::partial_sum(cross_start_.begin(), cross_start_.end(), cross_start_.begin());

  // Without the rules of the top: these end the sentence.
  std::erase_if(order, [&](std::size_t i) { return rules[i][0] == 0; });
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rules[a][1] < rules[b][1]; });
  left_start_.assign(symbols_ + 1, 0);
  left_value_.resize(order.size() * levels);
  left_row_.resize(order.size() * levels);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto [parent, left, right] = rules[order[i]];
    const auto place = static_cast<std::uint32_t>(i);
    if (i == 0 || rules[order[i - 1]][1] != left || left_parents_.back().symbol != parent) {
      ++left_start_[left + 1];
      left_parents_.push_back({parent, place, place});
    }
    if (!is_tag(right)) left_parents_.back().tags = place + 1;
    left_right_.push_back(right);
    for (std::uint32_t level = 0; level < levels; ++level) {
      left_value_[level * order.size() + i] = arrays.left[level * count + order[i]];
      left_row_[level * order.size() + i] = is_tag(right) ? -1 : row(level + 1, right);
    }
  }
  left_parents_.push_back({no_symbol, static_cast<std::uint32_t>(order.size()), 0});
  std::partial_sum(left_start_.begin(), left_start_.end(), left_start_.begin());
}

double HhmmGrammar::progeny(std::int32_t row, std::uint32_t symbol) const {
  if (row < 0) return 0;
  const auto [symbols, values] = row_view(row);
  const auto found = std::lower_bound(symbols.begin(), symbols.end(), symbol);
  if (found == symbols.end() || *found != symbol) return 0;
  return values[static_cast<std::size_t>(found - symbols.begin())];
}

std::size_t HhmmGrammar::find_right(RuleRange rules, std::uint32_t right) const {
  const auto first = cross_right_.begin() + static_cast<std::ptrdiff_t>(rules.first);
  const auto last = cross_right_.begin() + static_cast<std::ptrdiff_t>(rules.last);
  const auto found = std::lower_bound(first, last, right);
  return found == last || *found != right ? no_rule : static_cast<std::size_t>(found - cross_right_.begin());
}

HhmmGrammar::RuleRange HhmmGrammar::by_parent(std::uint32_t parent, std::uint32_t left) const {
  const auto first = cross_left_.begin() + static_cast<std::ptrdiff_t>(cross_start_[parent]);
  const auto last = cross_left_.begin() + static_cast<std::ptrdiff_t>(cross_start_[parent + 1]);
  const auto [low, high] = std::equal_range(first, last, left);
  return {static_cast<std::size_t>(low - cross_left_.begin()), static_cast<std::size_t>(high - cross_left_.begin())};
}

}  // namespace treelm
