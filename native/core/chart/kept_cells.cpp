#include "chart/kept_cells.h"

#include <algorithm>

#include "chart/cells.h"

namespace treelm {

namespace {

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 31)) * 0x9E3779B97F4A7C15u;
  return value ^ (value >> 29);
}

std::uint64_t hash_of(std::uint32_t before, std::uint32_t last_word) {
  return mixed(std::uint64_t{before} << 32 | last_word);
}

}  // namespace

std::uint32_t SpanNumbers::number(std::uint32_t before, std::uint32_t last_word) {
  const std::uint32_t found = places_.find(hash_of(before, last_word), [&](std::uint32_t place) {
    return spans_[place].before == before && spans_[place].last_word == last_word;
  });
  if (found != none) return found;
  const auto made = static_cast<std::uint32_t>(spans_.size());
  spans_.push_back({before, last_word});
  places_.add(made, [&](std::uint32_t place) { return hash_of(spans_[place].before, spans_[place].last_word); });
  return made;
}

void SpanNumbers::clear() {
  spans_.clear();
  places_.clear();
}

template <class Real>
void ChartMemory<Real>::begin(std::span<const std::uint32_t> words, std::size_t limit) {
  if (numbers_.bytes() + plain_.bytes() + refined_.bytes() > limit) {
    numbers_ = {};
    plain_ = {};
    refined_ = {};
  }
  spans_.resize(cells_of(words.size()));
  for (std::size_t last = 1; last <= words.size(); ++last) {
    for (std::size_t first = 0; first < last; ++first) {
      const std::uint32_t before = last - first == 1 ? SpanNumbers::none : spans_[cell_of(first, last - 1)];
      spans_[cell_of(first, last)] = numbers_.number(before, words[last - 1]);
    }
  }
}
template class ChartMemory<double>;

bool share_spans(std::span<const std::uint32_t> words, std::span<const std::uint64_t> starts) {
  std::vector<std::uint64_t> groups;
  for (std::size_t sentence = 0; sentence + 1 < starts.size(); ++sentence)
    for (std::size_t i = starts[sentence]; i + 3 <= starts[sentence + 1]; ++i)
      groups.push_back(mixed(hash_of(words[i], words[i + 1]) ^ words[i + 2]));
  std::sort(groups.begin(), groups.end());
  const auto different = std::unique(groups.begin(), groups.end()) - groups.begin();
  return static_cast<std::size_t>(2 * different) < groups.size();
}

}  // namespace treelm
