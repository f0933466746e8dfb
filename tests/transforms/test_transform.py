"""The interface of transforms: marks, configurations, pipelines."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from tests.transforms.hard_trees import trees

from treelm.errors import CorpusFormatError, TreelmError, UnsupportedTask, UsageError
from treelm.transforms.binarize import Binarize
from treelm.transforms.lexicalize import Lexicalize
from treelm.transforms.markovize import AnnotateParents, BinarizeHeadOutward, Markovize
from treelm.transforms.right_corner import RightCorner
from treelm.transforms.transform import (
    CATEGORY_MARKS,
    TRANSFORMS,
    Pipeline,
    Transform,
    check_category,
    register,
    split_annotation,
    split_unescaped,
    transform_from_config,
)
from treelm.transforms.unary_chains import DisambiguateTags, MergeUnaryChains
from treelm.trees.heads import head_index
from treelm.trees.label import Label
from treelm.trees.tree import Tree

EVERY: list[Transform] = [
    MergeUnaryChains(),
    MergeUnaryChains(keep="top", root="TOP"),
    MergeUnaryChains(keep="tag"),
    DisambiguateTags(tags=["VP", "NP"]),
    Binarize(),
    Binarize(direction="head", horizontal_order=2),
    AnnotateParents(vertical_order=3),
    BinarizeHeadOutward(horizontal_order=0),
    Markovize(horizontal_order=None),
    RightCorner(),
    Lexicalize(tag=True),
]

HHMM = Pipeline(
    (
        AnnotateParents(vertical_order=2),
        MergeUnaryChains(),
        Binarize(direction="right", horizontal_order=2),
        DisambiguateTags(tags=["NP^S", "VP"]),
        RightCorner(),
    )
)


@pytest.mark.parametrize("character", CATEGORY_MARKS)
def test_transform_category_may_not_hold_a_mark(character: str) -> None:
    for label in (f"A{character}B", f"A{character}", f"{character}A"):
        with pytest.raises(CorpusFormatError, match="mark") as error:
            check_category(label)
        assert error.value.code == "E_RESERVED_CHAR"
        with pytest.raises(CorpusFormatError):
            check_category(Label(label, "x", parent="P"))


@pytest.mark.parametrize(
    "label",
    [
        *("NP", "-LRB-", "PRP$", "S.NF.P", "名詞", "A/B", "A_B", "``", "#"),
        *(r"SYM-\+", r"SYM-\\", r"NP[a\/b\]]", r"X-\^\@\|"),
        *(Label("SYM", "+"), Label("SYM", "^@|\\~"), Label("VP", gap=True, parent="S")),
    ],
)
def test_transform_category_may_hold_other_characters_and_escaped_marks(label: str) -> None:
    check_category(label)


def test_transform_category_check_of_chosen_marks() -> None:
    check_category("A+B", reserved="@")
    check_category("A^B+C", reserved="+")
    with pytest.raises(CorpusFormatError):
        check_category("A+B^C", reserved="+")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("A", ["A"]),
        ("A+B", ["A", "B"]),
        (r"A\+B", [r"A\+B"]),
        (r"A\\+B", [r"A\\", "B"]),
        (r"SYM-\++SYM-\+", [r"SYM-\+", r"SYM-\+"]),
    ],
)
def test_transform_split_ignores_escaped_marks(text: str, pieces: list[str]) -> None:
    assert split_unescaped(text, "+") == pieces


@pytest.mark.parametrize(
    ("label", "parts"),
    [
        ("NP", ("NP", None)),
        ("NP^S", ("NP", "S")),
        ("NP^S^ROOT", ("NP", "S^ROOT")),
        (r"SYM-\^^S", (r"SYM-\^", "S")),
        (Label("SYM", "^", parent="S"), (r"SYM-\^", "S")),
        (Label("VP", "VBD", gap=True, parent="S^ROOT"), ("VP-VBD-GAP", "S^ROOT")),
    ],
)
def test_transform_split_annotation(label: str, parts: tuple[str, str | None]) -> None:
    assert split_annotation(label) == parts


@pytest.mark.parametrize("transform", EVERY, ids=lambda transform: transform.name)
def test_transform_config_goes_through_json(transform: Transform) -> None:
    config = json.loads(json.dumps(transform.to_config()))
    assert config["name"] == transform.name
    assert transform_from_config(config) == transform
    assert hash(transform_from_config(config)) == hash(transform)
    assert TRANSFORMS[transform.name] is type(transform)


def test_transform_registry_is_complete_without_importing_the_modules() -> None:
    code = (
        "from treelm.transforms.transform import transform_from_config\n"
        "print(transform_from_config({'name': 'right_corner'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "RightCorner()\n"


def test_transform_config_is_sorted_and_stable() -> None:
    config = DisambiguateTags(tags={"b", "a", "c"}).to_config()
    assert config == {"name": "disambiguate_tags", "tags": ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"name": "binarise"}, "Available: annotate_agreement, annotate_parents, binarize"),
        ({}, "Available: annotate_agreement, annotate_parents, binarize"),
        ({"name": ["binarize"]}, "Available: annotate_agreement, annotate_parents, binarize"),
        ({"name": "binarize", "order": 2}, "'order'.*: direction, horizontal_order"),
        ({"name": "right_corner", "order": 2}, "options: none"),
        ({"name": "disambiguate_tags"}, "needs the option 'tags'"),
        ({"name": "binarize", "direction": "up"}, "right, left, head"),
    ],
)
def test_transform_config_errors_list_what_there_is(
    config: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        transform_from_config(config)


def test_transform_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Binarize().direction = "left"  # type: ignore[misc]


def test_transform_without_undo_says_so() -> None:
    @dataclass(frozen=True)
    class Shout(Transform):
        name: ClassVar[str] = "shout"

        def apply(self, tree: Tree) -> Tree:
            return tree.replace(label=tree.label.upper())

    with pytest.raises(UnsupportedTask, match="shout"):
        Shout().undo(Tree("X", "w"))
    assert [str(tree) for tree in Shout().apply_all([Tree("x", "w")])] == ["(X w)"]


def test_transform_register_refuses_a_second_of_the_same_name() -> None:
    with pytest.raises(UsageError, match="binarize"):
        register(Binarize)


@pytest.mark.parametrize("transform", EVERY, ids=lambda transform: transform.name)
def test_transform_leaves_its_input_alone(transform: Transform) -> None:
    tree = Tree("S", [Tree("NP", "he"), Tree("VP", "ran")], head=1)
    before = str(tree)
    transform.apply(tree)
    assert (str(tree), tree.head) == (before, 1)


def test_transform_pipeline_hhmm_example() -> None:
    tree = Tree.from_string("(S (NP (PRP He)) (VP (VB gave) (NP (NNP Kim)) (NP flowers)))")
    pipeline = Pipeline(HHMM.steps[:-1])
    assert str(pipeline.apply(tree)) == (
        "(S (NP+PRP^S He) (VP^S (VB^VP gave) (@VP^S>NP+NNP_NP (NP+NNP^VP Kim) (NP^VP flowers))))"
    )
    assert HHMM.undo(HHMM.apply(tree)) == tree


@given(trees())
def test_transform_pipeline_undoes_in_reverse(tree: Tree) -> None:
    assert HHMM.invertible
    assert HHMM.undo(HHMM.apply(tree)) == tree
    assert list(HHMM.apply_all([tree, tree])) == [HHMM.apply(tree)] * 2


def test_transform_pipeline_config_goes_through_json() -> None:
    config = json.loads(json.dumps(HHMM.to_config()))
    assert [step["name"] for step in config][:2] == ["annotate_parents", "merge_unary_chains"]
    assert Pipeline.from_config(config) == HHMM


def test_transform_pipeline_with_a_step_that_forgets() -> None:
    pipeline = Pipeline((MergeUnaryChains(keep="top"), Binarize(), DisambiguateTags(tags=["X"])))
    assert not pipeline.invertible
    after = pipeline.apply(Tree.from_string("(S (NP (NN a)) (X b) (C c))"))
    assert str(after) == "(S (NP~T a) (@S>X_C (X~T b) (C c)))"
    with pytest.raises(UnsupportedTask, match="merge_unary_chains"):
        pipeline.undo(after)


def test_transform_empty_pipeline_changes_nothing() -> None:
    tree = Tree.from_string("(S (A a))")
    assert Pipeline(()).apply(tree) is tree
    assert Pipeline(()).undo(tree) is tree


@pytest.mark.parametrize(
    "config",
    [
        {"name": "treelet", "temporal": 5},
        {"name": "treelet", "temporal": [1]},
        {"name": "treelet", "transforms": [["x"]]},
        {"name": "disambiguate_tags", "tags": 3},
    ],
)
def test_transform_config_of_wrong_types_is_wrong_usage(config: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        transform_from_config(config)


@pytest.mark.parametrize("odd", ["\n", "\x1b[31m", "\u2028", "\ud800"])
def test_refusals_fit_one_line_of_a_terminal(odd: str) -> None:
    """Labels come from files too; a forged one must not write lines of its own."""
    word = Tree(f"N{odd}", "a")
    refused: list[Callable[[], object]] = [
        lambda: AnnotateParents().apply(Tree(Label(f"A{odd}", parent="B"), [word])),
        lambda: RightCorner().apply(Tree(f"A{odd}", [word, word, word])),
        lambda: RightCorner().undo(Tree(f"A{odd}", [word, word])),
        lambda: Binarize().undo(Tree(f"@A{odd}", [word, word])),
        lambda: check_category(f"A{odd}@", reserved="@"),
        lambda: head_index(Tree(f"A{odd}", [word, word])),
    ]
    for refusal in refused:
        with pytest.raises(TreelmError) as caught:
            refusal()
        assert str(caught.value).isprintable()
