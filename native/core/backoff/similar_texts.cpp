#include "backoff/similar_texts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/interrupt.h"
#include "base/pairwise_sum.h"

namespace treelm {

namespace {

constexpr std::size_t side_by_side = 64;
// Words of so many letters are told by these alone.
constexpr std::size_t told_by = 16;
// Bytes that are looked at together for the bounds of words.
constexpr std::size_t block = 64;

static_assert(std::endian::native == std::endian::little, "the first letter of a word is the lowest byte");

std::uint64_t load(const char* at) {
  std::uint64_t bytes;
  std::memcpy(&bytes, at, sizeof bytes);
  return bytes;
}

// Which bytes of a block are white space or control characters, and which of them are not spaces: a bit for each.
struct Separators {
  std::uint64_t all = 0, controls = 0;
};

#if defined(__SSE2__)
Separators separators(const char* at) {
  Separators found;
  for (unsigned i = 0; i < block; i += sizeof(__m128i)) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i)), space = _mm_set1_epi8(' ');
    const __m128i all = _mm_cmpeq_epi8(_mm_min_epu8(bytes, space), bytes);
    const auto bits = [](__m128i marked) {
      return static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(marked)));
    };
    found.all |= bits(all) << i;
    found.controls |= bits(_mm_andnot_si128(_mm_cmpeq_epi8(bytes, space), all)) << i;
  }
  return found;
}
#else
Separators separators(const char* at) {
  Separators found;
  for (unsigned i = 0; i < block; ++i) {
    const auto byte = static_cast<unsigned char>(at[i]);
    found.all |= std::uint64_t{byte <= ' '} << i;
    found.controls |= std::uint64_t{byte < ' '} << i;
  }
  return found;
}
#endif

// Marks the first bytes of eight, so many.
constexpr std::uint64_t first_bytes(std::size_t size) {
  return size >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * size) - 1;
}

// The same for sixteen, by their number: words of all lengths follow each other, and a branch would be guessed wrong.
struct Marks {
  std::uint64_t letters, more_letters;
};
constexpr auto marks = [] {
  std::array<Marks, told_by + 1> made{};
  for (std::size_t size = 0; size < made.size(); ++size)
    made[size] = {first_bytes(size), first_bytes(size - std::min<std::size_t>(size, 8))};
  return made;
}();

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

std::size_t SimilarTexts::find_bounds(std::size_t size) {
  std::size_t found = 0;
  if (bounds_.size() < size + 2) bounds_.resize(size + 2);
  std::uint64_t before = 1;  // whether there was white space
  for (std::size_t at = 0; at <= size; at += block) {
    auto [spaces, controls] = separators(padded_.data() + at);
    for (; controls != 0; controls &= controls - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(controls));
      if (!is_white_space(padded_[at + i])) spaces &= ~(std::uint64_t{1} << i);
    }
    for (std::uint64_t bounds = spaces ^ (spaces << 1 | before); bounds != 0; bounds &= bounds - 1)
      bounds_[found++] = at + static_cast<std::size_t>(std::countr_zero(bounds));
    before = spaces >> (block - 1);
  }
  return found;
}

inline std::uint32_t SimilarTexts::word_id(const char* begin, std::size_t size, std::uint64_t position) {
  const Marks& own = marks[std::min(size, told_by)];
  const std::uint64_t letters = load(begin) & own.letters, more = load(begin + 8) & own.more_letters;
  const std::uint64_t mixed = (letters ^ std::rotl(more, 29) ^ size) * scatter;
  CachedWord& cached = cached_words_[mixed >> (64 - word_bits)];
  const std::string_view word(begin, size);
  if (cached.letters == letters && cached.more_letters == more && cached.size == size &&
      (size <= told_by || words_.symbol(cached.id) == word))
    return cached.id;
  const std::uint32_t id = words_.find_settled(word, false);
  if (id != none) {
    cached = {letters, more, size, id};
    return id;
  }
  return is_reserved_word(word) ? none : words_.encode(word, position);
}

bool SimilarTexts::read_text(std::string_view text) {
  // Whole blocks are read, and so many letters of every word.
  const std::size_t needed = (text.size() / block + 1) * block + told_by;
  if (padded_.size() < needed) padded_.resize(needed);
  std::copy(text.begin(), text.end(), padded_.begin());
  std::fill(padded_.begin() + static_cast<std::ptrdiff_t>(text.size()),
            padded_.begin() + static_cast<std::ptrdiff_t>(needed), ' ');
  const std::size_t first = ids_.size(), words = find_bounds(text.size()) / 2;
  ids_.resize(first + words + 1);
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint32_t id = word_id(padded_.data() + bounds_[2 * i], bounds_[2 * i + 1] - bounds_[2 * i], i);
    if (id == none || (refuses_unknown_ && id == WordEncoder::unknown)) return false;
    ids_[first + i] = id;
  }
  ids_[first + words] = end_;
  starts_.push_back(ids_.size());
  return true;
}

inline bool SimilarTexts::read_kept(Lane& lane) {
  const CachedStep& kept = place_of(lane.context, *lane.next);
  if (kept.context != lane.context || kept.word != *lane.next) return false;
  ++lane.next;
  lane.context = kept.next;
  *lane.log_probability++ = kept.log_probability;
  return true;
}

void SimilarTexts::read_missed(std::span<Lane* const> missed, bool are_first) {
  const Lane* before = nullptr;
  for (const Lane* const lane : missed) {
    // Texts that are alike lie side by side.
    if (before != nullptr && lane->context == before->context && *lane->next == *before->next) continue;
    table_.fetch_after(lane->context, *lane->next);
    if (!are_first) table_.fetch_word(lane->next[-1], *lane->next);
    before = lane;
  }
  for (Lane* const lane : missed) {
    if (read_kept(*lane)) continue;  // another text had it too
    CachedStep step{lane->context, *lane->next, lane->context, 0};
    step.log_probability = table_.read_word(step.next, step.word);
    place_of(step.context, step.word) = step;
    ++lane->next;
    lane->context = step.next;
    *lane->log_probability++ = step.log_probability;
  }
}

bool SimilarTexts::score_side_by_side(std::span<const std::string_view> texts, double* sums) {
  ids_.clear();
  starts_.assign(1, 0);
  for (const std::string_view text : texts)
    if (!read_text(text)) return false;
  log_probabilities_.resize(ids_.size());
  std::array<Lane, side_by_side> lanes;
  std::array<Lane*, side_by_side> reading, missed;
  std::size_t left = texts.size();
  for (std::size_t i = 0; i < left; ++i) {
    lanes[i] = {&ids_[starts_[i]], ids_.data() + starts_[i + 1], &log_probabilities_[starts_[i]], first_};
    reading[i] = &lanes[i];
  }
  for (bool are_first = true; left != 0; are_first = false) {
    std::size_t missing = 0;
    for (std::size_t i = 0; i < left; ++i) {
      missed[missing] = reading[i];
      missing += !read_kept(*reading[i]);
    }
    read_missed({missed.data(), missing}, are_first);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < left; ++i) {
      reading[kept] = reading[i];
      kept += reading[i]->next != reading[i]->stop;
    }
    left = kept;
  }
  for (std::size_t i = 0; i < texts.size(); ++i)
    sums[i] = piece_sum(&log_probabilities_[starts_[i]], starts_[i + 1] - starts_[i]);
  return true;
}

bool SimilarTexts::score(std::span<const std::string_view> texts, double* sums) {
  for (std::size_t first = 0; first < texts.size(); first += side_by_side) {
    poll_interrupt();
    const std::size_t some = std::min(side_by_side, texts.size() - first);
    if (!score_side_by_side(texts.subspan(first, some), sums + first)) return false;
  }
  return true;
}

}  // namespace treelm
