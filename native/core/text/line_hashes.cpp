#include "text/line_hashes.h"

#include <array>
#include <cstring>

#include "base/interrupt.h"

namespace treelm {

namespace {

// For eight bytes at a time: what a byte so many places before the end changes.
using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr CrcTables make_crc_tables() {
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB88320u : 0u);
    tables[0][byte] = value;
  }
  for (std::size_t t = 1; t < 8; ++t)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[t][byte] = (tables[t - 1][byte] >> 8) ^ tables[0][tables[t - 1][byte] & 0xFF];
  return tables;
}

constexpr CrcTables crc_tables = make_crc_tables();

std::uint32_t crc(std::uint32_t value, std::string_view text) {
  const auto* at = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t left = text.size();
  for (; left >= 8; left -= 8, at += 8) {
    value ^= at[0] | std::uint32_t{at[1]} << 8 | std::uint32_t{at[2]} << 16 | std::uint32_t{at[3]} << 24;
    value = crc_tables[7][value & 0xFF] ^ crc_tables[6][value >> 8 & 0xFF] ^ crc_tables[5][value >> 16 & 0xFF] ^
            crc_tables[4][value >> 24] ^ crc_tables[3][at[4]] ^ crc_tables[2][at[5]] ^ crc_tables[1][at[6]] ^
            crc_tables[0][at[7]];
  }
  for (; left > 0; --left, ++at) value = (value >> 8) ^ crc_tables[0][(value ^ *at) & 0xFF];
  return value;
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// SplitMix64.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ value >> 27) * 0x94D049BB133111EBull;
  return value ^ value >> 31;
}

struct Line {
  std::size_t words = 0, length = 0;
  std::uint32_t crc = 0xFFFFFFFF;

  void add(std::string_view word) {
    if (words++ != 0) {
      crc = treelm::crc(crc, " ");
      ++length;
    }
    crc = treelm::crc(crc, word);
    length += word.size();
  }
};

// Most lines have one space between words and no other: these are read as they are.
bool is_plain(std::string_view line, std::size_t& spaces) {
  spaces = 0;
  bool other = line.empty() || line.front() == ' ' || line.back() == ' ';
  char before = 'x';
  for (const char c : line) {
    const bool space = c == ' ';
    spaces += space;
    other |= (space && before == ' ') || (c >= '\t' && c <= '\r');
    before = c;
  }
  return !other;
}

}  // namespace

std::vector<std::uint64_t> line_hashes(std::string_view text, std::size_t least_words) {
  std::vector<std::uint64_t> hashes;
  while (!text.empty()) {
    poll_interrupt();
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::size_t spaces = 0;
    Line read;
    if (is_plain(line, spaces)) {
      if (spaces + 1 < least_words) continue;
      read.add(line);
    } else {
      for (std::size_t at = 0; at < line.size();) {
        if (is_space(line[at])) {
          ++at;
          continue;
        }
        std::size_t to = at;
        while (to < line.size() && !is_space(line[to])) ++to;
        read.add(line.substr(at, to - at));
        at = to;
      }
      if (read.words < least_words) continue;
    }
    hashes.push_back(mixed(std::uint64_t{read.crc ^ 0xFFFFFFFF} | std::uint64_t{read.length} << 32));
  }
  return hashes;
}

}  // namespace treelm
