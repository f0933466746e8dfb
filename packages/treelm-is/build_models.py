"""Train the ready models of a package, measure them, and put them where the package wants them.

    python build_models.py --data FOLDER [--recipe models.toml] [--only is-ngram]

A model that is already there is not trained again; `--only` trains the models it names anew. The
same data give the same bytes. `models.toml` beside this file says what is trained.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from treelm.corpus.brackets import ReadOptions
from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.parser import Parser, best_trees
from treelm.models.registry import load, train
from treelm.tasks.card import model_card
from treelm.tasks.evaluate.parse_accuracy import evaluate_parses


def log(*values: object) -> None:
    """Report progress on standard error."""
    sys.stderr.write(" ".join(map(str, values)) + "\n")


class Package:
    """A package of models, as its recipe describes it.

    Args:
        recipe: The TOML file.
        data: Folder of the treebanks.
    """

    def __init__(self, recipe: Path, data: Path) -> None:
        with recipe.open("rb") as file:
            content = tomllib.load(file)
        self.common: dict[str, Any] = content["package"]
        self.models: dict[str, dict[str, Any]] = content["models"]
        self.folder = recipe.parent / self.common["folder"]
        self.data = data

    def corpus(self, part: str, *, simplify: bool = True) -> TreeCorpus:
        """Return the trees of ``train`` or ``dev``."""
        options = ReadOptions(profile=self.common["profile"], simplify=simplify)
        paths = tuple(self.data / path for path in self.common[part])
        return TreeCorpus(paths, options, on_error="skip")

    def train(self, name: str) -> LanguageModel:
        """Train a model."""
        recipe = self.models[name]
        corpus = self.corpus("train")
        options = dict(recipe["options"])
        if "vocabulary" in recipe:
            rule = VocabularyRule(**recipe["vocabulary"])
            options["vocabulary"] = build_vocabulary(TreeSentences(corpus), rule)
        tokenizer = self.common["tokenizer"]
        found = train(recipe["system"], corpus, tokenizer=tokenizer, threads=1, **options)
        return found.quantized(recipe["bits"]) if "bits" in recipe else found

    def measure(self, name: str, model: LanguageModel) -> dict[str, float]:
        """Return what the card of a model says about how good it is."""
        plain = model.with_tokenizer(None)
        most = self.common["measured_sentences"]
        data = f"the first {most} sentences of dev"
        if self.models[name]["measure"] == "f1":
            gold = list(self.corpus("dev", simplify=False))[:most]
            assert isinstance(plain, Parser)
            found = best_trees(plain, [tree.words for tree in gold], threads=1)
            guesses = [None if best is None else best.tree for best in found]
            accuracy = evaluate_parses(gold, guesses, self.common["profile"])
            return {f"F1 on {data}": round(100 * accuracy.labelled_f1, 2)}
        sentences = [tree.words for tree in self.corpus("dev")][:most]
        return {f"perplexity of {data}": round(plain.perplexity(sentences).perplexity, 2)}

    def build(self, name: str) -> None:
        """Train, save and measure a model, complete or not at all."""
        start = time.process_time()
        target, made = self.folder / name, self.folder / f".{name}.new"
        shutil.rmtree(made, ignore_errors=True)
        self.train(name).save(made)
        settle(made / "manifest.json", self.common["date"], self.data)
        log(name, f"trained in {time.process_time() - start:.0f} s of processor time")
        model = load(made)
        scores = self.measure(name, model)
        card = model_card(
            model,
            name,
            language=self.common["language"],
            license=self.common["license"],
            scores=scores,
        )
        (made / "README.md").write_text(f"{card}\n{self.common['attribution']}\n", encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
        log(name, scores, f"{size_of(target):.2f} MB")


def settle(manifest: Path, date: str, data: Path) -> None:
    """Give a manifest the date of the package, and files names below the data folder.

    So the same data give the same bytes, wherever they lie.
    """
    text = manifest.read_text(encoding="utf-8").replace(f"{data}/", "")
    dated, count = re.subn(
        r'^  "date": "[^"]*",$', f'  "date": "{date}",', text, flags=re.MULTILINE
    )
    if count != 1:
        raise SystemExit(f"{manifest}: one date was expected, {count} were found")
    manifest.write_text(dated, encoding="utf-8")


def size_of(folder: Path) -> float:
    """Return the size of all files below a folder in megabytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def main() -> None:
    """Read the options, and train what is wanted.

    Raises:
        SystemExit: if the models are larger than the recipe allows.
    """
    parser = argparse.ArgumentParser(description="Train the ready models of a package.")
    parser.add_argument("--data", type=Path, required=True, help="folder of the treebanks")
    here = Path(__file__).resolve().parent
    parser.add_argument("--recipe", type=Path, default=here / "models.toml")
    parser.add_argument("--folder", type=Path, help="where models go (default: the recipe's)")
    parser.add_argument("--only", nargs="+", default=[], help="models to train anew")
    arguments = parser.parse_args()
    package = Package(arguments.recipe, arguments.data)
    if arguments.folder is not None:
        package.folder = arguments.folder
        package.folder.mkdir(parents=True, exist_ok=True)
    for name in package.models:
        wanted = not arguments.only or name in arguments.only
        if wanted and (name in arguments.only or not (package.folder / name).exists()):
            package.build(name)
    total = sum(size_of(package.folder / name) for name in package.models)
    log(f"all models: {total:.2f} MB")
    if total > package.common["limit_megabytes"]:
        raise SystemExit(f"the models take {total:.2f} MB, more than the recipe allows")


if __name__ == "__main__":
    main()
