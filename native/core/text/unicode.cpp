#include "text/unicode.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace treelm {

namespace {

struct CodeRange {
  char32_t first, last;
};
struct LowerRun {
  char32_t first, last;
  char32_t step;
  std::int32_t offset;
};

#include "text/unicode_tables.inc"

template <std::size_t n>
bool in_ranges(const CodeRange (&ranges)[n], char32_t point) {
  const auto* at = std::upper_bound(std::begin(ranges), std::end(ranges), point,
                                    [](char32_t value, const CodeRange& range) { return value < range.first; });
  return at != std::begin(ranges) && point <= std::prev(at)->last;
}

bool is_ascii_letter(char32_t point) { return (point | 32) - 'a' < 26; }

char32_t simple_lower(char32_t point) {
  const auto* at = std::upper_bound(std::begin(lower_runs), std::end(lower_runs), point,
                                    [](char32_t value, const LowerRun& run) { return value < run.first; });
  if (at == std::begin(lower_runs)) return point;
  const LowerRun& run = *std::prev(at);
  if (point > run.last || (point - run.first) % run.step != 0) return point;
  return static_cast<char32_t>(static_cast<std::int64_t>(point) + run.offset);
}

bool is_cased(char32_t point) { return is_lower_case(point) || is_upper_or_title_case(point); }

// Second half of Final_Sigma of the Unicode standard: no cased letter follows, ignorables skipped.
bool word_ends_at(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const char32_t point = next_code_point(text, at);
    if (!in_ranges(case_ignorable_ranges, point)) return !is_cased(point);
  }
  return true;
}

}  // namespace

std::size_t first_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  while (at < text.size()) {
    while (at + 8 <= text.size()) {
      std::uint64_t piece;
      std::memcpy(&piece, text.data() + at, 8);
      if (piece & 0x8080808080808080ull) break;
      at += 8;
    }
    if (at >= text.size()) break;
    const unsigned char lead = byte(at);
    if (lead < 0x80) {
      at += 1;
    } else if (lead >= 0xC2 && lead <= 0xDF) {
      if (!continues(at + 1)) return at;
      at += 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      if (!continues(at + 1) || !continues(at + 2)) return at;
      if (lead == 0xE0 && byte(at + 1) < 0xA0) return at;  // overlong
      if (lead == 0xED && byte(at + 1) > 0x9F) return at;  // surrogate
      at += 3;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      if (!continues(at + 1) || !continues(at + 2) || !continues(at + 3)) return at;
      if (lead == 0xF0 && byte(at + 1) < 0x90) return at;
      if (lead == 0xF4 && byte(at + 1) > 0x8F) return at;
      at += 4;
    } else {
      return at;
    }
  }
  return std::string_view::npos;
}

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) -> unsigned char {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const unsigned char lead = byte(at);
  const auto tail = [&](std::size_t i) { return static_cast<char32_t>(byte(at + i) & 0x3F); };
  if (lead < 0x80) return static_cast<char32_t>(text[at++]);
  int length = lead > 0xF4 ? 0 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  for (int i = 1; i < length; ++i)
    if ((byte(at + static_cast<std::size_t>(i)) & 0xC0) != 0x80) length = 0;
  // Overlong forms, surrogates, and what lies beyond U+10FFFF show in the second byte.
  const unsigned char second = byte(at + 1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
      (lead == 0xF4 && second > 0x8F))
    length = 0;
  char32_t point = 0xFFFD;
  if (length == 2) point = static_cast<char32_t>(lead & 0x1F) << 6 | tail(1);
  if (length == 3) point = static_cast<char32_t>(lead & 0x0F) << 12 | tail(1) << 6 | tail(2);
  if (length == 4) point = static_cast<char32_t>(lead & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3);
  at += length == 0 ? 1 : static_cast<std::size_t>(length);
  return point;
}

void append_utf8(std::string& out, char32_t point) {
  const auto put = [&](char32_t value) { out.push_back(static_cast<char>(static_cast<unsigned char>(value))); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | point >> 6);
    put(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    put(0xE0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3F));
    put(0x80 | (point & 0x3F));
  } else {
    put(0xF0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3F));
    put(0x80 | (point >> 6 & 0x3F));
    put(0x80 | (point & 0x3F));
  }
}

bool is_letter(char32_t point) { return point < 0x80 ? is_ascii_letter(point) : in_ranges(letters_ranges, point); }
bool is_alphanumeric(char32_t point) {
  return point < 0x80 ? is_ascii_letter(point) || point - '0' < 10 : in_ranges(alphanumerics_ranges, point);
}
bool is_lower_case(char32_t point) { return point < 0x80 ? point - 'a' < 26 : in_ranges(lower_case_ranges, point); }
bool is_upper_or_title_case(char32_t point) {
  return point < 0x80 ? point - 'A' < 26 : in_ranges(upper_or_title_case_ranges, point);
}

void lower_case(std::string_view text, std::string& out) {
  constexpr char32_t capital_sigma = 0x3A3, dotted_capital_i = 0x130;
  out.clear();
  bool after_cased = false;  // first half of Final_Sigma
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    char32_t point = byte;
    if (byte < 0x80) {
      out.push_back(static_cast<char>(point - 'A' < 26 ? point + 32 : point));
      ++at;
    } else {
      point = next_code_point(text, at);
      if (point == capital_sigma) {
        append_utf8(out, after_cased && word_ends_at(text, at) ? 0x3C2 : 0x3C3);
      } else if (point == dotted_capital_i) {
        out.append("i\u0307");
      } else {
        append_utf8(out, simple_lower(point));
      }
    }
    if (!in_ranges(case_ignorable_ranges, point)) after_cased = is_cased(point);
  }
}

}  // namespace treelm
