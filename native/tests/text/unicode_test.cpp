#include "text/unicode.h"

#include "tests/harness.h"

using namespace treelm;

namespace {

constexpr std::size_t npos = std::string_view::npos;

std::string lower(std::string_view text) {
  std::string out = "old";
  lower_case(text, out);
  return out;
}

}  // namespace

TEST("unicode: valid UTF-8 is accepted") {
  for (const char* text : {"", "a", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    CHECK_EQ(first_invalid_utf8(text), npos);
  CHECK_EQ(first_invalid_utf8(std::string_view("a\0b", 3)), npos);
}

TEST("unicode: malformed UTF-8 is found at its first byte") {
  const char* const malformed[] = {
      "\x80",
      "\xBF",
      "\xFE",
      "\xFF",
      "\xF8\x88\x80\x80\x80",  // bytes that start nothing
      "\xC0\x80",
      "\xC0\xAF",
      "\xC1\xBF",
      "\xE0\x80\x80",
      "\xE0\x9F\xBF",  // overlong
      "\xF0\x80\x80\x80",
      "\xF0\x8F\xBF\xBF",
      "\xED\xA0\x80",
      "\xED\xBF\xBF",  // surrogates
      "\xF4\x90\x80\x80",
      "\xF5\x80\x80\x80",
      "\xF7\xBF\xBF\xBF",  // beyond U+10FFFF
      "\xC3",
      "\xE2",
      "\xE2\x82",
      "\xF0",
      "\xF0\x9F",
      "\xF0\x9F\x98",  // truncated
      "\xC3(",
      "\xE2(\x82",
      "\xE2\x82(",
      "\xF0(\x9F\x98",
      "\xF0\x9F(\x98",
      "\xF0\x9F\x98(",
  };
  // At every distance from the start, since ASCII is skipped eight bytes at a time.
  for (std::size_t before = 0; before < 20; ++before) {
    for (const char* bad : malformed) {
      const std::string alone = std::string(before, 'a') + bad;
      CHECK_EQ(first_invalid_utf8(alone), before);
      CHECK_EQ(first_invalid_utf8(alone + "bcdefghij"), before);
      CHECK_EQ(first_invalid_utf8("\u00E9\u20AC\U0001F600" + alone), before + 9);
    }
  }
}

TEST("unicode: every code point is valid, decodes to itself and nothing else does") {
  for (char32_t point = 0; point < 0x110000; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    std::string text;
    append_utf8(text, point);
    CHECK_EQ(text.size(), point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4);
    CHECK_EQ(first_invalid_utf8(text), npos);
    std::size_t at = 0;
    CHECK(next_code_point(text, at) == point);
    CHECK_EQ(at, text.size());
  }
}

TEST("unicode: stray and truncated bytes decode to U+FFFD one by one") {
  for (const char* bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\x80", "\xC3", "\xC3(", "\xE2\x82", "\xE2\x82(", "\xF0\x9F\x98"}) {
    std::size_t at = 0;
    CHECK(next_code_point(bad, at) == 0xFFFD);
    CHECK_EQ(at, 1);
  }
}

TEST("unicode: letters") {
  for (const char32_t point : std::u32string(U"azAZ\u00AA\u00E9\u00DF\u01C5\u0391\u0416\u05D0\u65E5\U00010400"))
    CHECK(is_letter(point) && is_alphanumeric(point));
  for (const char32_t point : std::u32string(U"@[`{ -'\u00A0\u00D7\u2019\u20AC\uFFFD\U0001F600")) {
    CHECK(!is_letter(point));
    CHECK(!is_alphanumeric(point));
  }
  for (const char32_t point : std::u32string(U"09\u0663\u00B2\u2167")) {
    CHECK(!is_letter(point));
    CHECK(is_alphanumeric(point));
  }
  CHECK(!is_letter(U'/') && !is_letter(U':') && !is_alphanumeric(U'/') && !is_alphanumeric(U':'));
  CHECK(!is_letter(0x10FFFF) && !is_letter(0x110000) && !is_letter(0xFFFFFFFF));
}

TEST("unicode: case of a code point") {
  for (const char32_t point : std::u32string(U"az\u00DF\u00E9\u01C6\u03C2\u0436\U00010428")) {
    CHECK(is_lower_case(point));
    CHECK(!is_upper_or_title_case(point));
  }
  for (const char32_t point : std::u32string(U"AZ\u00C9\u01C4\u01C5\u03A3\u0416\u1E9E\U00010400")) {
    CHECK(is_upper_or_title_case(point));
    CHECK(!is_lower_case(point));
  }
  for (const char32_t point : std::u32string(U"0@[`{\u00D7\u05D0\u65E5"))
    CHECK(!is_lower_case(point) && !is_upper_or_title_case(point));
}

TEST("unicode: lower case") {
  CHECK_EQ(lower(""), "");
  CHECK_EQ(lower("The INDEX, @[`{ 109.85"), "the index, @[`{ 109.85");
  CHECK_EQ(lower("\u00C0\u00C9\u00CE \u0416"), "\u00E0\u00E9\u00EE \u0436");
  CHECK_EQ(lower("\u01C4\u01C5\u01C6"), "\u01C6\u01C6\u01C6");
  CHECK_EQ(lower("\u1E9E"), "\u00DF");
  CHECK_EQ(lower("\u2126\u212A"), "\u03C9k");
  CHECK_EQ(lower("\U00010400"), "\U00010428");
  CHECK_EQ(lower("\uFF21\u13E3"), "\uFF41\uABB3");
  CHECK_EQ(lower("\u65E5\u2019"), "\u65E5\u2019");
}

TEST("unicode: lower case of a dotted capital I is two code points") {
  CHECK_EQ(lower("\u0130stanbul"), "i\u0307stanbul");
  CHECK_EQ(lower("DI\u0130"), "dii\u0307");
}

TEST("unicode: lower case of a final sigma") {
  CHECK_EQ(lower("\u039F\u0394\u03A5\u03A3\u03A3\u0395\u03A5\u03A3"),
           "\u03BF\u03B4\u03C5\u03C3\u03C3\u03B5\u03C5\u03C2");
  CHECK_EQ(lower("\u03A3"), "\u03C3");                            // nothing before it
  CHECK_EQ(lower("1\u03A3"), "1\u03C3");                          // nothing with case before it
  CHECK_EQ(lower("\u03A3\u0391\u03A3."), "\u03C3\u03B1\u03C2.");  // a full stop is skipped
  CHECK_EQ(lower("\u0391\u03A3'\u0391"), "\u03B1\u03C3'\u03B1");  // and so is an apostrophe
  CHECK_EQ(lower("\u0391\u03A3'"), "\u03B1\u03C2'");
  CHECK_EQ(lower("A.\u03A3"), "a.\u03C2");
  CHECK_EQ(lower("A\u03A3 B"), "a\u03C2 b");
}

// All of Latin, Greek and Cyrillic, against a digest of Python's str.lower (FNV-1a of the bytes).
TEST("unicode: lower case agrees with Python") {
  std::uint64_t digest = 0xCBF29CE484222325ull;
  for (char32_t point = 0; point < 0x530; ++point) {
    std::string text;
    append_utf8(text, point);
    for (const char c : lower(text)) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  }
  CHECK_EQ(digest, 0xDB1C99914F560218ull);
}

TEST("unicode: lower case of malformed UTF-8 is harmless") {
  CHECK_EQ(lower("A\xFF"
                 "B"),
           "a\uFFFD"
           "b");
  for (int first = 0; first < 256; ++first)
    for (int second = 0; second < 256; ++second)
      CHECK(!lower(std::string{static_cast<char>(first), static_cast<char>(second)}).empty());
}

TEST("unicode: malformed bytes give U+FFFD one at a time") {
  for (const std::string_view text : {"\xF5\x80\x80\x80", "\xFF\x80\x80\x80", "\xE0\x80\x80", "\xF0\x80\x80\x80",
                                      "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC3", "\x80"}) {
    std::size_t at = 0;
    CHECK(next_code_point(text, at) == 0xFFFD);
    CHECK_EQ(at, 1);
  }
}
