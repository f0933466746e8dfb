#include "translation/extraction.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "base/hashed_places.h"
#include "base/interrupt.h"

namespace treelm {

namespace {

constexpr std::uint32_t no_word = none;  // what an unlinked word is linked to
constexpr std::size_t sentences_per_report = 1024;

std::uint64_t pair_key(std::uint32_t first, std::uint32_t second) { return std::uint64_t{first} << 32 | second; }

std::uint64_t mixed(std::uint64_t key) {
  key *= 0x9E3779B97F4A7C15ull;
  return key ^ (key >> 32);
}

// The links of one sentence pair, by source and by target word.
class SentenceLinks {
 public:
  void set(const AlignedText& text, std::size_t sentence) {
    const auto first = [sentence](std::span<const std::uint64_t> starts) { return starts[sentence]; };
    source =
        text.source.subspan(first(text.source_starts), text.source_starts[sentence + 1] - first(text.source_starts));
    target =
        text.target.subspan(first(text.target_starts), text.target_starts[sentence + 1] - first(text.target_starts));
    of_source.assign(source.size(), {});
    of_target.assign(target.size(), {});
    for (std::uint64_t at = text.link_starts[sentence]; at < text.link_starts[sentence + 1]; ++at) {
      of_source[text.links[2 * at]].push_back(text.links[2 * at + 1]);
      of_target[text.links[2 * at + 1]].push_back(text.links[2 * at]);
    }
    for (auto& each : of_target) std::sort(each.begin(), each.end());
  }
  // Whether two places are linked; the places before both sentences are, and those after both.
  bool linked(std::ptrdiff_t source_place, std::ptrdiff_t target_place) const {
    const auto rows = static_cast<std::ptrdiff_t>(source.size()), columns = static_cast<std::ptrdiff_t>(target.size());
    if (source_place == -1 && target_place == -1) return true;
    if (source_place == rows && target_place == columns) return true;
    if (source_place < 0 || target_place < 0 || source_place >= rows || target_place >= columns) return false;
    const auto& places = of_target[static_cast<std::size_t>(target_place)];
    return std::binary_search(places.begin(), places.end(), static_cast<std::uint32_t>(source_place));
  }

  std::span<const std::uint32_t> source, target;
  std::vector<std::vector<std::uint32_t>> of_source, of_target;
};

// How often words are linked, each with a share of none where it is not.
class WordLinks {
 public:
  void add(const SentenceLinks& links) {
    for (std::size_t t = 0; t < links.target.size(); ++t) {
      for (const std::uint32_t s : links.of_target[t]) add(links.source[s], links.target[t]);
      if (links.of_target[t].empty()) add(no_word, links.target[t]);
    }
    for (std::size_t s = 0; s < links.source.size(); ++s)
      if (links.of_source[s].empty()) add(links.source[s], no_word);
  }
  double target_given_source(std::uint32_t source, std::uint32_t target) const {
    return share(source, target, sources_);
  }
  double source_given_target(std::uint32_t source, std::uint32_t target) const {
    return share(source, target, targets_);
  }

 private:
  using Counts = std::unordered_map<std::uint32_t, std::uint64_t>;
  void add(std::uint32_t source, std::uint32_t target) {
    ++pairs_[pair_key(source, target)];
    ++sources_[source];
    ++targets_[target];
  }
  double share(std::uint32_t source, std::uint32_t target, const Counts& all) const {
    const auto found = pairs_.find(pair_key(source, target));
    if (found == pairs_.end()) return 0;
    const std::uint32_t given = &all == &sources_ ? source : target;
    return static_cast<double>(found->second) / static_cast<double>(all.at(given));
  }
  std::unordered_map<std::uint64_t, std::uint64_t> pairs_;
  Counts sources_, targets_;
};

class Extraction {
 public:
  explicit Extraction(std::size_t longest) : longest_(longest) {}

  void add(const SentenceLinks& links) {
    words_.add(links);
    for (std::size_t first = 0; first < links.target.size(); ++first) {
      poll_interrupt();
      const std::size_t end = std::min(links.target.size(), first + longest_);
      std::size_t low = std::numeric_limits<std::size_t>::max(),
                  high = 0;  // the source words that the target words are linked to
      for (std::size_t last = first; last < end; ++last) {
        for (const std::uint32_t s : links.of_target[last]) {
          low = std::min<std::size_t>(low, s);
          high = std::max<std::size_t>(high, s);
        }
        if (low > high) continue;
        if (high - low >= longest_) break;
        if (!stays_within(links, first, last, low, high)) continue;
        // Words without links may come along on either side.
        for (std::size_t from = low;; --from) {
          for (std::size_t to = high; to < links.source.size() && to - from < longest_; ++to) {
            if (to > high && !links.of_source[to].empty()) break;
            add_pair(links, from, to, first, last);
          }
          if (from == 0 || !links.of_source[from - 1].empty() || high - (from - 1) >= longest_) break;
        }
      }
    }
  }

  PhrasePairs finish() {
    choose_alignments();
    weigh();
    return std::move(found_);
  }

 private:
  static bool stays_within(const SentenceLinks& links, std::size_t first, std::size_t last, std::size_t low,
                           std::size_t high) {
    for (std::size_t s = low; s <= high; ++s)
      for (const std::uint32_t t : links.of_source[s])
        if (t < first || t > last) return false;
    return true;
  }

  void add_pair(const SentenceLinks& links, std::size_t from, std::size_t to, std::size_t first, std::size_t last) {
    const std::uint32_t source = found_.sources.intern(links.source.subspan(from, to - from + 1)),
                        target = found_.targets.intern(links.target.subspan(first, last - first + 1));
    places_.clear();
    for (std::size_t s = from; s <= to; ++s)
      for (const std::uint32_t t : links.of_source[s]) {
        places_.push_back(static_cast<std::uint32_t>(s - from));
        places_.push_back(t - static_cast<std::uint32_t>(first));
      }
    const std::uint32_t pair = place_of(source, target);
    if (++found_.counts[pair] == std::numeric_limits<std::uint32_t>::max()) throw Error(ErrorCode::overflow);
    seen_.push_back(pair_key(pair, found_.alignments.intern(places_)));
    const auto low = static_cast<std::ptrdiff_t>(from) - 1, high = static_cast<std::ptrdiff_t>(to) + 1,
               left = static_cast<std::ptrdiff_t>(first) - 1, right = static_cast<std::ptrdiff_t>(last) + 1;
    auto& oriented = found_.oriented[pair];
    ++oriented[orientation(links.linked(low, left), links.linked(high, left))];
    ++oriented[3 + orientation(links.linked(high, right), links.linked(low, right))];
  }
  static std::size_t orientation(bool monotone, bool swapped) {
    if (monotone == swapped) return 2;
    return monotone ? 0 : 1;
  }

  std::uint32_t place_of(std::uint32_t source, std::uint32_t target) {
    const auto hash_of = [this](std::uint32_t place) {
      return mixed(pair_key(found_.source[place], found_.target[place]));
    };
    const std::uint32_t known = pairs_.find(mixed(pair_key(source, target)), [&](std::uint32_t place) {
      return found_.source[place] == source && found_.target[place] == target;
    });
    if (known != HashedPlaces::none) return known;
    if (found_.size() + 1 == none) throw Error(ErrorCode::too_large);
    const auto place = static_cast<std::uint32_t>(found_.size());
    found_.source.push_back(source);
    found_.target.push_back(target);
    found_.counts.push_back(0);
    found_.oriented.push_back({});
    pairs_.add(place, hash_of);
    return place;
  }

  void choose_alignments() {
    std::sort(seen_.begin(), seen_.end());
    found_.alignment.resize(found_.size());
    std::size_t most = 0;
    for (std::size_t at = 0; at < seen_.size();) {
      std::size_t end = at;
      while (end < seen_.size() && seen_[end] == seen_[at]) ++end;
      const auto pair = static_cast<std::uint32_t>(seen_[at] >> 32);
      const auto alignment = static_cast<std::uint32_t>(seen_[at]);
      const bool first = at == 0 || static_cast<std::uint32_t>(seen_[at - 1] >> 32) != pair;
      if (first || end - at > most || (end - at == most && comes_before(alignment, found_.alignment[pair]))) {
        most = end - at;
        found_.alignment[pair] = alignment;
      }
      at = end;
    }
    std::vector<std::uint64_t>().swap(seen_);
  }

  bool comes_before(std::uint32_t one, std::uint32_t other) const {
    const auto left = found_.alignments[one], right = found_.alignments[other];
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
  }

  void weigh() {
    found_.source_given_target.reserve(found_.size());
    found_.target_given_source.reserve(found_.size());
    for (std::size_t pair = 0; pair < found_.size(); ++pair) {
      poll_interrupt();
      const auto source = found_.sources[found_.source[pair]], target = found_.targets[found_.target[pair]];
      const auto links = found_.alignments[found_.alignment[pair]];
      double of_target = 1, of_source = 1;
      for (std::uint32_t t = 0; t < target.size(); ++t)
        of_target *= mean(links, 1, t, [&](std::uint32_t s) {
          return words_.target_given_source(s == no_word ? no_word : source[s], target[t]);
        });
      for (std::uint32_t s = 0; s < source.size(); ++s)
        of_source *= mean(links, 0, s, [&](std::uint32_t t) {
          return words_.source_given_target(source[s], t == no_word ? no_word : target[t]);
        });
      found_.target_given_source.push_back(of_target);
      found_.source_given_target.push_back(of_source);
    }
  }
  // The mean over the links of a word on `side` (0 source, 1 target), or what no link gives.
  template <class Weight>
  static double mean(std::span<const std::uint32_t> links, std::size_t side, std::uint32_t place, Weight weight) {
    double sum = 0;
    std::size_t number = 0;
    for (std::size_t at = 0; at < links.size(); at += 2)
      if (links[at + side] == place) {
        sum += weight(links[at + 1 - side]);
        ++number;
      }
    return number == 0 ? weight(no_word) : sum / static_cast<double>(number);
  }

  std::size_t longest_;
  PhrasePairs found_;
  HashedPlaces pairs_;
  WordLinks words_;
  std::vector<std::uint64_t> seen_;  // pair and alignment, once per occurrence
  std::vector<std::uint32_t> places_;
};

}  // namespace

PhrasePairs extract_phrases(const AlignedText& text, std::size_t longest, const ProgressCallback& progress) {
  Extraction extraction(longest);
  SentenceLinks links;
  for (std::size_t sentence = 0; sentence < text.sentences(); ++sentence) {
    links.set(text, sentence);
    extraction.add(links);
    if (sentence % sentences_per_report == 0) progress(sentence, text.sentences());
  }
  return extraction.finish();
}

}  // namespace treelm
