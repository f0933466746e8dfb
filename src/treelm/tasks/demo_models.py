"""A short tour of the ready models that are installed, each paragraph as it is found."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.files import Source, write_atomically
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import TreelmWarning
from treelm.models.interface.classifier import Classifier
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.ready import ReadyModel
from treelm.models.registry import load, train
from treelm.parallel.progress import SILENT, Progress
from treelm.view.bars import draw_bars
from treelm.view.picture_files import picture_content
from treelm.view.surprisal_chart import WordBar, draw_surprisal
from treelm.view.svg import draw_svg, stack_svg
from treelm.view.text import draw_text

#: The last word shows that "raced past the barn" belongs to the horse; with "that was" one knows.
GARDEN_PATHS = (
    "The horse raced past the barn fell.",
    "The horse that was raced past the barn fell.",
)
PARSED = "The ferry that we missed had left the harbour before the storm came."
JUDGED = ("Cats like fish.", "Cats likes fish.", "The old man sleeps.", "The old man sleep.")
_REASONS = 3


class ModelTour:
    """Shows what ready models do, and collects the pictures for a page.

    Args:
        models: Ready models by name.
        width: Columns that pictures may take.
        progress: Shows how far the training is.
    """

    def __init__(
        self, models: Mapping[str, ReadyModel], *, width: int, progress: Progress = SILENT
    ) -> None:
        self._models, self._width, self._progress = models, width, progress
        self._pictures: list[str] = []

    def paragraphs(self) -> Iterator[str]:
        """Yield the paragraphs: only those for which there is a model."""
        sizes = (f"{name} ({model.size / 1e6:.1f} MB)" for name, model in self._models.items())
        yield f"Ready models: {', '.join(sizes)}."
        for kind, show in (
            ("hhmm", self._garden_path),
            ("parser", self._parse),
            ("judge", self._judge),
            ("ngram", self._samples),
        ):
            name = f"en-{kind}"
            if name in self._models:
                yield from show(name, load(self._models[name].folder))
        yield from self._training()

    def write_page(self, path: Source) -> None:
        """Write the pictures of the tour as one page, or as one SVG file."""
        title = "What treelm's ready models do"
        with write_atomically(path) as out:
            out.write(picture_content(path, stack_svg(self._pictures, title=title), title))

    def _garden_path(self, name: str, model: LanguageModel) -> Iterator[str]:
        highest = 0.0
        found = []
        for sentence in GARDEN_PATHS:
            words = model.surprisal(sentence)
            found.append(words)
            highest = max(highest, *(word.surprisal for word in words))
        drawn = []
        for sentence, words in zip(GARDEN_PATHS, found, strict=True):
            bars = [WordBar(word.word, word.surprisal, word.oov) for word in words]
            self._pictures.append(draw_surprisal([(name, bars)], title=sentence, highest=highest))
            texts, values = [word.word for word in words], [word.surprisal for word in words]
            drawn.append(draw_bars(texts, values, width=self._width, unit="bits"))
        yield f"How surprising each word is to {name}, which reads word by word:\n\n{drawn[0]}"
        yield f"With two more words, the last one is expected:\n\n{drawn[1]}"

    def _parse(self, name: str, model: LanguageModel) -> Iterator[str]:
        tree = model.parse(PARSED)[0].tree
        self._pictures.append(draw_svg(tree))
        yield f"What {name} makes of raw text:\n\n{draw_text(tree, width=self._width)}"

    def _judge(self, name: str, model: LanguageModel) -> Iterator[str]:
        lines = []
        for sentence in JUDGED:
            decision = model.classify(sentence)
            lines.append(f"{decision.label:5}{decision.probability:6.2f}  {sentence}")
            reasons = _reasons(model, sentence)
            if reasons:
                lines.append(f"{'':13}because of {'; '.join(reasons)}")
        yield f"Good and bad sentences, by {name}, and the probability of good:\n\n" + "\n".join(
            lines
        )

    def _samples(self, name: str, model: LanguageModel) -> Iterator[str]:
        if Task.SAMPLE in model.abilities:
            drawn = "\n".join(
                " ".join(each.words) for each in model.sample(3, seed=1, max_words=25)
            )
            yield f"Three sentences sampled from {name}, which knows no syntax:\n\n{drawn}"

    def _training(self) -> Iterator[str]:
        yield "Training one of your own takes one line. An incremental parser of 325 trees:"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TreelmWarning)  # so few trees are rarely deep
            model = train("hhmm", TreeCorpus((sample_path(),)), progress=self._progress)
        tree = model.parse("The judge said the painting was lost .")[0].tree
        yield f'model = treelm.train("hhmm", treelm.sample_treebank())\n\n{tree}'


def _reasons(model: LanguageModel, sentence: str) -> list[str]:
    """Return what decided most, where the judge shows its arithmetic."""
    if not isinstance(model, Classifier):
        return []
    steps = model.explain_score(sentence).steps[:_REASONS]
    return [f"{step.what} ({step.value:+.2f})" for step in steps]
