// The little Unicode the kernels need: validation, case, letters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace treelm {

// Index of the first byte that is not valid UTF-8, or npos.
std::size_t first_invalid_utf8(std::string_view text);

// The next code point of valid UTF-8, advancing `at`; malformed bytes give U+FFFD and advance by one.
char32_t next_code_point(std::string_view text, std::size_t& at);
void append_utf8(std::string& out, char32_t point);

bool is_letter(char32_t point);
bool is_alphanumeric(char32_t point);
bool is_lower_case(char32_t point);
bool is_upper_or_title_case(char32_t point);

// Full Unicode lower-casing (final sigma and dotted capital I included), as Python's str.lower.
void lower_case(std::string_view text, std::string& out);

}  // namespace treelm
