// Fuzz target: saved phrase tables, over arrays that anybody may have written. Input: options, then each array with its
// length in bytes (two bytes); what is left of the last number is not used.
//
// Arrays are refused, at once or when a row is used, or nothing outside them is read and a sentence is translated. They
// are as long as the input says, so the address sanitizer sees a read beyond them.
#include <cstring>

#include "target.h"
#include "translated.h"

using namespace treelm;

namespace treelm::fuzz {

const char* const target_name = "saved_phrases";

namespace {

enum Option : std::uint8_t { deletion = 1, cubes = 2 };

struct Memory {
  std::vector<char> words;
  std::vector<std::uint64_t> word_starts, source_starts, target_starts, point_starts;
  std::vector<std::uint32_t> source_words, target_words, row_starts, targets;
  std::vector<double> scores, orientations;
  std::vector<AlignmentPoint> points;

  // Every array in the order in which inputs have them.
  template <class Visit>
  void each(const Visit& visit) {
    visit(words);
    visit(word_starts);
    visit(source_words);
    visit(source_starts);
    visit(target_words);
    visit(target_starts);
    visit(row_starts);
    visit(targets);
    visit(scores);
    visit(point_starts);
    visit(points);
    visit(orientations);
  }
};

std::string written(const PhraseTable& table, char options) {
  Memory memory;
  memory.word_starts.push_back(0);
  for (std::uint32_t word = 0; word < table.words().size(); ++word) {
    const std::string_view text = table.words()[word];
    memory.words.insert(memory.words.end(), text.begin(), text.end());
    memory.word_starts.push_back(memory.words.size());
  }
  const PhraseArrays& arrays = table.arrays();
  const auto copy = [](auto& into, auto from) { into.assign(from.begin(), from.end()); };
  copy(memory.source_words, arrays.source_words);
  copy(memory.source_starts, arrays.source_starts);
  copy(memory.target_words, arrays.target_words);
  copy(memory.target_starts, arrays.target_starts);
  copy(memory.row_starts, arrays.row_starts);
  copy(memory.targets, arrays.targets);
  copy(memory.scores, arrays.scores);
  copy(memory.point_starts, arrays.point_starts);
  copy(memory.points, arrays.points);
  copy(memory.orientations, arrays.orientations);
  std::string made{options, static_cast<char>(table.score_count()), static_cast<char>(table.longest_source())};
  memory.each([&](const auto& array) {
    const std::size_t bytes = array.size() * sizeof array[0];
    made += static_cast<char>(bytes & 255);
    made += static_cast<char>(bytes >> 8);
    made.append(reinterpret_cast<const char*>(array.data()), bytes);
  });
  return made;
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> made;
  for (const char options : {'\1', '\3'}) {
    PhraseTableReader reader(true);
    reader.feed(
        "das ||| the ||| 0.8 0.1 ||| 0-0\ndas ||| that ||| 0.2 0.1 ||| 0-0\nhaus ||| house ||| 1 1\n"
        "das haus ||| the house ||| 0.5 0 ||| 0-0 1-1\nhaus neu |||  ||| 1e-9 0.5\n");
    auto table = reader.finish();
    made.push_back(written(*table, options));
    ReorderingReader orientations(std::move(table));
    orientations.feed("das ||| the ||| 0.1 0.2 0.7 0.3 0.3 0.4\n");
    made.push_back(written(*orientations.finish(), options));
  }
  return made;
}

std::vector<std::string> tokens() {
  std::vector<std::string> made;
  for (const double value : {0.0, -0.5, 1.0, 2.0, -101.0, 1e300, double{INFINITY}, double{NAN}})
    made.emplace_back(reinterpret_cast<const char*>(&value), sizeof value);
  for (const std::uint32_t value : {0u, 1u, 2u, 3u, 5u, 255u, 1u << 31, none - 1, none})
    made.emplace_back(reinterpret_cast<const char*>(&value), sizeof value);
  made.insert(made.end(), {"das", "haus", "the", "</s>", " ", "\xC3", std::string(4, '\0'), std::string(8, '\0')});
  return made;
}

}  // namespace treelm::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace treelm::fuzz;
  if (size < 3) return 0;
  const std::uint8_t* at = data + 3;
  const std::uint8_t* const end = data + size;
  const auto memory = std::make_shared<Memory>();
  memory->each([&](auto& array) {
    const auto left = [&] { return static_cast<std::size_t>(end - at); };
    std::size_t bytes = left() < 2 ? 0 : at[0] | std::size_t{at[1]} << 8;
    at += std::min<std::size_t>(2, left());
    bytes = std::min(bytes, left());
    array.resize(bytes / sizeof array[0]);
    if (!array.empty()) std::memcpy(array.data(), at, array.size() * sizeof array[0]);
    at += bytes;
  });
  try {
    const PhraseArrays arrays{.source_words = memory->source_words,
                              .target_words = memory->target_words,
                              .source_starts = memory->source_starts,
                              .target_starts = memory->target_starts,
                              .row_starts = memory->row_starts,
                              .targets = memory->targets,
                              .scores = memory->scores,
                              .point_starts = memory->point_starts,
                              .points = memory->points,
                              .orientations = memory->orientations,
                              .longest_source = data[2],
                              .has_deletions = (data[0] & deletion) != 0,
                              .owner = memory};
    auto words = saved_words({memory->words.data(), memory->words.size()}, memory->word_starts);
    translate(std::make_shared<PhraseTable>(std::move(words), arrays, data[1]), (data[0] & cubes) != 0);
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
