// Lists of trees of many sentences on their way to Python.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "chart/k_best.h"

namespace treelm::bindings {

struct JoinedLists {
  std::vector<std::uint8_t> limited;
  std::vector<std::uint64_t> list_start{0}, tree_start{0};
  std::vector<double> score;
  std::vector<std::uint32_t> label, size;

  // Takes a list, which is empty then.
  void add(TreeList& list) {
    limited.push_back(list.is_limited);
    for (std::size_t tree = 0; tree < list.trees(); ++tree) tree_start.push_back(label.size() + list.start[tree + 1]);
    score.insert(score.end(), list.score.begin(), list.score.end());
    label.insert(label.end(), list.label.begin(), list.label.end());
    size.insert(size.end(), list.size.begin(), list.size.end());
    list_start.push_back(score.size());
    list = {};
  }
  // Whether each list was cut short, starts of lists; scores and starts of trees; labels and sizes of nodes.
  nb::tuple give_all() {
    return nb::make_tuple(give(std::move(limited)), give(std::move(list_start)), give(std::move(score)),
                          give(std::move(tree_start)), give(std::move(label)), give(std::move(size)));
  }
};

}  // namespace treelm::bindings
