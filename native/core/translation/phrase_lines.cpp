#include "translation/phrase_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "base/interrupt.h"

namespace treelm {

namespace {

// What every orientation is given before anything is counted, as Moses does by default.
constexpr double smoothing = 0.5;

void append_score(std::string& out, double value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 6).ptr;
  out.append(text.data(), end);
}

void append_integer(std::string& out, std::uint64_t value) {
  std::array<char, 20> text;
  out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
}

// Places of words in the order of their bytes, so that phrases compare by numbers.
std::vector<std::uint32_t> ranks_of(const std::vector<std::string>& words) {
  std::vector<std::uint32_t> order(words.size()), ranks(words.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return words[a] < words[b]; });
  for (std::uint32_t place = 0; place < order.size(); ++place) ranks[order[place]] = place;
  return ranks;
}

// Places of phrases in the order of their words' bytes.
std::vector<std::uint32_t> ranks_of(const IdSequences& phrases, const std::vector<std::string>& words) {
  const std::vector<std::uint32_t> of_words = ranks_of(words);
  std::vector<std::uint32_t> order(phrases.size()), ranks(phrases.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    poll_interrupt();
    const auto left = phrases[a], right = phrases[b];
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(),
                                        [&](std::uint32_t x, std::uint32_t y) { return of_words[x] < of_words[y]; });
  });
  for (std::uint32_t place = 0; place < order.size(); ++place) ranks[order[place]] = place;
  return ranks;
}

void append_words(std::string& out, std::span<const std::uint32_t> phrase, const std::vector<std::string>& words) {
  for (const std::uint32_t word : phrase) {
    out += words[word];
    out += ' ';
  }
}

}  // namespace

PhraseLines::PhraseLines(const PhrasePairs& pairs, const std::vector<std::string>& source_words,
                         const std::vector<std::string>& target_words, std::uint32_t min_count)
    : pairs_(pairs),
      source_words_(source_words),
      target_words_(target_words),
      source_counts_(pairs.sources.size()),
      target_counts_(pairs.targets.size()) {
  double all = 0;
  for (std::uint32_t pair = 0; pair < pairs.size(); ++pair) {
    source_counts_[pairs.source[pair]] += pairs.counts[pair];
    target_counts_[pairs.target[pair]] += pairs.counts[pair];
    all += pairs.counts[pair];
    for (std::size_t o = 0; o < orientations; ++o) prior_[o] += pairs.oriented[pair][o];
    if (pairs.counts[pair] >= min_count) order_.push_back(pair);
  }
  for (double& each : prior_) each = (each + smoothing) / (all + 3 * smoothing);
  const std::vector<std::uint32_t> source = ranks_of(pairs.sources, source_words),
                                   target = ranks_of(pairs.targets, target_words);
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (pairs.source[a] != pairs.source[b]) return source[pairs.source[a]] < source[pairs.source[b]];
    return target[pairs.target[a]] < target[pairs.target[b]];
  });
}

void PhraseLines::append_phrases(std::string& out, std::uint32_t pair) const {
  append_words(out, pairs_.sources[pairs_.source[pair]], source_words_);
  out += "||| ";
  append_words(out, pairs_.targets[pairs_.target[pair]], target_words_);
  out += "||| ";
}

std::string PhraseLines::phrase_table(std::size_t first, std::size_t last) const {
  std::string out;
  for (std::size_t at = first; at < last; ++at) {
    const std::uint32_t pair = order_[at];
    const auto both = static_cast<double>(pairs_.counts[pair]);
    const std::uint64_t of_source = source_counts_[pairs_.source[pair]],
                        of_target = target_counts_[pairs_.target[pair]];
    append_phrases(out, pair);
    append_score(out, both / static_cast<double>(of_target));
    out += ' ';
    append_score(out, pairs_.source_given_target[pair]);
    out += ' ';
    append_score(out, both / static_cast<double>(of_source));
    out += ' ';
    append_score(out, pairs_.target_given_source[pair]);
    out += " |||";
    const auto links = pairs_.alignments[pairs_.alignment[pair]];
    for (std::size_t link = 0; link < links.size(); link += 2) {
      out += ' ';
      append_integer(out, links[link]);
      out += '-';
      append_integer(out, links[link + 1]);
    }
    out += " |||";
    for (const std::uint64_t count : {of_target, of_source, std::uint64_t{pairs_.counts[pair]}}) {
      out += ' ';
      append_integer(out, count);
    }
    out += " ||| |||\n";
  }
  return out;
}

std::string PhraseLines::reordering(std::size_t first, std::size_t last) const {
  std::string out;
  for (std::size_t at = first; at < last; ++at) {
    const std::uint32_t pair = order_[at];
    append_phrases(out, pair);
    for (std::size_t o = 0; o < orientations; ++o) {
      if (o != 0) out += ' ';
      append_score(out, (pairs_.oriented[pair][o] + smoothing * prior_[o]) / (pairs_.counts[pair] + smoothing));
    }
    out += '\n';
  }
  return out;
}

}  // namespace treelm
