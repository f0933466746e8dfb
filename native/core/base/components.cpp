#include "base/components.h"

#include <algorithm>

#include "base/symbols.h"

namespace treelm {

std::vector<std::vector<std::uint32_t>> strong_components(const std::vector<std::vector<std::uint32_t>>& children) {
  struct Frame {
    std::uint32_t node;
    std::size_t next;
  };
  std::vector<std::vector<std::uint32_t>> components;
  std::vector<std::uint32_t> index(children.size(), none), low(children.size(), none), stack;
  std::vector<char> on_stack(children.size());
  std::vector<Frame> frames;
  std::uint32_t next = 0;
  const auto enter = [&](std::uint32_t node) {
    index[node] = low[node] = next++;
    stack.push_back(node);
    on_stack[node] = 1;
    frames.push_back({node, 0});
  };
  for (std::uint32_t start = 0; start < children.size(); ++start) {
    if (index[start] != none) continue;
    enter(start);
    while (!frames.empty()) {
      const std::uint32_t node = frames.back().node;
      if (frames.back().next < children[node].size()) {
        const std::uint32_t child = children[node][frames.back().next++];
        if (index[child] == none)
          enter(child);
        else if (on_stack[child])
          low[node] = std::min(low[node], index[child]);
        continue;
      }
      frames.pop_back();
      if (!frames.empty()) low[frames.back().node] = std::min(low[frames.back().node], low[node]);
      if (low[node] != index[node]) continue;
      auto& component = components.emplace_back();
      do {
        component.push_back(stack.back());
        on_stack[stack.back()] = 0;
        stack.pop_back();
      } while (component.back() != node);
      std::sort(component.begin(), component.end());
    }
  }
  return components;
}

bool invert_rest(std::vector<double> matrix, std::size_t n, std::vector<double>& inverse) {
  // Pivots are positive if and only if the sum is finite; what is as small as this is rounding.
  constexpr double smallest_pivot = 1e-10;
  inverse.assign(n * n, 0.0);
  for (double& value : matrix) value = -value;
  for (std::size_t i = 0; i < n; ++i) matrix[i * n + i] += 1, inverse[i * n + i] = 1;
  for (std::size_t pivot = 0; pivot < n; ++pivot) {
    const double value = matrix[pivot * n + pivot];
    if (!(value > smallest_pivot)) return false;
    for (std::size_t k = 0; k < n; ++k) matrix[pivot * n + k] /= value, inverse[pivot * n + k] /= value;
    for (std::size_t row = 0; row < n; ++row) {
      const double factor = matrix[row * n + pivot];
      if (row == pivot || factor == 0) continue;
      for (std::size_t k = pivot; k < n; ++k) matrix[row * n + k] -= factor * matrix[pivot * n + k];
      for (std::size_t k = 0; k < n; ++k) inverse[row * n + k] -= factor * inverse[pivot * n + k];
    }
  }
  return true;
}

}  // namespace treelm
