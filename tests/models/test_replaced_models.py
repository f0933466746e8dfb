"""A model that is replaced while it is loaded is loaded whole: the old one or the new one."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.models.ngram_models import small_ngram

import treelm.store.folder as folders
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.errors import ModelFileError
from treelm.models.interface.model import LanguageModel
from treelm.models.mixture.model import interpolate
from treelm.models.ngram.counts import NgramCounts
from treelm.models.ngram.model import NgramModel
from treelm.models.pcfg.config import PcfgConfig
from treelm.models.pcfg.train import train_pcfg
from treelm.models.registry import load
from treelm.store.contents import check_file
from treelm.tasks.inspect.model import inspect_model
from treelm.trees.tree import Tree

TEXTS = (["the boat left", "a boat came"], ["it left", "the ship and the boat left"])
TREES = ("(S (NP (DT the) (NN boat)) (VP (VBD left)))", "(S (PRP it) (VP (VBD came) (RB back)))")


def ngram(which: int) -> LanguageModel:
    return small_ngram(TEXTS[which], order=2)


def grammar(which: int) -> LanguageModel:
    return train_pcfg(TreeCorpus.of_trees([Tree.from_string(TREES[which])]), PcfgConfig())


def mixture(which: int) -> LanguageModel:
    return interpolate([ngram(which), ngram(which)], weights=[0.25, 0.75])


def counts(which: int) -> NgramCounts:
    sentences = [line.split() for line in TEXTS[which]]
    return NgramCounts.count(TextCorpus.of_sentences(sentences), 2)


def words(found: LanguageModel | NgramCounts) -> tuple[str, ...]:
    return tuple(found.vocabulary.symbols)


def inspected(path: Path) -> object:
    record = inspect_model(path)
    return record["vocabulary"]


CASES: dict[str, tuple[Callable[[int], LanguageModel | NgramCounts], Callable[[Path], object]]] = {
    "ngram": (ngram, lambda path: words(load(path))),
    "ngram, by its class": (ngram, lambda path: words(NgramModel.load(path))),
    "ngram, verified": (ngram, lambda path: words(load(path, verify=True))),
    "ngram, inspected": (ngram, inspected),
    "pcfg": (grammar, lambda path: words(load(path))),
    "mixture": (mixture, lambda path: words(load(path))),
    "counts": (counts, lambda path: words(NgramCounts.load(path))),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_replaced_at_any_moment_a_model_is_loaded_whole(
    case: str, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, read = CASES[case]
    saved = [tmp_path / "zero", tmp_path / "one"]
    for which, path in enumerate(saved):
        make(which).save(path)
    old, new = map(read, saved)
    assert old != new
    target = tmp_path / "model"
    for number in range(1, 1000):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(saved[0], target)
        looked_at = 0

        def check_and_replace(*arguments: object, number: int = number) -> None:
            nonlocal looked_at
            looked_at += 1
            if moment == "after":
                check_file(*arguments)  # type: ignore[arg-type]
            if looked_at == number:
                shutil.copytree(saved[1], tmp_path / "coming")
                assert folders_exchange(tmp_path / "coming", target)
                shutil.rmtree(tmp_path / "coming")
            if moment == "before":
                check_file(*arguments)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(folders, "check_file", check_and_replace)
            found = read(target)
        if looked_at < number:
            assert found == old
            assert number > 1
            return
        assert found == new, f"replaced when file {number} was looked at"
    raise AssertionError("loading never ends")


def folders_exchange(first: Path, second: Path) -> bool:
    from treelm.store.staging import exchange

    return exchange(first, second)


def test_a_model_that_is_replaced_again_and_again_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    ngram(0).save(target)

    def replace_always(*arguments: object) -> None:
        ngram(0).save(target)
        check_file(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(folders, "check_file", replace_always)
    with pytest.raises(ModelFileError, match="again and again") as caught:
        load(target)
    assert caught.value.code == "E_MODEL_FILE"


def test_a_model_that_is_removed_while_it_is_loaded_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    ngram(0).save(target)

    def remove(*arguments: object) -> None:
        check_file(*arguments)  # type: ignore[arg-type]
        shutil.rmtree(target, ignore_errors=True)

    monkeypatch.setattr(folders, "check_file", remove)
    with pytest.raises(ModelFileError) as caught:
        load(target)
    assert caught.value.code == "E_NO_MODEL"


def test_loading_beside_savers_gives_one_of_their_models(tmp_path: Path) -> None:
    target = tmp_path / "model"
    models = [ngram(0), ngram(1)]
    models[0].save(target)
    known = {words(model) for model in models}
    done = threading.Event()

    def replace() -> None:
        number = 0
        while not done.is_set():
            number += 1
            models[number % 2].save(target)

    saver = threading.Thread(target=replace)
    saver.start()
    try:
        for _ in range(300):
            assert words(load(target)) in known
    finally:
        done.set()
        saver.join()
