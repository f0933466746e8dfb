// A parse as the events it is made of: words, tags and moves in the order in which they are drawn.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "slm/shape.h"

namespace treelm {

// Calls visit.word(columns, outcome), visit.tag(columns, outcome) and visit.move(columns, outcome,
// choice) for every event of a sentence and one parse of it; forced moves are not events.
// `actions` holds for every word its tag, its moves, and null; without heads nobody looks at it.
template <typename Visitor>
void replay(const SlmShape& shape, std::span<const std::uint32_t> words, std::span<const std::uint16_t> actions,
            Visitor& visit) {
  struct Head {
    std::uint32_t word, label;
  };
  const auto malformed = [](const char* what) { throw Error(ErrorCode::argument, what); };
  const std::size_t heads = shape.heads, before = shape.order - 1;
  std::vector<Head> stack(std::max<std::size_t>(heads, 1), Head{shape.start(), shape.boundary()});
  const std::size_t bottom = stack.size();
  std::vector<std::uint32_t> history(before, shape.start());
  std::vector<std::uint32_t> columns(std::max<std::size_t>(before + heads, 2 * heads + 1));
  const auto predict = [&](std::uint32_t word) {
    std::copy(history.begin(), history.end(), columns.begin());
    for (std::size_t j = 0; j < heads; ++j) {
      const Head& head = stack[stack.size() - 1 - j];
      columns[before + j] = shape.head_value(head.word, head.label);
    }
    visit.word(std::span<const std::uint32_t>(columns.data(), before + heads), word);
    if (before == 0) return;
    std::copy_backward(history.begin(), history.end() - 1, history.end());
    history.front() = word;
  };
  std::size_t place = 0;
  for (const std::uint32_t word : words) {
    if (word >= shape.words) malformed("a word id is out of range");
    predict(word);
    if (heads == 0) continue;
    if (place == actions.size()) malformed("a parse has fewer words than its sentence");
    const std::uint32_t tag = actions[place++];
    if (tag >= shape.tags) malformed("a tag of a parse is out of range");
    columns[0] = word;
    for (std::size_t j = 0; j < heads; ++j) columns[1 + j] = stack[stack.size() - 1 - j].label;
    visit.tag(std::span<const std::uint32_t>(columns.data(), 1 + heads), tag);
    stack.push_back({word, tag});
    std::uint32_t unaries = 0;
    while (true) {
      if (place == actions.size()) malformed("a parse ends before its null move");
      const std::uint32_t move = actions[place++];
      const std::size_t depth = stack.size() - bottom;
      const MoveChoice choice = move_choice(shape, depth, unaries);
      if (move >= shape.moves() || !is_open(shape, choice, move)) malformed("a parse contains an impossible move");
      if (choice != MoveChoice::null_forced) {
        for (std::size_t j = 0; j < heads; ++j) {
          const Head& head = stack[stack.size() - 1 - j];
          columns[j] = head.label;
          columns[heads + j] = head.word;
        }
        visit.move(std::span<const std::uint32_t>(columns.data(), 2 * heads), move, choice);
      }
      if (move == SlmShape::null_move) break;
      const std::uint32_t label = shape.label_of(move);
      if (shape.is_unary(move)) {
        ++unaries;
        stack.back().label = label;
        continue;
      }
      unaries = 0;
      const Head right = stack.back();
      stack.pop_back();
      stack.back() = {shape.is_left(move) ? stack.back().word : right.word, label};
    }
  }
  if (heads > 0 && place != actions.size()) malformed("a parse has more words than its sentence");
  predict(shape.end());
}

}  // namespace treelm
