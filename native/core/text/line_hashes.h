// Hashes of the lines of a text, by which its sentences are known again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace treelm {

// 64 bits for each line of at least so many words, made of the CRC-32 and the length of its words with one space
// between them. ASCII white space is between words, all else in them.
std::vector<std::uint64_t> line_hashes(std::string_view text, std::size_t least_words);

}  // namespace treelm
