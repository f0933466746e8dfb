// Fuzz target: phrase tables. Input: options, the table, perhaps a zero byte and a table of orientations. What is
// accepted translates a sentence, by stacks and by cubes, and its features add up to its score.
#include "target.h"
#include "translated.h"

using namespace treelm;

namespace treelm::fuzz {

const char* const target_name = "phrases";

std::vector<std::string> seeds() {
  const std::string tables[] = {
      "das ||| the ||| 0.8 0.1 ||| 0-0 ||| 1 2\ndas ||| that ||| 0.2 0.1 ||| 0-0\nhaus ||| house ||| 1 1\n"
      "das haus ||| the house ||| 0.5 0 ||| 0-0 1-1 ||| |||\n",
      "das ||| the ||| 0.5 2.718\r\nhaus neu |||  ||| 1e-9 2.718\r\n",
  };
  std::vector<std::string> made;
  for (const char options : {'\0', '\1', '\3', '\x14'}) {
    for (const std::string& table : tables) {
      made.push_back(options + table);
      made.push_back(options + table + std::string(1, '\0') + "das ||| the ||| 0.1 0.2 0.7 0.3 0.3 0.4\n");
    }
  }
  return made;
}

std::vector<std::string> tokens() {
  return {" ||| ",
          " |||",
          "|||",
          "\n",
          "\r\n",
          "0.5",
          "1e-400",
          "1e400",
          "nan",
          "-0",
          "2.718",
          "2.7183",
          "inf",
          "0-0",
          "1-0",
          "9-9",
          "das ",
          "haus ",
          "the ",
          "</s>",
          "\xC3\xA9",
          "\xFF",
          "0.1 0.2 0.3 0.4 0.5 0.6"};
}

namespace {

enum Option : std::uint8_t { deletion = 1, cubes = 2, block_shift = 2 };

void feed(FieldLines& reader, std::string_view text, std::size_t block) {
  for (std::size_t at = 0; at < text.size(); at += block) reader.feed(text.substr(at, block));
}

}  // namespace

}  // namespace treelm::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace treelm::fuzz;
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string_view phrases = text.substr(0, text.find('\0'));
  const std::size_t block = std::max<std::size_t>(1, data[0] >> block_shift);
  try {
    PhraseTableReader reader((data[0] & deletion) != 0);
    feed(reader, phrases, block);
    auto table = reader.finish();
    if (phrases.size() < text.size()) {
      ReorderingReader orientations(table);
      feed(orientations, text.substr(phrases.size() + 1), block);
      table = orientations.finish();
    }
    translate(std::move(table), (data[0] & cubes) != 0);
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
