"""A small training of every system, as its users type it, on trees of the sample treebank."""

from __future__ import annotations

from pathlib import Path

from treelm.corpus.sample_treebank import sample_treebank

#: What is typed after ``treelm train``, in an order in which parts come before what needs them.
TRAININGS: dict[str, str] = {
    "ngram": "ngram --text train.txt --order 3 --vocabulary words -o ngram",
    "pcfg": "pcfg --trees train.mrg --lexicon closed -o pcfg",
    "pcfg_la": "pcfg-la --trees train.mrg --cycles 1 --split-iterations 3 --merge-iterations 2"
    " --smooth-iterations 2 --lexicon closed --seed 1 -o pcfg_la",
    "hhmm": "hhmm --trees train.mrg --depth 2 --beam-width 50 --vocabulary words -o hhmm",
    "slm": "slm --trees train.mrg --held-out dev.mrg --stack-size 3 --n-best 2 --iterations 1"
    " --follow-up 1 -o slm",
    "composite": "composite --trees train.mrg --held-out dev.mrg --order 2 --topics 3"
    " --keep-topics 2 --test-topics 2 --stack-size 3 --n-best 2 --iterations 1 --follow-up 1"
    " --seed 1 -o composite",
    "plsa": "plsa --text train.txt --held-out dev.txt --topics 3 --order 2 --keep-topics 2"
    " --plsa-iterations 3 --iterations 2 --seed 1 -o plsa",
    "treelet": "treelet --trees train.mrg --parser pcfg --k 3 --vocabulary words -o treelet",
    "headlex": "headlex --trees train.mrg --parser pcfg --k 3 -o headlex",
    "lsvm": "lsvm --trees train.mrg --good dev.txt --bad bad.txt --dev-good dev.txt"
    " --dev-bad bad.txt --rounds 1 --regularization 1 -o lsvm",
    "trigram_svm": "trigram-svm --good dev.txt --bad bad.txt --regularization 1 -o trigram_svm",
    "tree_features": "tree-features --good dev.txt --bad bad.txt --parser pcfg --features cfg"
    " --min-sentences 1 --regularization 1 -o tree_features",
    "tree_ranker": "tree-ranker --trees train.mrg --parser pcfg --k 5 --folds 2 --min-sentences 2"
    " --regularization 1 -o tree_ranker",
    "interpolated": "interpolated --models ngram hhmm --held-out dev.txt -o interpolated",
    "interpolated_sentences": "interpolated-sentences --models ngram treelet --held-out dev.txt"
    " -o interpolated_sentences",
}


def write_data(folder: Path, *, trees: int = 60) -> None:
    """Write what the trainings read: trees, their words, words in the wrong order, a vocabulary.

    Args:
        folder: Where they go.
        trees: How many trees are trained on.
    """
    found = [tree for tree, _ in zip(sample_treebank(), range(trees + 12), strict=False)]
    train, dev = found[:trees], found[trees:]
    for name, part in (("train", train), ("dev", dev)):
        (folder / f"{name}.mrg").write_text("".join(f"{tree}\n" for tree in part), "utf-8")
        lines = "".join(f"{' '.join(tree.words)}\n" for tree in part)
        (folder / f"{name}.txt").write_text(lines, "utf-8")
    wrong = "".join(f"{' '.join(reversed(tree.words))}\n" for tree in dev)
    (folder / "bad.txt").write_text(wrong, "utf-8")
