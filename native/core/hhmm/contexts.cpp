#include "hhmm/contexts.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace treelm {

namespace {

[[noreturn]] void wrong(const char* what) { throw Error(ErrorCode::table, what); }

}  // namespace

HhmmContexts::HhmmContexts(std::shared_ptr<const BackoffTable> words, std::shared_ptr<const BackoffTable> tags,
                           std::vector<double> tag_shares, double power)
    : words_(std::move(words)), tags_(std::move(tags)), inverse_shares_(std::move(tag_shares)), power_(power) {
  if (!words_ && !tags_) wrong("an HHMM with words before needs a table of words or of tags");
  for (const auto& table : {words_, tags_})
    if (table && table->shape().sequence) wrong("a table of an HHMM is one of word sequences");
  if (words_) word_columns_ = words_->shape().widths.front();
  if (tags_) tag_columns_ = tags_->shape().widths.front();
  if ((words_ && (word_columns_ < 2 || word_columns_ > longest_hhmm_context + 1)) ||
      (tags_ && (tag_columns_ < 1 || tag_columns_ > longest_hhmm_context)))
    wrong("a table of an HHMM remembers too few or too many words");
  length_ = std::max(words_ ? word_columns_ - 1 : 0, tag_columns_);
  if (!(power >= 0 && power <= 1)) wrong("the power of tags is not between 0 and 1");
  for (double& share : inverse_shares_) {
    if (!(share >= 0 && share <= 1)) wrong("the share of a tag is not a probability");
    share = share > 0 ? 1 / share : 0;
  }
}

void HhmmContexts::check(std::size_t words, std::size_t tags) const {
  if (words_ && words_->shape().outcomes != words) wrong("the table of words is that of another vocabulary");
  if (!tags_) return;
  if (tags_->shape().outcomes != tags || tags_->shape().base_size != tags || inverse_shares_.size() != tags)
    wrong("the table of tags is that of other tags");
}

double HhmmContexts::word_probability(std::uint32_t word, std::uint32_t tag, std::span<const std::uint32_t> before,
                                      double by_tag) const {
  if (!words_) return by_tag;
  std::array<std::uint32_t, longest_hhmm_context + 2> row{word, tag};
  std::copy_n(before.begin(), word_columns_ - 1, row.begin() + 2);
  return std::min(1.0, words_->probability_from(0, row.data(), by_tag));
}

void HhmmContexts::tag_factors(std::span<const std::uint32_t> before, std::vector<double>& out) const {
  out.resize(inverse_shares_.size());
  tags_->distribution(before.data(), out);
  for (std::size_t tag = 0; tag < out.size(); ++tag)
    out[tag] = std::pow(std::min(1.0, out[tag]) * inverse_shares_[tag], power_);
}

}  // namespace treelm
