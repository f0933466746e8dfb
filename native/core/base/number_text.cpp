#include "base/number_text.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>

namespace treelm {

void append_number(std::string& text, double value) {
  if (std::isnan(value)) {
    text += "nan";
    return;
  }
  if (std::signbit(value)) text += '-';
  if (std::isinf(value)) {
    text += "inf";
    return;
  }
  // d[.ddd]e[+-]xx: the digits, and the power of ten of the first one.
  char written[40];
  const char* last =
      std::to_chars(written, written + sizeof written, std::abs(value), std::chars_format::scientific).ptr;
  const auto* mark = static_cast<const char*>(std::memchr(written, 'e', static_cast<std::size_t>(last - written)));
  int power = 0;
  std::from_chars(mark + (mark[1] == '+' ? 2 : 1), last, power);
  char digits[40];
  int count = 0;
  for (const char* place = written; place < mark; ++place)
    if (*place != '.') digits[count++] = *place;
  const std::string_view all(digits, static_cast<std::size_t>(count));
  if (power < -4 || power >= 16) {
    text += all[0];
    if (count > 1) (text += '.') += all.substr(1);
    text += power < 0 ? "e-" : "e+";
    const int size = std::abs(power);
    if (size < 10) text += '0';
    text += std::to_string(size);
  } else if (power < 0) {
    text += "0.";
    text.append(static_cast<std::size_t>(-power - 1), '0');
    text += all;
  } else if (count <= power + 1) {
    text += all;
    text.append(static_cast<std::size_t>(power + 1 - count), '0');
    text += ".0";
  } else {
    text += all.substr(0, static_cast<std::size_t>(power) + 1);
    text += '.';
    text += all.substr(static_cast<std::size_t>(power) + 1);
  }
}

std::string numbers_text(std::span<const double> values, char separator) {
  std::string text;
  text.reserve(20 * values.size());
  for (const double value : values) {
    append_number(text, value);
    text += separator;
  }
  return text;
}

}  // namespace treelm
