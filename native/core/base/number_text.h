// Numbers as text: the shortest that reads back as the same number, in the notation of Python's repr.
#pragma once

#include <span>
#include <string>

namespace treelm {

void append_number(std::string& text, double value);

// All numbers, each followed by the separator.
std::string numbers_text(std::span<const double> values, char separator);

}  // namespace treelm
