// Phrase pairs of a word-aligned text (Koehn, Och & Marcu 2003): counts, lexical weights, orientations.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/id_sequences.h"
#include "base/progress.h"
#include "translation/alignment.h"

namespace treelm {

// How a phrase lies to the one before it, and to the one after it: monotone, swapped, discontinuous.
inline constexpr std::size_t orientations = 6;

// Distinct phrase pairs in order of first occurrence.
struct PhrasePairs {
  IdSequences sources, targets, alignments;   // an alignment is source place, target place, source place, ...
  std::vector<std::uint32_t> source, target;  // ids of phrases, one per pair
  std::vector<std::uint32_t> alignment;       // the most frequent one; of several, the first by its numbers
  std::vector<std::uint32_t> counts;
  std::vector<std::array<std::uint32_t, orientations>> oriented;  // before: m s d, after: m s d
  std::vector<double> source_given_target, target_given_source;   // lexical weights, by that alignment

  std::size_t size() const { return source.size(); }
};

// All pairs of up to `longest` words per side whose links stay within them, with at least one link. The text must
// have been checked. Throws E_TOO_LARGE where ids of 32 bits are too few.
PhrasePairs extract_phrases(const AlignedText& text, std::size_t longest, const ProgressCallback& progress);

}  // namespace treelm
