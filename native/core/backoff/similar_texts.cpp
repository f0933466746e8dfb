#include "backoff/similar_texts.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/pairwise_sum.h"

namespace treelm {

namespace {

// Words and steps that are kept; what falls into the same place is replaced.
constexpr unsigned word_bits = 12, step_bits = 13;
constexpr std::size_t asked_at_once = 5;
constexpr std::uint64_t scatter = 0x9E3779B97F4A7C15u;

// Words of so many letters are told by these alone.
constexpr std::uint32_t whole_letters = 7;

// How many letters two texts have in common at their beginnings; perhaps up to seven fewer.
std::size_t common_letters(std::string_view one, std::string_view other) {
  const std::size_t shorter = std::min(one.size(), other.size());
  std::size_t at = 0;
  for (std::uint64_t mine = 0, theirs = 0; at + sizeof mine <= shorter; at += sizeof mine) {
    std::memcpy(&mine, one.data() + at, sizeof mine);
    std::memcpy(&theirs, other.data() + at, sizeof theirs);
    if (mine != theirs) break;
  }
  return at;
}

static_assert(std::endian::native == std::endian::little, "the first letter of a word is the lowest byte");

// Up to eight letters of a text; zeros after its end.
std::uint64_t load_letters(const char* at, const char* stop) {
  std::uint64_t letters = 0;
  if (stop - at >= static_cast<std::ptrdiff_t>(sizeof letters))
    std::memcpy(&letters, at, sizeof letters);
  else
    for (unsigned bits = 0; at != stop; bits += 8) letters |= std::uint64_t{static_cast<unsigned char>(*at++)} << bits;
  return letters;
}

// Which of eight letters may end a word, a bit for each: the lowest one is right, those above it perhaps not.
std::uint64_t ends_among(std::uint64_t letters) {
  return (letters - 0x2121212121212121u) & ~letters & 0x8080808080808080u;
}

}  // namespace

SimilarTexts::SimilarTexts(const BackoffTable& table, const WordEncoder& words, std::uint32_t first, std::uint32_t end,
                           bool refuses_unknown)
    : table_(table),
      words_(words),
      first_(first),
      end_(end),
      refuses_unknown_(refuses_unknown),
      cached_words_(std::size_t{1} << word_bits),
      cached_steps_(std::size_t{1} << step_bits) {}

std::uint32_t SimilarTexts::word_id(std::string_view word, std::uint64_t letters, std::uint64_t position) {
  const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(word.size(), none));
  CachedWord& cached = cached_words_[((letters ^ size) * scatter) >> (64 - word_bits)];
  if (cached.letters == letters && cached.size == size &&
      (size <= whole_letters || std::memcmp(cached.begin, word.data(), size) == 0))
    return cached.id;
  const std::uint32_t id = words_.find_settled(word, false);
  if (id != none) {
    cached = {letters, word.data(), size, id};
    return id;
  }
  return is_reserved_word(word) ? none : words_.encode(word, position);
}

SimilarTexts::CachedStep& SimilarTexts::place_of(std::uint32_t context, std::uint32_t word) {
  const std::uint64_t key = std::uint64_t{context} << 32 | word;
  return cached_steps_[(key * scatter) >> (64 - step_bits)];
}

bool SimilarTexts::is_kept(std::uint32_t context, std::uint32_t word) {
  const CachedStep& cached = place_of(context, word);
  return cached.context == context && cached.word == word;
}

double SimilarTexts::read(std::uint32_t& context, std::uint32_t word) {
  CachedStep& cached = place_of(context, word);
  if (cached.context != context || cached.word != word) {
    std::uint32_t next = context;
    const double log_probability = table_.read_word(next, word);
    cached = {context, word, next, log_probability};
  }
  context = cached.next;
  return cached.log_probability;
}

void SimilarTexts::keep_common(std::string_view text) {
  const std::size_t common = common_letters(text, text_);
  // The white space after a word is common too, so that it ends there in both.
  while (!read_.empty() && read_.back().stop >= common) read_.pop_back();
  text_ = text;
}

const char* SimilarTexts::end_of_word(const char* at, const char* stop, std::uint64_t* letters) {
  // All letters of a short word, and something of those of a long one.
  *letters = 0;
  for (;;) {
    const std::uint64_t some = load_letters(at, stop), ends = ends_among(some);
    if (ends == 0) {
      *letters = std::rotl(*letters, 23) ^ some;
      at += sizeof some;
      continue;
    }
    const auto bits = static_cast<unsigned>(std::countr_zero(ends)) - 7;
    *letters = std::rotl(*letters, 23) ^ (some & ((std::uint64_t{1} << bits) - 1));
    at += bits / 8;
    if (at == stop || is_white_space(*at)) return at;
    *letters = std::rotl(*letters, 23) ^ static_cast<unsigned char>(*at++);  // a control character is part of a word
  }
}

bool SimilarTexts::score(std::string_view text, double* sum) {
  keep_common(text);
  const std::size_t kept = read_.size();
  const char* at = text.data() + (read_.empty() ? 0 : read_.back().stop);
  const char* const stop = text.data() + text.size();
  // All words first, then what they are worth: the words do not wait for each other then.
  for (;;) {
    while (at != stop && is_white_space(*at)) ++at;
    if (at == stop) break;
    std::uint64_t letters = 0;
    const char* const begin = at;
    at = end_of_word(at, stop, &letters);
    const std::uint32_t id = word_id({begin, static_cast<std::size_t>(at - begin)}, letters, read_.size());
    if (id == none || (refuses_unknown_ && id == WordEncoder::unknown)) {
      read_.resize(kept);
      return false;
    }
    read_.push_back({static_cast<std::size_t>(at - text.data()), id, none});
  }
  log_probabilities_.resize(read_.size() + 1);
  std::uint32_t context = kept == 0 ? first_ : read_[kept - 1].context;
  std::size_t asked = kept;
  for (std::size_t i = kept; i < read_.size(); ++i) {
    // After one step that is not kept others follow, until the context has passed: what they need is asked for at once.
    if (!is_kept(context, read_[i].word) && i >= asked) {
      const std::size_t last = std::min(i + asked_at_once, read_.size());
      for (asked = i + 1; asked < last; ++asked) table_.fetch_word(read_[asked - 1].word, read_[asked].word);
    }
    log_probabilities_[i] = read(context, read_[i].word);
    read_[i].context = context;
  }
  log_probabilities_.back() = read(context, end_);
  *sum = piece_sum(log_probabilities_.data(), log_probabilities_.size());
  return true;
}

}  // namespace treelm
