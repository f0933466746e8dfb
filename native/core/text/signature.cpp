#include "text/signature.h"

#include "text/unicode.h"

namespace treelm {

namespace {

struct Shape {
  std::size_t length = 0, capitals = 0;
  bool first_upper = false, first_letter = false, lower = false, digit = false, dash = false;
  std::size_t last_begin = 0;
};

Shape shape_of(std::string_view word) {
  Shape shape;
  for (std::size_t at = 0; at < word.size();) {
    shape.last_begin = at;
    const char32_t point = next_code_point(word, at);
    if (shape.length++ == 0) {
      shape.first_upper = is_upper_or_title_case(point);
      shape.first_letter = is_letter(point);
    }
    shape.digit |= point - '0' < 10;
    shape.dash |= point == '-';
    if (is_letter(point)) {
      const bool lower = is_lower_case(point);
      shape.lower |= lower;
      shape.capitals += lower ? 0 : 1;
    }
  }
  return shape;
}

std::string_view case_part(const Shape& shape, bool first_in_sentence, bool known_lower, bool lower_case_mark) {
  if (shape.first_upper) {
    if (!first_in_sentence || shape.capitals != 1) return "-CAPS";
    return known_lower ? "-INITC-KNOWNLC" : "-INITC";
  }
  if (!shape.first_letter && shape.capitals > 0) return "-CAPS";
  return shape.lower && lower_case_mark ? "-LC" : "";
}

// Whether the last character of `text` is one of `characters`.
bool ends_in_one_of(std::string_view text, std::string_view characters) {
  for (std::size_t at = 0; at < characters.size();) {
    const std::size_t begin = at;
    next_code_point(characters, at);
    if (text.ends_with(characters.substr(begin, at - begin))) return true;
  }
  return false;
}

// The ending that the signature names, or nothing.
std::string_view ending_of(const SignatureRules& rules, const Shape& shape, std::string_view word) {
  if (rules.last_character) return word.substr(shape.last_begin);
  std::string lower;
  lower_case(word, lower);
  if (!rules.plural.empty() && lower.ends_with(rules.plural) && shape.length >= 3) {
    const std::string_view stem = std::string_view(lower).substr(0, lower.size() - rules.plural.size());
    const bool blocked = !stem.empty() && ends_in_one_of(stem, rules.plural_blocked);
    return blocked ? std::string_view() : rules.plural;
  }
  if (shape.length < 5 || shape.dash || (shape.digit && shape.capitals > 0)) return "";
  for (const std::string& suffix : rules.suffixes)
    if (lower.ends_with(suffix)) return suffix;
  return "";
}

}  // namespace

std::string signature(const SignatureRules& rules, std::string_view word, std::uint64_t position, bool known_lower) {
  if (word.empty()) return "<unk>";
  const Shape shape = shape_of(word);
  std::string text = "UNK";
  text += case_part(shape, position == 0, known_lower, rules.lower_case_mark);
  if (shape.digit) text += "-NUM";
  if (shape.dash) text += "-DASH";
  const std::string_view ending = ending_of(rules, shape, word);
  if (!ending.empty()) {
    text += '-';
    text += ending;
  }
  return text == "UNK" ? "<unk>" : text;
}

}  // namespace treelm
