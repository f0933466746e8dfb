"""Numbers of Cherry & Quirk (2008) and of Pauls & Klein (2012) shown beside ours."""

from __future__ import annotations

SOURCE = "Cherry & Quirk 2008"
TREELET_SOURCE = "Pauls & Klein 2012, Table 4"

MLE, MLE_LENGTH = "MLE", "MLE + length"
LINEAR, POLY = "Trigram-Linear", "Trigram-Poly"
GX, GT, LATENT_MLE = "LSVM-Gx", "LSVM-Gt", "LSVM-MLE"
NO_MEMORY, FIXED = "LSVM-MLE without memory", "LSVM-MLE with fixed trees"
CFG, TSG, RERANK = "CFG rules", "TSG fragments", "Rerank features"
NGRAM, TREELET = "5-gram SLR", "TREELET SLR"
PARSER = "score of the parser (PCFG-LA)"

#: Table 1: average precision, accuracy, pairwise accuracy on translations.
TABLE_1 = {
    MLE: (0.5072, 0.5575, 0.4930),
    LINEAR: (0.5615, 0.5872, 0.4990),
    POLY: (0.8197, 0.7050, 0.5570),
    GX: (0.7679, 0.7347, 0.6315),
    GT: (0.8753, 0.7978, 0.7165),
    LATENT_MLE: (0.8722, 0.8142, 0.7185),
}
#: Accuracy on dev in the text.
LENGTH_ON_DEV = 0.65
#: Table 2: BLEU of 100-best lists reranked with a model added.
TABLE_2 = {
    "baseline": 26.21,
    "+ MLE": 26.19,
    "+ LSVM-MLE": 26.30,
    "+ SMT Trigram": 26.45,
    "+ SMT LSVM-MLE": 26.38,
    "+ both SMT models": 26.52,
}
#: Table 3: unlabelled F1 of at most 10 words, and of all.
TABLE_3 = {
    "right-branching": (53.93, 32.87),
    GX: (50.71, 38.62),
    GT: (80.13, 66.19),
    LATENT_MLE: (83.15, 71.53),
    MLE: (95.46, 83.60),
    f"{GT}, before training": (54.88, 38.14),
}
#: The round with the best accuracy on dev.
BEST_ROUNDS = {LATENT_MLE: 4, GT: 16, GX: 25}
#: Table 4 of Pauls & Klein: accuracies, some of them from other papers.
TABLE_4 = {
    NGRAM: 0.679,
    TREELET: 0.889,
    LATENT_MLE: 0.814,
    TSG: 0.899,
    RERANK: 0.930,
}
#: The order of accuracies in the paper, from the best.
ORDER = (LATENT_MLE, GT, GX, POLY, LINEAR, MLE)
#: Target accuracies.
TARGETS = {LATENT_MLE: 0.80, RERANK: 0.90, TSG: 0.87}
