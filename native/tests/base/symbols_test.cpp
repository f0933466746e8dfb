#define TREELM_TEST_MAIN
#include "base/symbols.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "tests/harness.h"

using namespace treelm;

TEST("symbols: ids follow first occurrence") {
  Symbols symbols;
  CHECK_EQ(symbols.size(), 0);
  CHECK_EQ(symbols.find("NP"), none);
  CHECK_EQ(symbols.intern("NP"), 0);
  CHECK_EQ(symbols.intern("VP"), 1);
  CHECK_EQ(symbols.intern("NP"), 0);
  CHECK_EQ(symbols.find("VP"), 1);
  CHECK_EQ(symbols.find("N"), none);
  CHECK_EQ(symbols[1], "VP");
  CHECK_EQ(symbols.size(), 2);
}

TEST("symbols: any bytes can be a symbol") {
  Symbols symbols;
  const std::string zeros(3, '\0');
  CHECK_EQ(symbols.find(""), none);
  CHECK_EQ(symbols.intern(""), 0);
  CHECK_EQ(symbols.intern(zeros), 1);
  CHECK_EQ(symbols.intern(std::string_view(zeros).substr(1)), 2);
  CHECK_EQ(symbols.intern("\xFF\x80"), 3);
  CHECK_EQ(symbols.find(""), 0);
  CHECK_EQ(symbols[0], "");
  CHECK_EQ(symbols[1], zeros);
  CHECK_EQ(symbols[2].size(), 2);
  CHECK_EQ(symbols[3], "\xFF\x80");
}

TEST("symbols: short and long ones differ in one byte or in their size alone") {
  Symbols symbols;
  std::vector<std::string> names;
  for (std::size_t size = 0; size <= 20; ++size) {
    for (const char byte : {'\0', 'a', '\xFF'}) {
      if (size != 0 || byte == 'a') names.emplace_back(size, byte);
      for (std::size_t place = 0; place < size; ++place) {
        names.emplace_back(size, byte);
        names.back()[place] = 'b';
      }
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (std::uint32_t i = 0; i < names.size(); ++i) CHECK_EQ(symbols.find(names[i]), none);
  for (std::uint32_t i = 0; i < names.size(); ++i) CHECK_EQ(symbols.intern(names[i]), i);
  for (std::uint32_t i = 0; i < names.size(); ++i) CHECK_EQ(symbols.find(names[i]), i);
}

TEST("symbols: ids survive growth, clear forgets them") {
  Symbols symbols;
  const auto name = [](std::uint32_t i) { return "word" + std::to_string(i * 7919u); };
  for (int round = 0; round < 2; ++round) {
    constexpr std::uint32_t count = 20000;
    for (std::uint32_t i = 0; i < count; ++i) CHECK_EQ(symbols.intern(name(i)), i);
    for (std::uint32_t i = 0; i < count; ++i) {
      CHECK_EQ(symbols.find(name(i)), i);
      CHECK_EQ(symbols.intern(name(i)), i);
      CHECK_EQ(symbols[i], name(i));
    }
    CHECK_EQ(symbols.size(), count);
    CHECK_EQ(symbols.find("absent"), none);
    symbols.clear();
    CHECK_EQ(symbols.size(), 0);
    CHECK_EQ(symbols.find(name(0)), none);
  }
}

// Computed by a second implementation in Python; longer strings are read in words of the machine.
TEST("symbols: the hash is a fixed function of the bytes") {
  CHECK_EQ(hash_bytes(""), 0);
  CHECK_EQ(hash_bytes(std::string_view("\0", 1)), 0xDF442D24346930AFull);
  CHECK_EQ(hash_bytes("a"), 0x423818B571955F3Full);
  CHECK_EQ(hash_bytes("ab"), 0x099FBC7E7D4D6419ull);
  CHECK_EQ(hash_bytes("abc"), 0x7A79CC17ADCA052Full);
  if constexpr (std::endian::native == std::endian::little) {
    CHECK_EQ(hash_bytes("ROOT"), 0x9831B3EF1A3D0C20ull);
    CHECK_EQ(hash_bytes("1234567"), 0x04C6DE5246326420ull);
    CHECK_EQ(hash_bytes("12345678"), 0x4643F1ABA22862C4ull);
    CHECK_EQ(hash_bytes("123456789"), 0xFBBCFD7C0FEAE388ull);
    CHECK_EQ(hash_bytes("The index fell 109.85 \u2013 Monday"), 0xFB0393E8F4771A8Dull);
  }
}

TEST("symbols: the hash tells similar strings apart") {
  std::vector<std::uint64_t> hashes;
  for (std::size_t length = 0; length < 24; ++length)
    for (std::size_t place = 0; place < length; ++place)
      for (const char c : {'a', 'b', '\0'}) {
        std::string text(length, 'x');
        text[place] = c;
        hashes.push_back(hash_bytes(text));
      }
  std::sort(hashes.begin(), hashes.end());
  CHECK(std::adjacent_find(hashes.begin(), hashes.end()) == hashes.end());
}

TEST("symbols: tables are hashed with a seed of the process, so that collisions cannot be prepared") {
  CHECK(hash_bytes("word", 1) != hash_bytes("word", 2));
  CHECK(hash_bytes("word", hash_seed()) != hash_bytes("word"));
  CHECK_EQ(hash_seed(), hash_seed());
}
