"""Every registered transform keeps the laws of its kind, with every option that changes its work."""

from __future__ import annotations

import pytest

from treelm.testing.contracts import Law, check_contract, law, laws
from treelm.testing.laws import transform_cases
from treelm.transforms.agreement import AnnotateAgreement
from treelm.transforms.binarize import Binarize
from treelm.transforms.clean import Clean
from treelm.transforms.lexicalize import Lexicalize
from treelm.transforms.markovize import AnnotateParents, BinarizeHeadOutward, Markovize
from treelm.transforms.pipelines import PIPELINES, PipelineOptions, named_pipeline
from treelm.transforms.right_corner import RightCorner
from treelm.transforms.transform import TRANSFORMS, Pipeline, Transform, load_built_in
from treelm.transforms.treelet import TREELET_TRANSFORMS, Treelet
from treelm.transforms.unary_chains import DisambiguateTags, LimitUnaryChains, MergeUnaryChains
from treelm.trees.tree import Tree

SUBJECTS: list[Transform] = [
    Clean(),
    Clean(profile="neutral"),
    Treelet(temporal=frozenset()),
    Treelet(temporal=frozenset({"morning"}), vp_label="highest"),
    *(Treelet(transforms=frozenset({name}), temporal=frozenset()) for name in TREELET_TRANSFORMS),
    MergeUnaryChains(),
    MergeUnaryChains(keep="top"),
    MergeUnaryChains(keep="tag"),
    DisambiguateTags(tags=frozenset({"NN", ","})),
    *(
        Binarize(direction=direction, horizontal_order=order)
        for direction in ("left", "right", "head")
        for order in (None, 0, 2)
    ),
    AnnotateAgreement(),
    AnnotateParents(vertical_order=1),
    AnnotateParents(vertical_order=3),
    BinarizeHeadOutward(horizontal_order=2),
    Markovize(),
    Markovize(horizontal_order=0, vertical_order=1),
    Lexicalize(),
    Lexicalize(tag=True),
    LimitUnaryChains(),
    LimitUnaryChains(most=1),
]


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_transform_keeps_its_contract(subject: Transform) -> None:
    check_contract("transform", subject, transform_cases())


def test_right_corner_keeps_its_contract_on_binary_trees() -> None:
    prepare = Pipeline((MergeUnaryChains(), Binarize()))
    check_contract("transform", RightCorner(), prepare.apply_all(transform_cases()))


def test_every_registered_transform_is_tested() -> None:
    load_built_in()
    assert {type(subject).name for subject in SUBJECTS} | {"right_corner"} == set(TRANSFORMS)


@pytest.mark.parametrize("name", PIPELINES)
def test_pipeline_survives_its_description_and_is_undone(name: str) -> None:
    pipeline = named_pipeline(name, PipelineOptions(direction="head"))
    again = Pipeline.from_config(pipeline.to_config())
    for tree in transform_cases():
        done = pipeline.apply(tree)
        assert again.apply(tree) == done
        assert done.words == tree.words
        if pipeline.invertible:
            assert pipeline.undo(done) == tree
    assert list(pipeline.apply_all(transform_cases())) == [
        pipeline.apply(tree) for tree in transform_cases()
    ]


def test_contract_names_the_law_that_is_broken() -> None:
    class Reverses(Lexicalize):
        def apply(self, tree: Tree) -> Tree:
            return Tree(tree.label, tree.children[::-1]) if tree.is_phrasal else tree

    with pytest.raises(AssertionError, match="breaks transform yield: The words"):
        check_contract("transform", Reverses(), [Tree("A", [Tree("B", "b"), Tree("C", "c")])])


def test_laws_are_listed_and_codes_are_unique() -> None:
    assert [each.code for each in laws("transform")][:2] == ["purity", "yield"]
    assert all(isinstance(each, Law) and each.statement for each in laws("executor"))
    with pytest.raises(ValueError, match="already has a law purity"):
        law("transform", "purity")(lambda _subject, _case: None)
    with pytest.raises(ValueError, match="executor, incremental, model, system, transform"):
        laws("nonsense")
