#include "chart/kept_cells.h"

#include "chart/cky.h"
#include "tests/harness.h"

using namespace treelm;

TEST("kept cells: spans of equal words have equal numbers") {
  ChartMemory<double> memory;
  const std::vector<std::uint32_t> first{1, 2, 1, 2}, second{2, 1, 2, 3};
  memory.begin(first, 1 << 20);
  const std::vector<std::uint32_t> of_first(memory.plain().spans.begin(), memory.plain().spans.end());
  CHECK(of_first.size() == cells_of(4));
  CHECK(of_first[cell_of(0, 2)] == of_first[cell_of(2, 4)]);
  CHECK(of_first[cell_of(0, 1)] == of_first[cell_of(2, 3)]);
  CHECK(of_first[cell_of(0, 2)] != of_first[cell_of(1, 3)]);
  CHECK(of_first[cell_of(0, 1)] != of_first[cell_of(0, 2)]);
  memory.begin(second, 1 << 20);
  const auto spans = memory.refined().spans;
  CHECK(spans[cell_of(0, 3)] == of_first[cell_of(1, 4)]);
  CHECK(spans[cell_of(1, 3)] == of_first[cell_of(0, 2)]);
  for (const std::uint32_t number : of_first) CHECK(spans[cell_of(0, 4)] != number);
}

TEST("kept cells: what is kept is found until it takes too much") {
  ChartMemory<double> memory;
  const std::vector<std::uint32_t> words{1, 2};
  memory.begin(words, 1 << 20);
  const auto cells = memory.plain();
  const std::uint32_t span = cells.spans[cell_of(0, 2)];
  CHECK(!cells.kept->find(span));
  auto& made = cells.kept->add(span);
  made.items = 1;
  made.exponent = -7;
  cells.kept->symbols.push_back(5);
  cells.kept->values.push_back(0.5);
  memory.begin(words, 1 << 20);
  const auto* found = memory.plain().kept->find(span);
  CHECK(found && found->items == 1 && found->exponent == -7 && found->values == 0);
  CHECK(!memory.refined().kept->find(span));
  memory.begin(words, 1);
  CHECK(!memory.plain().kept->find(memory.plain().spans[cell_of(0, 2)]));
}

TEST("kept cells: lists share spans, text does not") {
  const std::vector<std::uint32_t> list{1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3, 4, 1, 2, 3, 5};
  const std::vector<std::uint32_t> text{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const std::vector<std::uint64_t> starts{0, 4, 8, 12, 16};
  CHECK(share_spans(list, starts));
  CHECK(!share_spans(text, starts));
  CHECK(!share_spans({}, {}));
  CHECK(!share_spans({}, std::vector<std::uint64_t>{0}));
}
