"""Grammars with latent annotations as a system: trained, saved, resumed, and asked."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.models.latent_models import QUICK, sample_corpus, small_latent, sparse_latent

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import TreelmError, UnsupportedTask, UsageError
from treelm.grammar.split_merge import Iteration
from treelm.models.pcfg_la.checkpoint import Checkpoint
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.models.pcfg_la.model import PcfgLaModel
from treelm.models.pcfg_la.train import train_pcfg_la
from treelm.models.registry import load, train
from treelm.models.run import Event, Run
from treelm.store.tables import open_tables, write_tables
from treelm.trees.tree import Tree


def config(**options: object) -> PcfgLaConfig:
    return PcfgLaConfig.model_validate({"seed": 1, **QUICK, **options})


def tables(folder: Path) -> bytes:
    return (folder / "tables.safetensors").read_bytes()


def test_a_saved_model_is_the_same_when_it_is_loaded(tmp_path: Path) -> None:
    model = small_latent()
    model.save(tmp_path / "m")
    again = load(tmp_path / "m", verify=True)
    assert isinstance(again, PcfgLaModel)
    assert again.config == model.config
    assert again.grammar.symbols == model.grammar.symbols
    assert again.grammar.binary_weights.tobytes() == model.grammar.binary_weights.tobytes()
    assert again.grammar.unary_weights.tobytes() == model.grammar.unary_weights.tobytes()
    assert again.lexicon.entry_scores.tobytes() == model.lexicon.entry_scores.tobytes()
    for before, after in zip(model.grammar.split_tree, again.grammar.split_tree, strict=True):
        assert before.tolist() == after.tolist()
    again.save(tmp_path / "n")
    assert tables(tmp_path / "n") == tables(tmp_path / "m")
    sentence = ["the", "old", "boat", "left", "the", "harbour"]
    assert again.score(sentence).log_prob == model.score(sentence).log_prob
    assert again.parse(sentence) == model.parse(sentence)


def test_zeros_are_not_stored(tmp_path: Path) -> None:
    model = sparse_latent()
    weights = model.grammar.binary_weights
    assert np.count_nonzero(weights) < 0.5 * len(weights)
    model.save(tmp_path / "m")
    stored = open_tables(tmp_path / "m" / "tables.safetensors")
    assert len(stored["binary_weights"]) == np.count_nonzero(weights)


def test_training_does_not_depend_on_threads(tmp_path: Path) -> None:
    small_latent().save(tmp_path / "one")
    train_pcfg_la(sample_corpus(), config(), run=Run(threads=3)).save(tmp_path / "three")
    assert tables(tmp_path / "one") == tables(tmp_path / "three")


def test_the_seed_makes_a_difference() -> None:
    other = train_pcfg_la(sample_corpus(), config(seed=2, cycles=1))
    same = train_pcfg_la(sample_corpus(), config(cycles=1))
    assert other.grammar.total_substates == same.grammar.total_substates
    assert other.grammar.substates.tolist() != same.grammar.substates.tolist()


def test_no_cycles_give_the_treebank_grammar() -> None:
    model = train_pcfg_la(sample_corpus(), config(cycles=0))
    plain = train("pcfg", sample_corpus())
    assert not model.grammar.is_latent
    np.testing.assert_allclose(model.grammar.binary_weights, plain.grammar.binary_weights)  # type: ignore[attr-defined]


class Stopped(Exception):
    """The training was interrupted."""


def interrupted(checkpoint: Checkpoint, *, cycle: int) -> None:
    def stop(event: Event) -> None:
        done = event.value
        if isinstance(done, Iteration) and done.cycle == cycle and done.phase == "merge":
            raise Stopped

    with pytest.raises(Stopped):
        train_pcfg_la(sample_corpus(), config(), run=Run(checkpoint=checkpoint.folder, event=stop))


def test_a_resumed_training_gives_the_same_bytes(tmp_path: Path) -> None:
    checkpoint = Checkpoint.beside(tmp_path / "m")
    interrupted(checkpoint, cycle=2)
    assert checkpoint.path.exists()
    seen: list[Event] = []
    model = train_pcfg_la(
        sample_corpus(),
        config(),
        run=Run(checkpoint=checkpoint.folder, resume=True, event=seen.append),
    )
    assert {event.value.cycle for event in seen} == {2}
    model.save(tmp_path / "m")
    small_latent().save(tmp_path / "whole")
    assert tables(tmp_path / "m") == tables(tmp_path / "whole")
    checkpoint.remove()
    assert not checkpoint.folder.exists()


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    checkpoint = Checkpoint.beside(tmp_path / "m")
    interrupted(checkpoint, cycle=2)
    for wrong in (config(seed=2), config(merge_fraction=0.25)):
        with pytest.raises(UsageError) as caught:
            train_pcfg_la(
                sample_corpus(), wrong, run=Run(checkpoint=checkpoint.folder, resume=True)
            )
        assert caught.value.code == "E_CHECKPOINT"


@pytest.mark.parametrize("lexicon", ["berkeley", "closed"])
def test_more_cycles_go_on_where_fewer_ended(tmp_path: Path, lexicon: str) -> None:
    checkpoint = Checkpoint.beside(tmp_path / "m")
    run = Run(checkpoint=checkpoint.folder)
    train_pcfg_la(sample_corpus(), config(cycles=1, lexicon=lexicon), run=run)
    notes: list[str] = []
    model = train_pcfg_la(
        sample_corpus(),
        config(lexicon=lexicon),
        run=Run(checkpoint=checkpoint.folder, resume=True, note=notes.append),
    )
    assert notes == ["resuming after cycle 1."]
    whole = small_latent()
    if lexicon == "closed":
        whole = train_pcfg_la(sample_corpus(), config(lexicon=lexicon))
    assert model.grammar.binary_weights.tobytes() == whole.grammar.binary_weights.tobytes()
    assert model.lexicon.entry_scores.tobytes() == whole.lexicon.entry_scores.tobytes()


def test_a_training_without_a_checkpoint_says_so_and_begins(tmp_path: Path) -> None:
    checkpoint = Checkpoint.beside(tmp_path / "m")
    notes: list[str] = []
    model = train_pcfg_la(
        sample_corpus(),
        config(),
        run=Run(checkpoint=checkpoint.folder, resume=True, note=notes.append),
    )
    assert "no checkpoint to resume from" in notes[0]
    assert model.grammar.binary_weights.tobytes() == small_latent().grammar.binary_weights.tobytes()


@pytest.mark.parametrize("damage", ["cut", "weights", "tables", "cycle"])
def test_damaged_checkpoints_are_refused(tmp_path: Path, damage: str) -> None:
    checkpoint = Checkpoint.beside(tmp_path / "m")
    interrupted(checkpoint, cycle=2)
    stored = open_tables(checkpoint.path)
    arrays, notes = {name: np.array(array) for name, array in stored.items()}, dict(stored.metadata)
    if damage == "cut":
        checkpoint.path.write_bytes(checkpoint.path.read_bytes()[:-8])
    else:
        if damage == "weights":
            arrays["weights"][0] = math.nan
        elif damage == "tables":
            del arrays["split_tree.0"]
        else:
            notes["cycle"] = "99"
        write_tables(checkpoint.path, arrays, notes)
    with pytest.raises(TreelmError) as caught:
        train_pcfg_la(sample_corpus(), config(), run=Run(checkpoint=checkpoint.folder, resume=True))
    assert caught.value.code in {"E_CHECKPOINT", "E_MODEL_TABLES", "E_GRAMMAR"}


def dictionary() -> TreeCorpus:
    """Return trees with a noun and a verb that no other tree has."""
    trees = [
        "(ROOT (S (NP (DT the) (NN zorb)) (VP (VBD glimped) (NP (DT a) (NN boat))) (. .)))",
        "(ROOT (S (NP (DT a) (NN zorb)) (VP (VBD left)) (. .)))",
    ]
    return TreeCorpus.of_trees([Tree.from_string(tree) for tree in trees])


def test_a_dictionary_gives_unknown_words_their_tags(tmp_path: Path) -> None:
    options = {"dictionary_min_count": 1, "dictionary_weight": 20.0}
    model = train_pcfg_la(sample_corpus(), config(**options), dictionary=dictionary())
    sentence = ["the", "zorb", "glimped", "the", "harbour", "."]
    found = dict(zip(sentence, map(str, model.parse(sentence)[0].tree.tags), strict=True))
    assert (found["zorb"], found["glimped"]) == ("NN", "VBD")
    assert "zorb" in model.vocabulary
    assert "zorb" not in small_latent().vocabulary
    assert len(model.unigram_counts) == len(model.vocabulary) + 1
    assert model.unigram_counts.sum() == small_latent().unigram_counts.sum()
    assert [corpus.sentences for corpus in model.corpora][1:] == [2]
    model.save(tmp_path / "m")
    again = load(tmp_path / "m", verify=True)
    assert isinstance(again, PcfgLaModel)
    assert again.lexicon.entry_scores.tobytes() == model.lexicon.entry_scores.tobytes()
    again.save(tmp_path / "n")
    assert tables(tmp_path / "n") == tables(tmp_path / "m")


def test_a_dictionary_can_be_added_to_a_trained_model(tmp_path: Path) -> None:
    whole = train_pcfg_la(sample_corpus(), config(dictionary_min_count=1), dictionary=dictionary())
    options = config(dictionary_min_count=1).dictionary_options()
    added = small_latent().with_dictionary(dictionary(), options)
    assert added.lexicon.entry_scores.tobytes() == whole.lexicon.entry_scores.tobytes()
    assert added.vocabulary.symbols == whole.vocabulary.symbols
    small = small_latent().quantized(8).with_dictionary(dictionary(), options)
    small.save(tmp_path / "small")
    again = load(tmp_path / "small", verify=True)
    assert isinstance(again, PcfgLaModel)
    assert again.lexicon.entry_scores.tobytes() == small.lexicon.entry_scores.tobytes()
    assert again.info.bits == 8
    assert "zorb" in again.vocabulary


def test_a_dictionary_can_come_after_the_last_cycle(tmp_path: Path) -> None:
    run = Run(checkpoint=tmp_path / "work")
    train_pcfg_la(sample_corpus(), config(), run=run)
    seen: list[Event] = []
    options = config(dictionary_min_count=1)
    run = Run(checkpoint=tmp_path / "work", resume=True, event=seen.append)
    model = train_pcfg_la(sample_corpus(), options, dictionary=dictionary(), run=run)
    assert not seen
    whole = train_pcfg_la(sample_corpus(), options, dictionary=dictionary())
    assert model.lexicon.entry_scores.tobytes() == whole.lexicon.entry_scores.tobytes()


def test_entries_of_rare_words_are_stored_as_one_number(tmp_path: Path) -> None:
    more = small_latent().with_dictionary(dictionary())
    tied = more.lexicon.tied
    assert tied is not None
    assert tied.marks.mean() > 0.5
    plain = more._changed(lexicon=replace(more.lexicon, tied=None))
    sizes = []
    for number, model in enumerate((more, plain, more.quantized(8), plain.quantized(8))):
        folder = tmp_path / str(number)
        model.save(folder)
        again = load(folder, verify=True)
        assert isinstance(again, PcfgLaModel)
        assert again.lexicon.entry_scores.tobytes() == model.lexicon.entry_scores.tobytes()
        sizes.append(len(tables(folder)))
    assert sizes[0] < sizes[1]


def test_a_closed_lexicon_takes_no_dictionary() -> None:
    with pytest.raises(UsageError, match="no dictionary"):
        train_pcfg_la(sample_corpus(), config(lexicon="closed"), dictionary=dictionary())


def test_held_out_trees_choose(tmp_path: Path) -> None:
    lines = sample_corpus().paths[0].read_text(encoding="utf-8").splitlines()  # type: ignore[union-attr]
    (tmp_path / "train.mrg").write_text("\n".join(lines[:250]), encoding="utf-8")
    (tmp_path / "held.mrg").write_text("\n".join(lines[250:]), encoding="utf-8")
    corpus, held_out = (TreeCorpus((tmp_path / f"{name}.mrg",)) for name in ("train", "held"))
    seen: list[Event] = []
    notes: list[str] = []
    model = train_pcfg_la(
        corpus,
        config(cycles=1, split_iterations=12),
        held_out=held_out,
        run=Run(event=seen.append, note=notes.append),
    )
    assert model.grammar.is_latent
    values = [event.value.held_out for event in seen]
    assert all(value is not None and math.isfinite(value) for value in values)
    assert any("left out" in note for note in notes)


def test_a_closed_lexicon_adds_up_to_one() -> None:
    model = train_pcfg_la(sample_corpus(), config(cycles=1, lexicon="closed"))
    assert model.info.normalized
    model.lexicon.check_normalized()
    assert math.isfinite(model.score("the boat left the unheard-of harbour").log_prob)
    with pytest.raises(UsageError):
        train_pcfg_la(sample_corpus(), config(), vocabulary=Vocabulary.from_counts({"a": 1}))


def test_scores_are_those_of_whole_sentences() -> None:
    model = small_latent()
    assert model.score("the boat left").log_prob < 0
    with pytest.raises(UnsupportedTask):
        model.score("the boat left", eos=False)
    assert len({str(found.tree) for found in model.parse("the boat left", k=3)}) == 3
    assert model.parse("") == []


def test_parses_have_the_words_and_no_subcategories() -> None:
    sentences = [sentence.split() for sentence in ("the boat left", "a storm came .")]
    for words, parse in zip(sentences, small_latent().parse_many(sentences), strict=True):
        assert parse is not None
        assert list(parse.tree.words) == words
        assert not any("@" in str(node.label) for node in parse.tree.preorder())


def test_unigram_counts_are_those_of_the_text() -> None:
    model = small_latent()
    fingerprint = sample_corpus().fingerprint
    assert model.unigram_counts[:-1].sum() == fingerprint.tokens
    assert model.unigram_counts[-1] == fingerprint.sentences


def test_wrong_uses_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("some words\n")
    with pytest.raises(UsageError):
        train("pcfg_la", TextCorpus((tmp_path / "text.txt",)), seed=1)
    with pytest.raises(UsageError):
        PcfgLaModel.make_config({"cycles": 3})  # a seed is required
