// Word alignments of sentence pairs: links of places, and how those of two directions become one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace treelm {

// Many sentence pairs: words as ids, and links as (source place, target place), sorted and distinct within a pair.
struct AlignedText {
  std::span<const std::uint32_t> source, target;
  std::span<const std::uint64_t> source_starts, target_starts;
  std::span<const std::uint32_t> links;        // two numbers per link
  std::span<const std::uint64_t> link_starts;  // counted in links

  std::size_t sentences() const { return source_starts.size() - 1; }
};

// Throws E_ARGUMENT unless the arrays fit together and every link lies within its sentence pair.
void check_aligned_text(const AlignedText& text);

struct Links {
  std::vector<std::uint32_t> places;  // two numbers per link
  std::vector<std::uint64_t> starts;
};

// The intersection of two directions, grown along neighbours (diagonals too) with the links of their union, and then
// with those whose words are both without a link: "grow-diag-final-and". Each side has the lengths of its sentences.
Links grow_diag_final_and(std::span<const std::uint64_t> source_starts, std::span<const std::uint64_t> target_starts,
                          const Links& forward, const Links& backward);

}  // namespace treelm
