"""Numbers of Pauls & Klein (2012), for comparison only."""

from __future__ import annotations

SOURCE = "Pauls & Klein 2012"

#: Table 2: perplexity on WSJ section 0, trained on a billion words.
PERPLEXITY = {
    "PCFG": 1772,
    "TREELET-TRANS": 722,
    "TREELET-RULE": 329,
    "TREELET": 198,
    "HEADLEX": 299,
    "5-GRAM": 207,
}
#: Table 4: accuracy on trigram pseudo-negatives, trained on 50K sentences.
TRIGRAM = {
    "PCFG": 0.815,
    "TREELET-TRANS": 0.877,
    "TREELET-RULE": 0.898,
    "TREELET": 0.889,
    "HEADLEX": 0.876,
    "5-GRAM": 0.679,
}
#: The same, trained on a billion words.
TRIGRAM_LARGE = {
    "PCFG": 0.818,
    "TREELET-TRANS": 0.901,
    "TREELET-RULE": 0.941,
    "TREELET": 0.933,
    "HEADLEX": 0.920,
    "5-GRAM": 0.875,
}
#: Table 5: pairwise and independent accuracy on noisy WSJ, trained on WSJ.
NOISY = {
    "PCFG": (0.791, 0.589),
    "TREELET-RULE": (0.903, 0.638),
    "TREELET": (0.907, 0.634),
    "HEADLEX": (0.907, 0.595),
    "5-GRAM": (0.863, 0.557),
}
#: The same, trained on a billion words.
NOISY_LARGE = {
    "PCFG": (0.770, 0.586),
    "TREELET-RULE": (0.944, 0.662),
    "TREELET": (0.945, 0.655),
    "HEADLEX": (0.940, 0.620),
    "5-GRAM": (0.935, 0.601),
}
#: Table 6: pairwise accuracy of references against a German system's output.
MT = {"5-GRAM": 0.378, "TREELET": 0.660}
