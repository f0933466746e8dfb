"""Surprisals that others published, through the same regression and the same differences.

    python experiments/reading_times/published.py --work FOLDER --stories FILE... --garden FILE...

The work folder is that of run.py. Files of stories are tables of LM Zoo about Natural Stories, in
the order of the text (tab-separated: sentence_id, token_id, token, surprisal); those of garden
paths are of the SAP benchmark (Surprisals/data/MODEL/items_ClassicGP.MODEL.csv). Prints rows of
tables in README.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import warnings
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe import data_options
from study_models import BASELINE

import treelm
from treelm.corpus.reading_times import Zone
from treelm.errors import TreelmWarning
from treelm.models.interface.incremental import as_incremental
from treelm.tasks.evaluate.reading_study import StudyWords, read_study_words, reading_study
from treelm.tasks.evaluate.reading_times import ZoneScores
from treelm.tasks.evaluate.significance import bootstrap_mean_interval

KINDS = ("NPS", "NPZ", "MVRR")
#: How unknown words begin in the files of stories.
UNKNOWN = ("UNK", "<unk")


def letters(word: str) -> str:
    """Return what tokenizers leave of a word; nothing of a bracket or a comma."""
    plain = re.sub(r"-[LR][RSC]B-", "", word)
    return "".join(filter(str.isalnum, plain)).casefold()


def story_scores(path: Path, words: StudyWords) -> tuple[ZoneScores, int]:
    """Return what a file says about the words of the stories, and how many tokens it lacks."""
    ours = [
        (letters(word), zone)
        for sentence in words.sentences
        for word, zone in zip(sentence.words, sentence.zones, strict=True)
        if letters(word)
    ]
    with path.open(encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    theirs = [(token, float(bits)) for _, _, token, bits in rows if letters(token)]
    is_unknown = [token.startswith(UNKNOWN) for token, _ in theirs]
    surprisal: dict[Zone, float] = {}
    unknown: set[Zone] = set()
    missing = 0
    matcher = SequenceMatcher(
        None,
        [word for word, _ in ours],
        [
            "?" if odd else letters(token)
            for (token, _), odd in zip(theirs, is_unknown, strict=True)
        ],
        autojunk=False,
    )
    for kind, first, last, start, end in matcher.get_opcodes():
        if kind == "equal" or (last - first == end - start and all(is_unknown[start:end])):
            for (_, zone), place in zip(ours[first:last], range(start, end), strict=True):
                surprisal[zone] = surprisal.get(zone, 0.0) + theirs[place][1]
                if is_unknown[place]:
                    unknown.add(zone)
        else:
            missing += last - first
    return ZoneScores(surprisal, frozenset(unknown), float("nan")), missing


def stories(files: Sequence[Path], arguments: argparse.Namespace) -> None:
    """Print what each file of stories adds."""
    folder = arguments.data / "reading/naturalstories"
    words = read_study_words(folder / "words.tsv", folder / "trees.mrg", drop_different_words=True)
    kept = json.loads((arguments.work / f"kept/reading {BASELINE}.json").read_text("utf-8"))
    baseline = ZoneScores(
        {(item, zone): bits for item, zone, bits in kept["surprisal"]},
        frozenset((item, zone) for item, zone in kept["unknown"]),
        kept["perplexity"],
    )
    model = as_incremental(treelm.load(arguments.work / "models" / BASELINE))
    for path in files:
        scores, missing = story_scores(path, words)
        study = reading_study(
            words,
            {BASELINE: model, path.name: model},
            baseline=BASELINE,
            spill_over=2,
            folds=arguments.folds,
            seed=arguments.seed,
            scores={BASELINE: baseline, path.name: scores},
        )
        cells = []
        for over in ([], [BASELINE]):
            for which in ("all", "known"):
                found = study.result(path.name, over, which).held_out
                cells.append(shown(found.per_word, found.over_sentences, 1000))
        print(f"| {path.name} | {' | '.join(cells)} |  n {len(study.table)}, missing {missing}")


def garden(files: Sequence[Path], arguments: argparse.Namespace) -> None:
    """Print the effect of ambiguity at the disambiguating word, in bits."""
    for path in files:
        bits: dict[tuple[str, str, str], float] = {}
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                kind, _, level = row["condition"].partition("_")
                if int(row["word_pos"]) == int(float(row["disambPosition_0idx"])):
                    bits[kind, row["item"], level] = float(row["sum_surprisal_base2"])
        effects = {}
        for kind in KINDS:
            items = sorted({item for each, item, _ in bits if each == kind}, key=int)
            effects[kind] = np.array(
                [bits[kind, item, "AMB"] - bits[kind, item, "UAMB"] for item in items]
            )
        effects["NPZ - NPS"] = effects["NPZ"] - effects["NPS"]
        cells = [
            shown(float(each.mean()), bootstrap_mean_interval(each, seed=arguments.seed))
            for each in effects.values()
        ]
        print(f"| {path.name} | {' | '.join(cells)} |")


def shown(mean: float, interval: Sequence[float], factor: float = 1) -> str:
    """Return a mean and its interval."""
    low, high = (factor * each for each in interval)
    return f"{factor * mean:+.2f} [{low:+.2f}, {high:+.2f}]"


def main() -> None:
    """Read the options and print."""
    parser = data_options(__doc__)
    parser.add_argument("--work", type=Path, required=True, help="work folder of run.py")
    parser.add_argument("--stories", type=Path, nargs="+", default=[])
    parser.add_argument("--garden", type=Path, nargs="+", default=[])
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", TreelmWarning)
    if arguments.stories:
        stories(arguments.stories, arguments)
    garden(arguments.garden, arguments)


if __name__ == "__main__":
    main()
