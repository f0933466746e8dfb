// Strongly connected components of a graph, and the inverse that sums over all ways through one.
#pragma once

#include <cstdint>
#include <vector>

namespace treelm {

// Tarjan's components of a graph given by the children of every node: children come before parents, members
// ascend.
std::vector<std::vector<std::uint32_t>> strong_components(const std::vector<std::vector<std::uint32_t>>& children);

// The inverse of I - matrix (n x n, row by row), that is the sum over all powers of the matrix. False unless that sum
// is finite.
bool invert_rest(std::vector<double> matrix, std::size_t n, std::vector<double>& inverse);

}  // namespace treelm
