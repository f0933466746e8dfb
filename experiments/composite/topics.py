"""Table 2 and the rows without parses of Table 3 of Tan et al. (2011, 2012), on open text.

    python experiments/composite/topics.py --work FOLDER [--models NAME...] [--minutes 10]

Trains n-gram, PLSA and n-gram/PLSA models on parts of the text in powers of four, and writes one
JSON file per model into the folder. Finished work is not repeated, and a training that ran out of
time resumes when the program is called again. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
from topic_corpus import SIZES, TopicCorpus, read_corpus
from topic_measures import Floats, cache_scores, mixtures, perplexity

from treelm.corpus.encoder import EncodedText
from treelm.corpus.files import write_atomically
from treelm.models.mixture.weights import fit_weights
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.counts import NgramCounts
from treelm.models.ngram.events import WordSpace, count_ngrams
from treelm.models.ngram.train import train_ngram
from treelm.models.plsa.checkpoint import PlsaCheckpoint
from treelm.models.plsa.config import PlsaConfig
from treelm.models.plsa.em import PlsaState, document_words, fit_plsa, start_plsa
from treelm.models.plsa.model import PlsaModel
from treelm.models.plsa.trainer import PlsaReport, PlsaTrainer
from treelm.models.run import Run

DATA = Path(__file__).resolve().parents[3] / "shared/data"
ORDER = 3
#: Orders of the rows of larger texts in the paper; `composite5-2-16` is of order 5.
LONGER = (4, 5)
TOPICS = 200
KEPT = (5, 2, 10, 20, 50, 100, 200)
ETAS = (0.001, 0.01, 0.02, 0.05, 0.1)
#: What was best on held-out documents of a small part of the text.
ETA = 0.05
#: Models whose eta, adaptation and number of predicting topics are varied.
GRID = ("plsa-1", "composite-5-1")


class OutOfTime(Exception):
    """Raised between two iterations, when the state is saved."""


class Experiment:
    """Trains and measures models, one file of results each.

    Args:
        corpus: The texts.
        work: Folder of results and of unfinished work.
        threads: Number of threads.
        minutes: Time limit of a training run.
        plsa_iterations: Maximum number of PLSA iterations.
        iterations: Maximum number of EM iterations of the predictor.
        scores: Whether to score the test; without it only sizes and costs are kept.
    """

    def __init__(
        self,
        corpus: TopicCorpus,
        work: Path,
        *,
        threads: int,
        minutes: float,
        plsa_iterations: int,
        iterations: int,
        scores: bool = True,
    ) -> None:
        self.corpus = corpus
        self.with_scores = scores
        self.plsa_iterations = plsa_iterations
        self.iterations = iterations
        self.work = work
        self.threads = threads
        self.end = time.monotonic() + 60 * minutes

    # -- models -----------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return all models, dependencies first."""
        names = []
        for size in SIZES:
            names += [f"{kind}-{size}" for kind in ("ngram", "kn", "plsa", "composite-5")]
        names += [f"composite-{kept}-16" for kept in KEPT[1:]]
        for order in LONGER:
            names += [f"ngram{order}-16", f"composite{order}-5-16"]
        return [*names, "composite5-2-16", "composite-10-1"]

    def run(self, name: str) -> None:
        """Train and measure one model, unless already done."""
        target = self.work / f"{name}.json"
        if target.exists():
            return
        kind, *numbers = name.split("-")
        size = int(numbers[-1])
        if kind == "kn":
            self.write(name, self.kneser_ney(name, size))
            return
        has_topics = not kind.startswith("ngram")
        config = PlsaConfig(
            order=1 if kind == "plsa" else int(kind[-1]) if kind[-1].isdigit() else ORDER,
            topics=TOPICS if has_topics else 0,
            keep_topics=int(numbers[0]) if kind.startswith("composite") else None,
            eta=ETA,
            plsa_iterations=self.plsa_iterations,
            iterations=self.iterations,
            seed=1,
        )
        start = time.process_time()
        trainer, record = self.train(name, size, config)
        record |= {"name": name, **self.describe(trainer)}
        record["processor_seconds_here"] = time.process_time() - start
        record |= self.measure(trainer, name)
        self.write(name, record)

    def write(self, name: str, record: dict[str, object]) -> None:
        """Write the results of a model."""
        self._write_record(name, record)
        print(name, record.get("test_perplexity", ""), flush=True)

    def _write_record(self, name: str, record: dict[str, object]) -> None:
        """Write a record; where its file is, it is complete, and a model is not trained again."""
        with write_atomically(self.work / f"{name}.json") as out:
            out.write((json.dumps(record, indent=1) + "\n").encode())

    def kneser_ney(self, name: str, size: int) -> dict[str, object]:
        """Return the perplexity of the n-gram with modified Kneser-Ney smoothing."""
        text, vocabulary = self.corpus.part(size), self.corpus.vocabulary
        space = WordSpace.of(vocabulary)
        events = count_ngrams(text, ORDER, space, threads=self.threads)
        unigrams = np.bincount(text.ids, minlength=space.words + 1).astype(np.uint64)
        unigrams[space.end] = len(text)
        counts = NgramCounts(ORDER, vocabulary, events, unigrams, ())
        model = train_ngram(counts, NgramConfig(order=ORDER, smoothing="mkn"))
        held_out, test = (
            model.score_ids(part.ids, part.starts, threads=self.threads).log_probs
            for part in (self.corpus.held_out, self.corpus.test)
        )
        np.savez(self.work / f"scores-{name}.npz", held_out=held_out, test=test)
        return {
            "name": name,
            "held_out_perplexity": perplexity(held_out),
            "test_perplexity": perplexity(test),
        }

    def train(
        self, name: str, size: int, config: PlsaConfig
    ) -> tuple[PlsaTrainer, dict[str, object]]:
        """Return a trained predictor, and its history."""
        text = self.corpus.part(size)
        words = len(self.corpus.vocabulary)
        trainer = PlsaTrainer(text, self.corpus.held_out, config, words, Run(threads=self.threads))
        if not config.topics:
            trainer.count(None)
            trainer.refit()
            return trainer, {}
        plsa, plsa_seconds = self.topics(text, size, config)
        started = time.process_time()
        trainer.count(plsa)
        record: dict[str, object] = {
            "plsa_iterations": plsa.iterations,
            "plsa_history": list(plsa.history),
            "plsa_processor_seconds": plsa_seconds,
            "count_processor_seconds": time.process_time() - started,
        }
        checkpoint = PlsaCheckpoint(self.work / name)
        checkpoint.begin(trainer, self.corpus.vocabulary, resume=True)
        if not checkpoint.restore(trainer):
            started = time.process_time()
            trainer.refit(rounds=2)
            record["weights_processor_seconds"] = time.process_time() - started
            self.write_start(trainer, name, record)
        seconds: list[float] = []
        held_out = [trainer.held_out_perplexity]
        last = time.monotonic()

        def after(trainer: PlsaTrainer, report: PlsaReport) -> None:
            nonlocal last
            print(
                f"{name} {len(trainer.history)}: perplexity {report.perplexity:.3f}, held out "
                f"{report.held_out_perplexity:.3f}",
                flush=True,
            )
            seconds.append(time.monotonic() - last)
            held_out.append(report.held_out_perplexity)
            checkpoint.save(trainer)
            last = time.monotonic()
            self.check_time()

        trainer.fit(after)
        record |= {"history": trainer.history, "iteration_seconds": seconds}
        record["held_out_by_iteration"] = held_out
        checkpoint.remove()
        return trainer, record

    def write_start(self, trainer: PlsaTrainer, name: str, record: dict[str, object]) -> None:
        """Write the results of the model before its first EM iteration."""
        found = {**record, **self.describe(trainer), **self.measure(trainer, name)}
        self._write_record(f"start-{name}", found)
        print(f"{name} before EM: {found.get('test_perplexity', '')}", flush=True)
        self.check_time()

    def describe(self, trainer: PlsaTrainer) -> dict[str, object]:
        """Return the size of a predictor."""
        return {
            "tokens": trainer.events,
            "documents": len(trainer.text.document_starts) - 1,
            "types": [trainer.used.types(node) for node in range(len(trainer.lattice.nodes))],
            "bytes": trainer.used.bytes,
            "held_out_perplexity": trainer.held_out_perplexity,
            "kept_mass": None if trainer.kept is None else trainer.kept.mass,
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }

    def model(self, trainer: PlsaTrainer) -> PlsaModel:
        """Return a predictor as a model."""
        return trainer.model(self.corpus.vocabulary, ())

    def topics(self, text: EncodedText, size: int, config: PlsaConfig) -> tuple[PlsaState, float]:
        """Return PLSA of a part of the text, and the processor seconds that it took.

        All models of that part share it.
        """
        kept = self.work / f"topics-{size}.npz"
        state = start_plsa(
            len(self.corpus.vocabulary),
            len(text.document_starts) - 1,
            config.topics,
            seed=config.seed,
        )
        seconds = -time.process_time()
        if kept.exists():
            stored = np.load(kept)
            seconds += float(stored["seconds"]) if "seconds" in stored else 0.0
            state = PlsaState(
                stored["word_topics"], stored["document_topics"], tuple(stored["history"].tolist())
            )
        saved = time.monotonic()

        def save(state: PlsaState) -> None:
            nonlocal saved
            print(f"topics-{size} {state.iterations}: {state.history[-1]:.1f}", flush=True)
            if time.monotonic() - saved > 60 or time.monotonic() > self.end:
                self._write(kept, state, seconds + time.process_time())
                saved = time.monotonic()
            self.check_time()

        before = state.iterations
        state = fit_plsa(
            document_words(text, len(self.corpus.vocabulary)),
            state,
            iterations=config.plsa_iterations,
            tolerance=config.tolerance,
            run=Run(threads=self.threads),
            after_step=save,
        )
        seconds += time.process_time()
        if state.iterations > before:
            self._write(kept, state, seconds)
        return state, seconds

    def _write(self, path: Path, state: PlsaState, seconds: float) -> None:
        temporary = path.with_name(f"new-{path.name}")
        np.savez(
            temporary,
            word_topics=state.word_topics,
            document_topics=state.document_topics,
            history=np.array(state.history),
            seconds=seconds,
        )
        temporary.rename(path)

    def check_time(self) -> None:
        """Stop when the time limit is reached."""
        if time.monotonic() > self.end:
            raise OutOfTime

    # -- measures ---------------------------------------------------------------------------

    def measure(self, trainer: PlsaTrainer, name: str) -> dict[str, object]:
        """Return perplexities of the test documents, and keep every probability for mixtures.

        eta is chosen on the held-out documents.
        """
        if not self.with_scores:
            return {}
        model = self.model(trainer)
        variants: list[dict[str, object]] = [{}]
        if name in GRID:
            variants = [{"adapt": False}, {"test_topics": 0}]
            variants += [{"eta": eta} for eta in ETAS]
        rows: list[dict[str, object]] = []
        found: list[tuple[float, Floats, Floats]] = []
        for options in variants:
            changed = model.with_options(**options)
            held_out = self.scores(changed, self.corpus.held_out)
            test = self.scores(changed, self.corpus.test)
            rows.append({**options, "held_out": perplexity(held_out), "test": perplexity(test)})
            if "eta" in options or not options:
                found.append((perplexity(held_out), held_out, test))
        _, held_out, test = min(found, key=lambda item: item[0])
        np.savez(self.work / f"scores-{name}.npz", held_out=held_out, test=test)
        record: dict[str, object] = {"variants": rows, "test_perplexity": perplexity(test)}
        if not trainer.config.topics:
            record["cache"] = self.cache_control(held_out, test)
        return record

    def scores(self, model: PlsaModel, text: EncodedText) -> Floats:
        """Return the log probability of every word and sentence end."""
        return model.score_documents(text, threads=self.threads).log_probs

    def cache_control(self, held_out: Floats, test: Floats) -> dict[str, object]:
        """Return the n-gram mixed with a cache of the words of the document so far."""
        words = len(self.corpus.vocabulary)
        columns = [
            np.stack([scores, cache_scores(text, words)], axis=-1)
            for text, scores in ((self.corpus.held_out, held_out), (self.corpus.test, test))
        ]
        weights = np.array(fit_weights(columns[0]).weights)
        mixed = np.log(np.exp(columns[1]) @ weights)
        return {"weight": float(weights[1]), "test_perplexity": perplexity(mixed)}


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=DATA, help="data folder")
    parser.add_argument("--work", type=Path, required=True, help="folder of results")
    parser.add_argument("--models", nargs="*", help="names such as composite-5-16; default: all")
    parser.add_argument("--minutes", type=float, default=1e6, help="time limit of a training run")
    parser.add_argument("--plsa-iterations", type=int, default=50)
    parser.add_argument(
        "--iterations",
        type=int,
        default=10,
        help="maximum number of EM iterations of the predictor",
    )
    parser.add_argument(
        "--scores",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="score the test; without it only sizes and costs are kept",
    )
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    corpus = read_corpus(arguments.data, arguments.work)
    experiment = Experiment(
        corpus,
        arguments.work,
        threads=arguments.threads,
        minutes=arguments.minutes,
        plsa_iterations=arguments.plsa_iterations,
        iterations=arguments.iterations,
        scores=arguments.scores,
    )
    try:
        for name in arguments.models or experiment.names():
            experiment.run(name)
            experiment.check_time()
    except OutOfTime:
        print("out of time; run again to resume", flush=True)
    for size in SIZES:
        for name, found, weights in mixtures(arguments.work, size):
            print(f"1/{size}", name, f"{found:.2f}", weights)


if __name__ == "__main__":
    main()
