"""Small data and options with which every recipe runs, on a few hundred sentences."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

from tests.models.ngram_models import small_ngram
from tests.models.reading import write_reading_data

import treelm
from treelm.corpus.corpus import TreeCorpus
from treelm.models.ngram.arpa import write_arpa
from treelm.models.registry import train

RECIPES = Path(__file__).resolve().parents[2] / "experiments"
TREES = list(treelm.sample_treebank())
SENTENCES = [" ".join(tree.words) for tree in TREES]
TREEBANKS = ("craft", "gum", "masc", "wsj-sample")
PHENOMENA = ("binding", "ellipsis")

HHMM = ("--beam-width", "20", "--depth", "2", "--held-out-every", "20", "--every", "8")
HHMM += ("--beams", "5", "20", "--options", "estimation", "--unknown-beam", "20")
PARSERS_AS_LMS = ("--cycles", "1", "--split-iterations", "3", "--exact", "3", "--exact-words", "12")


def write_data(folder: Path) -> None:
    """Write a data folder in the layout that recipes expect."""
    (folder / "text").mkdir()
    for start, name in enumerate(("reuters", "un-debates", "eltec")):
        with lzma.open(folder / f"text/{name}.txt.xz", "wt", encoding="utf-8") as text:
            for number, sentence in enumerate(SENTENCES[start:]):
                text.write(f"{sentence}\n" + ("\n" if number % 3 == 2 else ""))
    (folder / "grammaticality").mkdir()
    with lzma.open(folder / "grammaticality/blimp.jsonl.xz", "wt", encoding="utf-8") as pairs:
        for number in range(40):
            subject = ("ferry", "frumious")[number % 2]  # the second one is unknown
            pair = {
                "sentence_good": f"The {subject} left the harbour .",
                "sentence_bad": f"The {subject} the left harbour .",
                "UID": f"paradigm_{number % 4}",
                "linguistics_term": PHENOMENA[number % 2],
            }
            pairs.write(json.dumps(pair) + "\n")
    for number, name in enumerate(TREEBANKS):
        (folder / "treebanks" / name).mkdir(parents=True)
        mine = TREES[number :: len(TREEBANKS)]
        for part, trees in {"train": mine[20:], "dev": mine[:10], "test": mine[10:20]}.items():
            text = "".join(f"{tree}\n" for tree in trees)
            (folder / "treebanks" / name / f"{part}.mrg").write_text(text)
    (folder / "reading/naturalstories").mkdir(parents=True)
    write_reading_data(folder / "reading/naturalstories", small_ngram(order=2), shift=0)


def write_zorro(data: Path, *names: str) -> None:
    """Write paradigms of minimal pairs in the layout of Zorro: three times the same pair each."""
    zorro = data / "grammaticality/zorro"
    zorro.mkdir()
    pair = "the left ferry harbour the .\nthe ferry left the harbour .\n"
    for name in names:
        (zorro / f"{name}.txt").write_text(pair * 3, encoding="utf-8")


def write_garden_paths(data: Path) -> None:
    """Write stimuli in the layout of the SAP benchmark."""
    (data / "grammaticality/sap-items").mkdir(parents=True, exist_ok=True)
    rows = ["item,condition,disambPositionUnamb,unambiguous,disambPositionAmb,ambiguous"]
    for item, noun in enumerate(("ferry", "boat", "house"), 1):
        rows += [
            f"{item},NPS_UAMB,6,They said that the {noun} left .,5,They said the {noun} left .",
            f'{item},NPZ_UAMB,5,"When we came, the {noun} left .",5,When we came the {noun} left .',
            f"{item},MVRR_UAMB,6,The {noun} that was seen left .,4,The {noun} seen left .",
        ]
    path = data / "grammaticality/sap-items/items_ClassicGP.csv"
    path.write_text("\n".join(rows) + "\n")


def train_parser(data: Path, folder: Path) -> Path:
    """Train the grammar that recipes parse with, and return its folder."""
    trees = TreeCorpus(tuple(sorted((data / "treebanks").glob("*/train.mrg"))))
    train("pcfg", trees).save(folder / "grammar")
    return folder / "grammar"


def write_translations(data: Path) -> None:
    """Write references and two systems that turn them round."""
    (data / "mt/ted").mkdir(parents=True, exist_ok=True)
    for name, step in {"ref": 1, "sys1": -1, "sys2": -1}.items():
        lines = [" ".join(sentence.split()[::step]) for sentence in SENTENCES[:4]]
        (data / f"mt/ted/{name}.en").write_text("\n".join(lines) + "\n")


def treelet_options(data: Path, folder: Path) -> tuple[str, ...]:
    """Write what the recipe of the treelet model reads, and return its options."""
    write_translations(data)
    with lzma.open(data / "text/unseen.txt.xz", "wt", encoding="utf-8") as text:
        text.writelines(" ".join(sentence.split()[::-1]) + "\n\n" for sentence in SENTENCES)
    auto = folder / "auto.mrg"
    auto.write_text("".join(f"{tree}\n" for tree in TREES for _ in range(4)))
    grammar = str(train_parser(data, folder))
    sizes = ("--limit", "4", "--k", "10", "--negatives", "unseen", "--allow-overlap")
    return ("--parser", grammar, "--auto", str(auto), *sizes, "--latent-cycles", "1")


def write_lists(folder: Path) -> None:
    """Write lists of translations in which the reference stands first."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("val", "test_2016_flickr"):
        (folder / f"{part}.en").write_text("\n".join(SENTENCES[:4]) + "\n")
        with lzma.open(folder / f"{part}.nbest.xz", "wt", encoding="utf-8") as lists:
            for number, sentence in enumerate(SENTENCES[:4]):
                turned = " ".join(reversed(sentence.split()))
                lists.write(f"{number} ||| {sentence} ||| LM0= -1 ||| -1\n")
                lists.write(f"{number} ||| {turned} ||| LM0= -2 ||| -2\n")


def lsvm_options(data: Path, folder: Path) -> tuple[str, ...]:
    """Write what the recipe of the latent machines reads, and return its options."""
    write_translations(data)
    write_lists(data / "mt/multi30k")
    grammar = str(train_parser(data, folder))
    work = ("--work", str(folder / "work"), "--parser", grammar, "--vertical-order", "1")
    return (
        *work,
        *["--train", "30", "--held", "12", "--rounds", "1", "--k", "2", "--landmarks", "5"],
        "--fragment-study",
    )


def write_parallel_data(data: Path) -> None:
    """Write what the recipe of translation reads: each word of a sentence is another one's."""
    folder = data / "mt/multi30k"
    folder.mkdir(parents=True, exist_ok=True)
    short = [each for each in SENTENCES if len(each.split()) <= 8][:36]
    (folder / "train.en").write_text("\n".join(short) + "\n")
    foreign = [" ".join(f"{word}en" for word in each.split()) for each in short]
    (folder / "train.de").write_text("\n".join(foreign) + "\n")
    links = [" ".join(f"{i}-{i}" for i in range(len(each.split()))) for each in short]
    (folder / "train.links").write_text("\n".join(links) + "\n")
    (data / "text-open").mkdir(exist_ok=True)
    with lzma.open(data / "text-open/simplewiki2021.txt.xz", "wt", encoding="utf-8") as text:
        text.writelines(f"{each} It was so.\n" for each in SENTENCES)
    for name, part in {"val": short[:24], "test_2016_flickr": short[24:]}.items():
        source = [" ".join(f"{word}en" for word in each.split()) for each in part]
        (folder / f"{name}.en").write_text("\n".join(part) + "\n")
        (folder / f"{name}.de").write_text("\n".join(source) + "\n")
        (folder / f"{name}.moses.en").write_text("\n".join(part[::-1]) + "\n")
        values = "Distortion0= 0 WordPenalty0= {} LM0= {} TranslationModel0= 0 0 0 0"
        with lzma.open(folder / f"{name}.nbest.xz", "wt", encoding="utf-8") as lists:
            for number, each in enumerate(part):
                words = each.split()
                texts = list(enumerate((each, " ".join(words[::-1]), words[0])))
                if number == 0:  # the translator's choice is not always the right one
                    texts[:2] = texts[1::-1]
                for place, text in texts:
                    size = len(text.split())
                    features = values.format(-size, -size - place)
                    lists.write(f"{number} ||| {text} ||| {features} ||| {-place}\n")
    words = sorted({word for each in short for word in each.split()})
    lines = [f"{word}en ||| {word} ||| 0.5 0.5 0.5 0.5 ||| 0-0" for word in words]
    with gzip.open(folder / "phrase-table.gz", "wt", encoding="utf-8") as table:
        table.write("\n".join(lines) + "\n")
    write_arpa(small_ngram(order=2), folder / "lm5.arpa.gz")
    names = ("LM0", "Distortion0", "WordPenalty0")
    lines = [f"{name}= 0.2" for name in names]
    (folder / "weights.ini").write_text(
        "\n".join([*lines, "TranslationModel0= 0.1 0.1 0.1 0.1", ""])
    )
