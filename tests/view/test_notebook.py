"""What notebooks show."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import treelm
from treelm.corpus.sample_treebank import sample_path
from treelm.models.hhmm.model import HhmmModel
from treelm.models.hhmm.state import HhmmState
from treelm.models.interface.abilities import TopicTable
from treelm.models.interface.partial_parses import PartialParses
from treelm.models.interface.scores import SentenceScore
from treelm.models.pcfg.model import PcfgModel
from treelm.view.partial_parses import draw_partial_parses_svg, draw_partial_parses_text
from treelm.view.partial_parses_page import partial_parses_page

VOID = {"meta", "input", "br", "rect", "path"}


class Balanced(HTMLParser):
    """Checks that elements are closed in the order in which they were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def checked(html: str) -> str:
    reader = Balanced()
    reader.feed(html)
    reader.close()
    assert not reader.open
    assert len(set(reader.ids)) == len(reader.ids)
    return html


@pytest.fixture(scope="module")
def hhmm() -> HhmmModel:
    model = treelm.train("hhmm", treelm.TreeCorpus((sample_path(),)))
    assert isinstance(model, HhmmModel)
    return model


def test_models_scores_states_grammars_and_topics_show_themselves(hhmm: HhmmModel) -> None:
    assert "hhmm model" in checked(hhmm._repr_html_())
    score = checked(hhmm.score("The ferry left <b> .")._repr_html_())
    assert "log probability" in score
    assert "<svg" in score
    assert "&lt;b&gt;" in score
    _, state = hhmm.advance(hhmm.initial(), "The")
    assert isinstance(state, HhmmState)
    assert "entropy" in checked(state._repr_html_())
    [stack] = hhmm.stacks(state, 1)
    assert "awaits" in checked(stack._repr_html_())
    pcfg = treelm.train("pcfg", treelm.TreeCorpus((sample_path(),)))
    assert isinstance(pcfg, PcfgModel)
    assert "more rules" in checked(pcfg.grammar._repr_html_())
    topics = TopicTable(np.array([0.25, 0.75]), np.ones((3, 2)))
    assert checked(topics._repr_html_()).index("0.75") < topics._repr_html_().index("0.25")
    assert "margin" in checked(SentenceScore(1.0, "margin")._repr_html_())


def test_partial_parses_page_stands_alone(hhmm: HhmmModel) -> None:
    sentences = ("The old ferry left .", "It rained </script> .", "The old ferry left .", "")
    found = [hhmm.partial_parses(each, k=2) for each in dict.fromkeys(sentences)]
    page = checked(partial_parses_page(found))
    assert not re.search(r"(src|href)\s*=|https?://(?!www\.w3\.org/2000/svg)|@import|url\(", page)
    assert page.count('type="range"') == len(found)
    assert page.count("</script>") == len(found)
    assert "&lt;/script&gt;" in page
    for parses in found:
        for place, word in enumerate(parses.words, start=1):
            assert f"word {place}, " in page
            assert word.replace("<", "&lt;").replace(">", "&gt;") in page
    again = [hhmm.partial_parses(each, k=2) for each in dict.fromkeys(sentences)]
    assert partial_parses_page(again) == page


def test_partial_parses_as_text_and_svg_say_the_same(hhmm: HhmmModel) -> None:
    parses = hhmm.partial_parses("The old ferry left .", k=3)
    text, picture = draw_partial_parses_text(parses), draw_partial_parses_svg(parses)
    for step in parses.steps:
        assert f"{step.word}  {step.surprisal:.2f} bits" in text
        assert f"{step.surprisal:.2f} bits" in picture
        for each in step.trees:
            assert str(each.tree) in text
    trees = sum(len(step.trees) for step in parses.steps) + len(parses.whole)
    assert picture.count('class="treelm"') == trees
    assert text.count("[") == sum(
        1 for step in parses.steps for each in step.trees if _is_marked(parses, each)
    )


def _is_marked(parses: PartialParses, tree: object) -> bool:
    from treelm.view.partial_parses import tree_marks

    for place, step in enumerate(parses.steps):
        for each in step.trees:
            if each is tree:
                return bool(tree_marks(parses, place, each))
    raise AssertionError("the tree is of this sentence")
