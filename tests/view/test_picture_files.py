"""Files of pictures, and what the charts of surprisal and parser states show."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.command_line import assert_fine, assert_refused, treelm
from tests.models.ngram_models import small_ngram

from treelm.errors import UsageError
from treelm.view.chart_page import page
from treelm.view.parser_states import ParserState, draw_parser_states_svg
from treelm.view.picture_files import check_picture, check_picture_or_text, picture_content
from treelm.view.surprisal_chart import WordBar, draw_surprisal

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(picture).iter(f"{SVG}text")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "ngram"
    small_ngram(order=2).save(folder)
    return folder


@pytest.mark.parametrize("name", ["x.png", "x.pdf", "x.PNG", "x.jpg", "x", "x.txt"])
def test_other_formats_are_refused_before_the_work(model: Path, tmp_path: Path, name: str) -> None:
    done = treelm("surprisal", "-m", model, "no-such-file", "--plot", tmp_path / name)
    message = assert_refused(done, 2, "SVG (.svg)", "(.html)")
    assert ("rsvg-convert -f" in message) == (Path(name).suffix.lower() in (".png", ".pdf"))
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError) as caught:
        check_picture(name)
    assert caught.value.code == "E_PICTURE_FORMAT"


def test_parser_states_are_text_unless_the_name_is_that_of_a_picture(
    model: Path, tmp_path: Path
) -> None:
    check_picture_or_text("x")
    check_picture_or_text("x.txt")
    done = treelm("surprisal", "-m", model, "no-such-file", "--parser-states", tmp_path / "x.png")
    assert_refused(done, 2, ".png files are not written")


def test_plots_say_what_they_show_on_one_scale_with_unknown_words(
    model: Path, tmp_path: Path
) -> None:
    text = b"the ferry left\nthe frumious boat\n"
    svg, html = tmp_path / "x.svg", tmp_path / "x.html"
    for path in (svg, html):
        done = treelm("surprisal", "-m", model, "--plot", path, "-o", tmp_path / "o", stdin=text)
        assert_fine(done)
    picture = svg.read_text(encoding="utf-8")
    assert picture in html.read_text(encoding="utf-8")
    assert "<title>Surprisal of each word in bits (ngram model)</title>" in html.read_text()
    root = ET.fromstring(picture)
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    assert titles[0] == "Surprisal of each word in bits (ngram model)"
    panels = root.findall(f"{SVG}svg")
    assert len(panels) == 2
    ticks = [
        [t.text for t in panel.iter(f"{SVG}text") if t.get("text-anchor") == "end"]
        for panel in panels
    ]
    assert ticks[0] == ticks[1]
    shown = texts(picture)
    assert "frumious†" in shown
    assert "ferry" in shown
    assert sum("word unknown to the model" in each for each in shown) == 1
    rows = (tmp_path / "o").read_text().splitlines()[1:]
    for bits in (float(row.split("\t")[4]) for row in rows):
        assert f"{bits:.1f}" in shown


def test_values_are_readable_without_features_that_renderers_lack() -> None:
    picture = draw_surprisal([("a", [WordBar("x", 1.25)])], title="x")
    assert "1.2" in texts(picture)
    assert "paint-order" not in picture
    style = ET.fromstring(page("t", "d", 10, 10, [])).find(f"{SVG}style")
    assert style is not None
    assert re.search(r"c-value[^}]*stroke", style.text or "") is None


def test_panels_share_an_axis_if_told_its_end() -> None:
    low, high = (
        draw_surprisal([("a", [WordBar("x", value)])], title="x", highest=8.0) for value in (1, 8)
    )
    assert [t for t in texts(low) if t == "8"] == [t for t in texts(high) if t == "8"] == ["8"]


def test_stacks_of_parser_states_are_explained() -> None:
    state = ParserState("go", 1.0, (("S/VP; VB", 1.0),))
    shown = " ".join(texts(draw_parser_states_svg([state], title="go")))
    assert "A/B: an A that still lacks a B" in shown
    assert "the outermost first" in shown


def test_a_page_has_a_safe_title() -> None:
    content = picture_content("x.html", "<svg/>", "</title><script>").decode()
    assert "<script>" not in content
