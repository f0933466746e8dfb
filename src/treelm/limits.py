"""The largest numbers that options take: what kernels, tables and manifests hold for certain."""

from __future__ import annotations

#: Counts, widths of beams, sizes: kernels hold them in 32 bits.
LARGEST_COUNT = (1 << 31) - 1
#: Seeds, and numbers of sentences.
LARGEST_SEED = (1 << 63) - 1
#: Weights and thresholds: far beyond what makes sense, and far from overflowing.
LARGEST_WEIGHT = 1_000_000_000
