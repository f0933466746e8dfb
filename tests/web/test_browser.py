"""The page in a real Chromium: every control, error states, a phone, the keyboard, accessibility.

`make test-web` installs what is needed. Without playwright or Chromium these tests are skipped, and
those of accessibility without axe-core, whose file TREELM_AXE names. With TREELM_SCREENSHOTS every
view is kept as a picture in that folder.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.web.conftest import LIMITS, Client, running

from treelm.errors import ModelFileError
from treelm.models.interface.model import LanguageModel

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = os.environ.get("TREELM_CHROMIUM") or shutil.which("chromium")
if not CHROMIUM:
    pytest.skip("there is no Chromium", allow_module_level=True)
AXE = Path(os.environ.get("TREELM_AXE", "nowhere"))

expect = sync_api.expect
FERRY = "The old ferry left the harbour."
#: A question for each view that has an answer.
VIEWS: dict[str, dict[str, object]] = {
    "surprisal": {"t": f"{FERRY}\nThe rain fell."},
    "trees": {"t": FERRY, "m.trees": "pcfg"},
    "states": {"t": FERRY, "i": 3},
    "compare": {"t": FERRY, "u": "The ferry left the old harbour."},
    "judge": {"t": f"{FERRY}\nharbour ferry left."},
    "sample": {"s": 7},
}
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as play:
        found = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Page:
    """A page of the playground, and what went wrong on it."""

    def __init__(self, browser: Any, client: Client, **how: Any) -> None:
        self.context = browser.new_context(**{"viewport": WIDE, **how})
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)
        self.client, self.problems = client, []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on(
            "console",
            lambda said: self.problems.append(said.text) if said.type == "error" else None,
        )
        self.page.on(
            "request",
            lambda asked: (
                None
                if asked.url.startswith((client.address, "blob:", "data:"))
                else self.problems.append(asked.url)
            ),
        )

    def open(self, view: str = "surprisal", **parts: object) -> Any:
        self.page.goto("about:blank")
        self.page.goto(f"{self.client.address}#{urlencode({'v': view, **parts})}")
        self.page.wait_for_selector("html[data-ready]")
        return self.page

    def answered(self, view: str, **parts: object) -> Any:
        page = self.open(view, a=1, **{**VIEWS[view], **parts})
        expect(page.locator("#status")).to_contain_text("Answered in")
        return page


@pytest.fixture
def opened(browser: Any, client: Client) -> Iterator[Page]:
    found = Page(browser, client)
    yield found
    found.context.close()
    assert found.problems == []


def saved(page: Any, button: Any) -> bytes:
    with page.expect_download() as download:
        button.click()
    return Path(download.value.path()).read_bytes()


# -- views ----------------------------------------------------------------------------------


def test_bars_stand_over_the_words_of_every_model(opened: Page) -> None:
    page = opened.open()
    page.fill("#text", f"{FERRY} The rain fell.")
    page.click("#show")
    expect(page.locator("#results article")).to_have_count(2)
    chart = page.locator("#results article").first.locator("svg")
    expect(chart).to_contain_text("ferry")
    assert chart.locator("rect.c-fill-0").count() >= 7
    page.locator("#results summary").first.click()
    expect(page.locator("#results table").first).to_contain_text("harbour")


def test_models_are_chosen_and_the_end_is_shown(opened: Page) -> None:
    page = opened.answered("surprisal")
    page.get_by_label("hhmm").uncheck()
    page.get_by_label("pcfg").uncheck()
    page.get_by_label("Sentence end").check()
    page.click("#show")
    table = page.locator("#results table").first
    expect(table.locator("thead th")).to_have_count(2)
    expect(table).to_contain_text("</s>")


def test_trees_have_probabilities_and_several_are_shown(opened: Page) -> None:
    page = opened.answered("trees")
    expect(page.locator("#results article")).to_have_count(3)
    expect(page.locator("#results svg").first).to_contain_text("NP")
    expect(page.locator("#results article").nth(1)).to_contain_text("Unlike tree 1: ")
    expect(page.locator("#results table").first).to_contain_text("100.0 %")
    page.fill("#k", "1")
    page.click("#show")
    expect(page.locator("#results article")).to_have_count(1)
    page.select_option("#model", "hhmm")
    page.click("#show")
    expect(page.locator(".notes")).to_contain_text("do not know the probabilities of brackets")


def test_the_parser_is_watched_word_by_word(opened: Page) -> None:
    page = opened.answered("states", i=0)
    slider = page.locator("#slider")
    assert slider.input_value() == "0"
    expect(page.locator(".step")).to_contain_text("After “The”")
    page.get_by_label("One word on").click()
    expect(page.locator(".step")).to_contain_text("After “old”")
    expect(page.locator(".step figure svg").first).to_be_visible()
    assert "i=1" in page.url
    page.locator(".strip button").nth(4).click()
    assert slider.input_value() == "4"
    slider.press("ArrowLeft")
    expect(page.locator(".step")).to_contain_text("After “left”")
    page.get_by_label("One word back").click()
    expect(page.locator(".step")).to_contain_text("After “ferry”")
    play = page.get_by_role("button", name="Play")
    play.click()
    expect(page.locator(".step")).to_contain_text("After “.”")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page.get_by_label("One word on")).to_be_disabled()


def test_two_sentences_are_drawn_with_their_difference(opened: Page) -> None:
    page = opened.answered("compare")
    expect(page.locator("#results article")).to_have_count(3)
    expect(page.locator("#results svg").first).to_contain_text("second minus first")
    expect(page.locator(".verdict").first).to_contain_text("the second has")


def test_a_verdict_shows_the_tree_that_decided(opened: Page) -> None:
    page = opened.answered("judge")
    expect(page.locator(".verdict")).to_have_count(2)
    painted = page.locator("#results svg text.treelm-phrase").first
    assert painted.evaluate("node => node.style.fill").startswith("rgb")
    page.select_option("#model", "words")
    page.click("#show")
    expect(page.locator("#results tbody tr").first).to_be_visible()
    expect(page.locator("#results .balance").first).to_be_visible()


def test_samples_are_made_again_by_their_seed_and_looked_at(opened: Page) -> None:
    page = opened.answered("sample")
    first = page.locator(".samples").inner_text()
    page.fill("#count", "2")
    page.click("#show")
    expect(page.locator(".samples > li")).to_have_count(2)
    assert page.locator(".samples > li > span").first.inner_text() in first
    page.locator(".samples button").first.click()
    expect(page.locator("#tab-surprisal")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#status")).to_contain_text("Answered in")


def test_examples_fill_both_boxes(opened: Page) -> None:
    page = opened.open("compare")
    page.select_option("#example", label="Agreement")
    expect(page.locator("#status")).to_contain_text("Answered in")
    assert "cabinet are" in page.input_value("#text")
    assert "cabinet is" in page.input_value("#second")


def test_tokenized_text_is_split_at_spaces(opened: Page) -> None:
    page = opened.open()
    page.fill("#text", "the ferry left.")
    page.get_by_label("Tokenized already").check()
    page.click("#show")
    expect(page.locator("#results svg").first).to_contain_text("left.†")


def test_long_texts_arrive_sentence_by_sentence(opened: Page) -> None:
    page = opened.open()
    page.fill("#text", "The ferry left the harbour .\n" * 60)
    page.click("#show")
    expect(page.locator("#results article")).to_have_count(60)
    expect(page.locator("#status")).to_contain_text("Answered in")


# -- models ---------------------------------------------------------------------------------


@pytest.fixture
def lazy(
    small_models: dict[str, LanguageModel], model_folders: Path, browser: Any
) -> Iterator[Page]:
    """A page of a server that has loaded one model, and offers two more."""
    further = {name: str(model_folders / name) for name in ("pcfg", "judge")}
    with running({"ngram": small_models["ngram"]}, LIMITS, further) as client:
        found = Page(browser, client)
        yield found
        found.context.close()


def test_all_models_are_listed_and_loaded_by_hand(lazy: Page) -> None:
    page = lazy.open()
    page.click("#open-models")
    row = page.locator("#all-models li", has_text="pcfg")
    expect(row).to_contain_text("Not loaded")
    expect(row).to_contain_text("For surprisal, trees, samples")
    page.get_by_role("button", name="Load: pcfg").click()
    expect(row).to_contain_text("Loaded")
    expect(row).to_contain_text("words")
    page.keyboard.press("Escape")
    expect(page.locator("#models-dialog")).to_be_hidden()
    expect(page.locator("#open-models")).to_be_focused()
    expect(page.locator("#models")).not_to_contain_text("not loaded")
    assert lazy.problems == []


def test_a_model_is_loaded_when_it_is_chosen(
    lazy: Page, monkeypatch: pytest.MonkeyPatch, small_models: dict[str, LanguageModel]
) -> None:
    go_on = threading.Event()

    def slow(place: str) -> LanguageModel:
        assert go_on.wait(60)
        return small_models[Path(place).name]

    for offer in lazy.client.offers.values():
        monkeypatch.setattr(offer, "open", partial(slow, offer.answer.name))
    page = lazy.open()
    page.fill("#text", FERRY)
    expect(page.locator("#models")).to_contain_text("pcfg not loaded")
    assert not page.get_by_role("checkbox", name="pcfg").is_checked()
    page.get_by_role("checkbox", name="pcfg").check()
    page.click("#show")
    expect(page.locator("#status")).to_have_text("Loading pcfg…")
    expect(page.locator("#models")).to_contain_text("pcfg loading…")
    assert page.get_by_role("checkbox", name="pcfg").is_checked()
    go_on.set()
    expect(page.locator("#status")).to_contain_text("Answered in")
    expect(page.locator("#results svg").first).to_contain_text("pcfg")
    expect(page.locator("#models")).not_to_contain_text("loading")
    # A link to it does the same.
    assert "m=ngram%7Cpcfg" in page.url
    assert lazy.problems == []


def test_a_view_whose_model_is_not_loaded_loads_it(lazy: Page) -> None:
    page = lazy.answered("judge")
    expect(page.locator("#model option")).to_have_text(["judge (lsvm)"])
    expect(page.locator(".verdict")).to_have_count(2)
    page = lazy.answered("trees")
    expect(page.locator("#results article")).to_have_count(3)
    assert lazy.problems == []


def test_a_model_that_cannot_be_loaded_is_said(lazy: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> LanguageModel:
        raise ModelFileError("/secret/place is damaged", code="E_CHECKSUM")

    offer = lazy.client.offers["pcfg"]
    mended = offer.open
    monkeypatch.setattr(offer, "open", fail)
    page = lazy.open("trees", t=FERRY)
    page.click("#show")
    expect(page.get_by_role("alert")).to_contain_text("pcfg cannot be loaded (E_CHECKSUM)")
    expect(page.locator("#model")).to_contain_text("failed")
    page.click("#open-models")
    row = page.locator("#all-models li", has_text="pcfg")
    expect(row).to_contain_text("cannot be loaded")
    monkeypatch.setattr(offer, "open", mended)
    page.get_by_role("button", name="Try again: pcfg").click()
    expect(row).to_contain_text("Loaded")
    page.click("#close-models")
    page.click("#show")
    expect(page.locator("#results article")).to_have_count(3)
    assert "secret" not in page.content()


def test_a_link_to_a_model_of_another_server_says_so(opened: Page) -> None:
    page = opened.answered("surprisal", m="ngram|elsewhere")
    expect(page.get_by_role("alert")).to_contain_text("asks for elsewhere, which this server")
    expect(page.locator("#results article")).to_have_count(2)


def test_a_page_without_a_question_says_what_to_do(opened: Page) -> None:
    page = opened.open()
    expect(page.locator("#about")).to_contain_text("How unexpected each word is")
    expect(page.locator(".begin button")).to_have_count(6)
    page.get_by_role("button", name="Agreement").click()
    expect(page.locator("#status")).to_contain_text("Answered in")
    assert "cabinet are" in page.input_value("#text")
    expect(page.locator(".begin")).to_have_count(0)


# -- links, themes, files -------------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
def test_a_link_restores_everything(view: str, opened: Page) -> None:
    page = opened.answered(view)
    before, address = page.locator("#results").inner_text(), page.url
    page.click("#copy-link")
    expect(page.locator("#status")).to_contain_text("link is copied")
    assert page.evaluate("navigator.clipboard.readText()") == address
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("#status")).to_contain_text("Answered in")
    assert page.locator("#results").inner_text() == before


def test_the_theme_is_switched_and_remembered(opened: Page) -> None:
    page = opened.answered("surprisal")
    colour = "getComputedStyle(document.querySelector('#results .c-label')).fill"
    light = page.evaluate(colour)
    page.click("#theme")
    assert page.evaluate(colour) != light
    page.reload()
    expect(page.locator("#theme")).to_have_attribute("aria-pressed", "true")


def test_everything_is_exported(opened: Page) -> None:
    page = opened.answered("trees")
    first = page.locator(".exports").first
    assert saved(page, first.get_by_text("SVG")).startswith(b"<svg")
    assert saved(page, first.get_by_text("PNG")).startswith(b"\x89PNG")
    assert saved(page, first.get_by_text("TSV")).startswith(b"label\tstart\tend\tprobability")
    assert saved(page, first.get_by_text("LaTeX")).startswith(rb"\begin{forest}")
    page = opened.answered("surprisal")
    first = page.locator(".exports").first
    rows = saved(page, first.get_by_text("TSV")).decode().splitlines()
    assert rows[0].split("\t")[:2] == ["word", "hhmm"]
    assert len(rows) == 8
    assert saved(page, first.get_by_text("LaTeX")).startswith(rb"\begin{tabular}")
    page = opened.answered("judge")
    first = page.locator(".exports").first
    assert saved(page, first.get_by_text("SVG")).startswith(b"<svg")
    assert saved(page, first.get_by_text("TSV")).startswith(b"piece\tweight")
    assert saved(page, first.get_by_text("LaTeX")).startswith(rb"\begin{forest}")
    page = opened.answered("states")
    first = page.locator(".exports").first
    assert saved(page, first.get_by_text("LaTeX")).startswith(rb"\begin{tabular}{lrrr}")
    page = opened.answered("compare")
    assert saved(page, page.locator(".exports").first.get_by_text("PNG")).startswith(b"\x89PNG")
    page = opened.answered("sample", **{"m.sample": "pcfg"})
    page.locator(".samples summary").first.click()
    first = page.locator(".samples .exports").first
    assert saved(page, first.get_by_text("SVG")).startswith(b"<svg")
    last = page.locator(".exports").last
    assert saved(page, last.get_by_text("LaTeX")).startswith(rb"\begin{enumerate}")
    assert saved(page, last.get_by_text("TSV")).startswith(b"sentence\tlog_prob")


def test_markup_in_the_text_stays_text(opened: Page) -> None:
    page = opened.open()
    page.fill("#text", "<img src=x onerror=alert(1)> <b>bold</b> & ]]>")
    page.get_by_label("Tokenized already").check()
    page.click("#show")
    expect(page.locator("#results svg").first).to_contain_text("onerror")
    assert page.locator("#results img, #results b").count() == 0


# -- errors ---------------------------------------------------------------------------------


def test_what_is_missing_is_said_and_gets_the_focus(opened: Page) -> None:
    page = opened.open()
    page.click("#show")
    expect(page.get_by_role("alert")).to_contain_text("Type a sentence first")
    expect(page.locator("#text")).to_be_focused()
    page.fill("#text", "rain")
    for box in page.locator("#models input").all():
        box.uncheck()
    page.click("#show")
    expect(page.get_by_role("alert")).to_contain_text("Choose a model")
    page.click("#tab-compare")
    page.click("#show")
    expect(page.get_by_role("alert")).to_contain_text("second sentence")


def test_refusals_and_lost_servers_are_said(browser: Any, client: Client) -> None:
    found = Page(browser, client)  # a browser logs every refusal as an error
    page = found.open("trees")
    page.fill("#text", "rain " * (LIMITS.tree_words + 1))
    page.click("#show")
    expect(page.get_by_role("alert")).to_contain_text("more than 40 words")
    busy = {"status": 503, "headers": {"Retry-After": "2"}, "json": {"code": "E_BUSY", "message": "Much to do."}}  # fmt: skip
    page.route("**/api/trees", lambda route: route.fulfill(**busy))
    page.fill("#text", "rain")
    page.click("#show")
    expect(page.get_by_role("alert")).to_contain_text("Much to do. Try again in 2 seconds.")
    page.unroute("**/api/trees")
    page.route("**/api/trees", lambda route: route.abort())
    page.click("#show")
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    found.context.close()


# -- phones, keyboards, screen readers ------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_shows_everything_without_sideways_scrolling(
    view: str, browser: Any, client: Client
) -> None:
    found = Page(browser, client, viewport=PHONE, has_touch=True, is_mobile=True)
    page = found.answered(view)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    small = page.evaluate(
        "[...document.querySelectorAll('button, select, input, summary')]"
        ".filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 18).length"
    )
    assert small == 0
    found.context.close()
    assert found.problems == []


def test_the_keyboard_is_enough(opened: Page) -> None:
    page = opened.open()
    press = page.keyboard.press

    def tab_to(selector: str) -> None:
        for _ in range(60):
            if page.locator(f"{selector}:focus").count():
                return
            press("Tab")
        raise AssertionError(f"no way to {selector}")

    tab_to("#text")
    page.keyboard.type("The old ferry left.")
    press("Control+Enter")
    expect(page.locator("#status")).to_contain_text("Answered in")
    tab_to("[role=tab]")
    press("ArrowRight")
    expect(page.locator("#tab-trees")).to_be_focused()
    expect(page.locator("#status")).to_contain_text("Answered in")
    press("ArrowRight")
    expect(page.locator("#tab-states")).to_be_focused()
    expect(page.locator("#slider")).to_be_visible()
    tab_to("#slider")
    press("Home")
    expect(page.locator(".step")).to_contain_text("After “The”")
    press("ArrowRight")
    expect(page.locator(".step")).to_contain_text("After “old”")
    press("Shift+Tab")
    tab_to("#theme")
    press("Enter")
    expect(page.locator("#theme")).to_have_attribute("aria-pressed", "true")
    for _ in range(40):
        press("Shift+Tab")
        if page.locator("[role=tab]:focus").count():
            break
    press("End")
    expect(page.locator("#tab-sample")).to_be_focused()


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not here")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", [*VIEWS, "api", "models", "nothing"])
def test_the_rules_of_accessibility_are_kept(
    view: str, theme: str, browser: Any, client: Client
) -> None:
    found = Page(browser, client, color_scheme=theme, bypass_csp=True)
    if view == "api":
        page = found.page
        page.goto(f"{client.address}api")
        expect(page.locator("section").first).to_be_visible()
    elif view in ("models", "nothing"):
        page = found.open()
        expect(page.locator(".begin button").first).to_be_visible()
        if view == "models":
            page.click("#open-models")
            expect(page.locator("#all-models li").first).to_be_visible()
    else:
        page = found.answered(view)
        for folded in page.locator("details").all():
            folded.evaluate("node => { node.open = true }")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result = page.evaluate("axe.run()")
    wrong = [
        (rule["id"], [node["target"] for node in rule["nodes"]][:3])
        for rule in result["violations"]
    ]
    found.context.close()
    assert wrong == []
    assert len(result["passes"]) > 10


# -- the rest -------------------------------------------------------------------------------


def test_the_page_of_the_api_lists_every_address(opened: Page) -> None:
    page = opened.page
    page.goto(f"{opened.client.address}api")
    for name in ("surprisal", "stream", "trees", "states", "compare", "judge", "sample"):
        expect(page.get_by_role("heading", name=f"POST /api/{name}")).to_be_visible()
    asked = page.locator("section", has=page.get_by_role("heading", name="POST /api/surprisal"))
    expect(asked.locator("tbody th").first).to_have_text("text")
    expect(asked.locator("table")).to_contain_text("tokenized")


@pytest.mark.skipif("TREELM_SCREENSHOTS" not in os.environ, reason="nobody wants pictures")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_every_view_is_photographed(
    theme: str, size: dict[str, int], browser: Any, client: Client
) -> None:
    folder = Path(os.environ["TREELM_SCREENSHOTS"])
    found = Page(browser, client, viewport=size, color_scheme=theme)
    for view in VIEWS:
        page = found.answered(view)
        name = folder / f"{view}-{theme}-{size['width']}.png"
        page.screenshot(path=name, full_page=True)
        assert re.match(rb"\x89PNG", name.read_bytes())
    page = found.open()
    page.screenshot(path=folder / f"nothing-{theme}-{size['width']}.png", full_page=True)
    page.click("#open-models")
    page.screenshot(path=folder / f"models-{theme}-{size['width']}.png")
    found.context.close()
    assert found.problems == []
