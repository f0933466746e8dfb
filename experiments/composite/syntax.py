"""The rows with parses of Table 3 of Tan et al. (2011, 2012), and their baselines.

    python experiments/composite/syntax.py --trees FOLDER --work FOLDER [--models NAME...]

parsed_corpus.py writes the folder of trees. Every model is trained on the same sentences over the
same vocabulary, its weights are found on the held-out documents, and the log probabilities of
held-out and test words are kept in the work folder, so that nothing is done twice and mixtures need
no further training. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
from syntax_corpus import ParsedCorpus, read_corpus

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.files import write_atomically
from treelm.models.composite.checkpoint import Checkpoint, EmStep
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.model import CompositeModel
from treelm.models.composite.parsed_text import PreparedTrees
from treelm.models.composite.train import train_on_parses
from treelm.models.mixture.weights import fit_weights
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.models.ngram.train import train_ngram
from treelm.models.run import Event, Run

Floats = npt.NDArray[np.float64]

TOPICS, KEPT = 200, 5
#: How fast topics follow a document; set before the first run and not tuned.
ETA = 0.02

#: Default number of rounds of EM of models without parses.
CHEAP_ROUNDS = 5

#: What stands behind the name of an n-gram with modified Kneser-Ney smoothing.
KNESER_NEY = " Kneser-Ney"
#: What stands behind the name of a model whose predictor sees heads without labels.
WORDS = " words"


def options_of(name: str) -> dict[str, object]:
    """Return the options that the name of a model stands for.

    Examples:
        >>> options_of("3-gram/2-SLM")
        {'order': 3, 'heads': 2}
        >>> options_of("4-SLM/PLSA")
        {'order': 1, 'heads': 4, 'topics': 200}
    """
    options: dict[str, object] = {"order": 1, "heads": 0}
    for part in name.removesuffix(WORDS).split("/"):
        number, _, kind = part.rpartition("-")
        if kind == "gram":
            options["order"] = int(number)
        elif kind == "SLM":
            options["heads"] = int(number)
        elif part == "PLSA":
            options["topics"] = TOPICS
        else:
            raise SystemExit(f"no model is called {name}")
    return options | ({"head_labels": False} if name.endswith(WORDS) else {})


def joint_models(order: int) -> tuple[str, ...]:
    """Return what stands for "n-gram/m-SLM"; for 5-grams, as in the paper, a mixture of two."""
    if order == 5:
        return "5-gram/2-SLM", "2-gram/4-SLM"
    return (f"{order}-gram/{order - 1}-SLM",)


def models_of(order: int) -> list[str]:
    """Return the models of a column of the table: n-grams of an order, and one head fewer."""
    ngram, slm = f"{order}-gram", f"{order - 1}-SLM"
    names = [ngram, ngram + KNESER_NEY, slm, *joint_models(order)]
    if order == 3:
        names.append(f"{ngram}/{slm}{WORDS}")
    names += ["PLSA", f"{ngram}/PLSA", f"{slm}/PLSA"]
    return [*names, f"{ngram}/{slm}/PLSA"] if order == 3 else names


def mixtures_of(order: int) -> list[tuple[str, ...]]:
    """Return the linear combinations of a column of the table."""
    ngram, slm = f"{order}-gram", f"{order - 1}-SLM"
    joint = joint_models(order)
    return [
        (ngram, slm),
        (ngram + KNESER_NEY, slm),
        (ngram + KNESER_NEY, *joint),
        *([joint] if len(joint) > 1 else []),
        (ngram, "PLSA"),
        (ngram, slm, "PLSA"),
        (*joint, "PLSA"),
        (f"{ngram}/PLSA", slm),
        (f"{ngram}/PLSA", f"{slm}/PLSA"),
        (*joint, f"{slm}/PLSA"),
        (*joint, f"{ngram}/PLSA"),
        (*joint, f"{ngram}/PLSA", f"{slm}/PLSA"),
    ]


class Study:
    """Trains and measures models, one file of results each."""

    def __init__(self, corpus: ParsedCorpus, arguments: argparse.Namespace) -> None:
        self.corpus = corpus
        self.size: int = arguments.size
        self.rounds: tuple[int, int] = (arguments.iterations, arguments.follow_up)
        self.cheap_rounds: int = arguments.cheap_rounds
        self.cutoff: float | None = arguments.cutoff
        self.seed: int = arguments.seed
        self.orders: list[int] = arguments.orders
        self.adaptation: bool = arguments.without_adaptation
        self.threads: int = arguments.threads
        name = f"size-{self.size}" + ("-em{}-{}".format(*self.rounds) if any(self.rounds) else "")
        if self.cheap_rounds != CHEAP_ROUNDS:
            name += f"-cheap{self.cheap_rounds}"
        if self.cutoff is not None:
            name += f"-cutoff{self.cutoff:g}"
        if self.seed:
            name += f"-seed{self.seed}"
        if arguments.punctuation == "remove":
            name += "-without-punctuation"
        self.folder: Path = arguments.work / name
        self.folder.mkdir(parents=True, exist_ok=True)

    def file(self, name: str, ending: str) -> Path:
        """Return the path of a file about a model."""
        return self.folder / (name.replace("/", "+").replace(" ", "-") + ending)

    def measure(self, name: str) -> None:
        """Train a model and keep its scores of held-out and test documents."""
        if self.file(name, ".npz").exists():
            self.repeat(name)
            return
        began = time.process_time()
        train = self.corpus.part(self.size)
        if name.endswith(KNESER_NEY):
            order = int(name.partition("-")[0])
            model: NgramModel | CompositeModel = self.kneser_ney(train, order)
            facts: dict[str, object] = {}
        else:
            iterations, follow_up = self.rounds
            options = options_of(name)
            if not options["heads"]:
                iterations = self.cheap_rounds
            config = CompositeConfig(
                **options,  # type: ignore[arg-type]
                iterations=iterations,
                follow_up=follow_up,
                keep_topics=KEPT,
                cutoff=self.cutoff,
                eta=ETA,
                seed=self.seed,
            )
            steps: list[Event] = []
            checkpoint = Checkpoint(self.file(name, ".training"))
            made = train_on_parses(
                train,
                self.corpus.held_out,
                config,
                run=Run(
                    checkpoint=checkpoint.folder,
                    resume=True,
                    threads=self.threads,
                    event=steps.append,
                ),
            )
            tables = made.parts.models["predictor"].tables
            facts = {
                "types": tables.types(),
                "bytes": sum(m.tables.bytes for m in made.parts.models.values()),
                "rounds": [vars(event.value) for event in steps if isinstance(event.value, EmStep)],
            }
            model = made
        trained = time.process_time()
        scores = {}
        for part, text in (("held_out", self.corpus.held_out.encoded), ("test", self.corpus.test)):
            scores[part] = model.score_documents(text, threads=self.threads).log_probs
        ended = time.process_time()
        tokens = sum(map(len, scores.values()))
        record = {
            "model": name,
            "tokens": train.text.tokens,
            "held_out": perplexity(scores["held_out"]),
            "test": perplexity(scores["test"]),
            "test_new_sentences": perplexity(scores["test"][self.corpus.is_new]),
            "training_seconds": trained - began,
            "tokens_per_second": tokens / (ended - trained),
            "largest_mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            **facts,
        }
        if self.adaptation and isinstance(model, CompositeModel) and model.config.topics:
            record["test_without_adaptation"] = perplexity(
                model.with_search(adapt=False).score_documents(self.corpus.test).log_probs
            )
        self.write(name, record)
        # The scores come last: where they are, a model is done.
        with write_atomically(self.file(name, ".npz")) as out:
            np.savez(out, **scores)  # type: ignore[arg-type]
        Checkpoint(self.file(name, ".training")).remove()
        print(json.dumps(record), flush=True)

    def write(self, name: str, record: dict[str, object]) -> None:
        """Write what there is to say about a model; the file appears only when it is complete."""
        with write_atomically(self.file(name, ".json")) as out:
            out.write((json.dumps(record, indent=1) + "\n").encode())

    def repeat(self, name: str) -> None:
        """Print the results of an earlier run for a model."""
        record = json.loads(self.file(name, ".json").read_text())
        scores = np.load(self.file(name, ".npz"))["test"]
        record["test_new_sentences"] = perplexity(scores[self.corpus.is_new])
        print(json.dumps(record), flush=True)

    def kneser_ney(self, train: PreparedTrees, order: int) -> NgramModel:
        """Return the modified Kneser-Ney model of the same sentences."""
        symbols = train.vocabulary.symbols
        starts = train.text.starts.astype(np.int64).tolist()
        path = self.folder / "train.txt"
        with path.open("w", encoding="utf-8") as file:
            for first, last in pairwise(starts):
                file.write(" ".join(symbols[i] for i in train.text.ids[first:last]) + "\n")
        config = NgramConfig(order=order)
        model = train_ngram(
            TextCorpus((path,)), config, vocabulary=train.vocabulary, run=Run(threads=self.threads)
        )
        path.unlink()
        return model

    def mix(self) -> None:
        """Print linear combinations; their weights are found on the held-out documents."""
        for parts in dict.fromkeys(each for order in self.orders for each in mixtures_of(order)):
            files = [self.file(part, ".npz") for part in parts]
            if not all(file.exists() for file in files):
                continue
            held_out, test = (
                np.stack([np.load(file)[name] for file in files], axis=1)
                for name in ("held_out", "test")
            )
            weights = np.asarray(fit_weights(held_out).weights)
            with np.errstate(divide="ignore"):
                mixed = np.logaddexp.reduce(test + np.log(weights), axis=1)
                checked = np.logaddexp.reduce(held_out + np.log(weights), axis=1)
            record = {
                "model": " + ".join(parts),
                "weights": weights.tolist(),
                "held_out": perplexity(checked),
                "test": perplexity(mixed),
                "test_new_sentences": perplexity(mixed[self.corpus.is_new]),
            }
            self.write(" + ".join(parts), record)
            with write_atomically(self.file(" + ".join(parts), ".npz")) as out:
                np.savez(out, held_out=checked, test=mixed)
            print(json.dumps(record), flush=True)


def perplexity(log_probs: Floats) -> float:
    """Return the perplexity of words and sentence ends."""
    return float(np.exp(-np.mean(log_probs)))


def main() -> None:
    """Read the arguments, train and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--trees", type=Path, required=True, help="folder written by parsed_corpus.py"
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of results")
    parser.add_argument(
        "--size", type=int, default=1, help="use one training document in this many"
    )
    parser.add_argument(
        "--orders",
        type=int,
        nargs="+",
        choices=(3, 4, 5),
        default=[3],
        help="columns of the table: n-grams of these orders, with one head fewer",
    )
    parser.add_argument("--models", nargs="*", help="default: all of the columns")
    parser.add_argument("--iterations", type=int, default=0, help="rounds of N-best EM")
    parser.add_argument("--follow-up", type=int, default=0, help="rounds of the follow-up EM")
    parser.add_argument(
        "--cheap-rounds",
        type=int,
        default=CHEAP_ROUNDS,
        help="rounds of EM of models without parses",
    )
    parser.add_argument(
        "--cutoff", type=float, help="smallest count of the predictor; default: the paper's"
    )
    parser.add_argument(
        "--punctuation",
        choices=("keep", "remove"),
        default="keep",
        help="whether the training, held-out and test texts have punctuation",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the first topics")
    parser.add_argument(
        "--without-adaptation",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="score models with topics once more, with topics that do not follow the document",
    )
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    study = Study(
        read_corpus(arguments.trees, arguments.work, punctuation=arguments.punctuation), arguments
    )
    columns = [name for order in arguments.orders for name in models_of(order)]
    for name in arguments.models or dict.fromkeys(columns):
        study.measure(name)
    study.mix()


if __name__ == "__main__":
    main()
