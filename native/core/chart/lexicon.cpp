#include "chart/lexicon.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace treelm {

ChartLexicon::ChartLexicon(const LexiconArrays& arrays) : phrasal_(arrays.phrasal) {
  const auto need = [](bool fits, const char* what) {
    if (!fits) throw Error(ErrorCode::argument, std::string("a lexicon ") + what);
  };
  const std::size_t symbols = arrays.substates.size();
  need(phrasal_ <= symbols, "has more phrases than symbols");
  for (const std::int32_t count : arrays.substates) {
    need(count >= 1 && count <= 4096, "has a tag without subcategories");
    count_.push_back(static_cast<std::uint32_t>(count));
  }
  open_first_.push_back(0);
  for (std::size_t tag = phrasal_; tag < symbols; ++tag) open_first_.push_back(open_first_.back() + count_[tag]);
  need(arrays.open_scores.size() == open_first_.back(), "lacks an open score for a subcategory, or has too many");
  need(arrays.entry_starts.size() == arrays.openness.size() + 1, "lacks a list of entries for a word, or has too many");
  need(arrays.openness.size() < (std::size_t{1} << 31), "has too many words");
  std::int64_t before = 0;
  for (const std::int64_t start : arrays.entry_starts) {
    need(start >= before && start <= static_cast<std::int64_t>(arrays.entry_symbols.size()),
         "has lists of entries that do not follow each other");
    before = start;
    entry_first_.push_back(static_cast<std::uint64_t>(start));
  }
  need(entry_first_.front() == 0 && entry_first_.back() == arrays.entry_symbols.size(),
       "has entries that belong to no word");
  score_first_.push_back(0);
  for (const std::int32_t tag : arrays.entry_symbols) {
    need(tag >= static_cast<std::int32_t>(phrasal_) && static_cast<std::size_t>(tag) < symbols,
         "has an entry that is not a tag");
    entry_tag_.push_back(static_cast<std::uint32_t>(tag));
    score_first_.push_back(score_first_.back() + count_[static_cast<std::size_t>(tag)]);
  }
  for (std::size_t word = 0; word < arrays.openness.size(); ++word)
    for (std::uint64_t entry = entry_first_[word] + 1; entry < entry_first_[word + 1]; ++entry)
      need(entry_tag_[entry - 1] < entry_tag_[entry], "has tags of a word that are not in ascending order");
  need(arrays.entry_scores.size() == score_first_.back(), "does not have the number of scores that its entries need");
  for (const auto values : {arrays.entry_scores, arrays.openness, arrays.open_scores})
    for (const double value : values)
      need(value >= 0 && std::isfinite(value), "has a score that is negative, NaN or infinite");
  scores_.assign(arrays.entry_scores.begin(), arrays.entry_scores.end());
  openness_.assign(arrays.openness.begin(), arrays.openness.end());
  open_.assign(arrays.open_scores.begin(), arrays.open_scores.end());
  for (std::uint32_t tag = phrasal_; tag < symbols; ++tag) {
    const auto first = open_.begin() + static_cast<std::ptrdiff_t>(open_first_[tag - phrasal_]);
    if (std::any_of(first, first + count_[tag], [](double score) { return score > 0; })) open_tags_.push_back(tag);
  }
}

void ChartLexicon::look_up(std::uint32_t word, TagScores& out) const {
  out.tag.clear();
  out.score.clear();
  out.start.assign(1, 0);
  const auto add = [&](std::uint32_t tag, const double* scores, double factor) {
    bool any = false;
    for (std::uint32_t x = 0; x < count_[tag]; ++x) any = any || scores[x] * factor > 0;
    if (!any) return;
    out.tag.push_back(tag);
    for (std::uint32_t x = 0; x < count_[tag]; ++x) out.score.push_back(scores[x] * factor);
    out.start.push_back(static_cast<std::uint32_t>(out.score.size()));
  };
  std::uint64_t entry = entry_first_[word];
  const std::uint64_t last = entry_first_[word + 1];
  const double openness = openness_[word];
  if (openness > 0) {
    for (const std::uint32_t tag : open_tags_) {
      for (; entry < last && entry_tag_[entry] < tag; ++entry)
        add(entry_tag_[entry], scores_.data() + score_first_[entry], 1.0);
      if (entry < last && entry_tag_[entry] == tag) continue;
      add(tag, open_.data() + open_first_[tag - phrasal_], openness);
    }
  }
  for (; entry < last; ++entry) add(entry_tag_[entry], scores_.data() + score_first_[entry], 1.0);
}

}  // namespace treelm
