"""How soon the playground is there: its first paint, and the answer to a sentence of 25 words.

    python benchmarks/page.py --rounds 20

It starts `treelm serve` with the ready models that are installed, opens the page in the system's
Chromium (or what TREELM_CHROMIUM names) with an empty cache, and asks over HTTP and on the page. It
prints one JSON object: milliseconds (median, and the longest), how many other programs wanted a
core meanwhile, and the processor time that the server had for each answer.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

#: 25 words, the full stop included; ten rounds of a question ask ten sentences of their own, so
#: that no model remembers them.
SENTENCE = (
    "{name} said that the small {noun} which met in the old town early last week had decided to "
    "close the bridge near the market ."
)
NAMES = ("John", "Mary", "Peter", "Anna", "Paul", "Susan", "George", "Helen", "Robert", "Alice")
NOUNS = ("committee", "family", "company", "council", "group", "party", "club")
QUESTIONS: dict[str, tuple[str, dict[str, object]]] = {
    "en-hhmm surprisal": ("surprisal", {"models": ["en-hhmm"], "formats": ["svg", "latex"]}),
    "en-hhmm states": ("states", {"model": "en-hhmm", "formats": ["svg", "latex"]}),
    "en-parser trees": ("trees", {"model": "en-parser", "k": 3, "formats": ["svg", "latex"]}),
    "en-judge verdict": ("judge", {"model": "en-judge", "formats": ["svg", "latex"]}),
}


def text(place: int) -> str:
    """Return a sentence of 25 words."""
    noun = NOUNS[place // len(NAMES) % len(NOUNS)]
    return SENTENCE.format(name=NAMES[place % len(NAMES)], noun=noun)


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def summary(milliseconds: list[float]) -> dict[str, float]:
    """Return the median and the longest."""
    return {"median": round(statistics.median(milliseconds)), "longest": round(max(milliseconds))}


def over_http(port: int, name: str, question: dict[str, object], place: int) -> float:
    """Return the milliseconds of an answer, connection included."""
    body = json.dumps({"text": text(place), "tokenized": True, **question})
    begun = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", f"/api/{name}", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    response.read()
    connection.close()
    if response.status != 200:
        raise SystemExit(f"{name} was answered {response.status}")
    return 1000 * (time.perf_counter() - begun)


def on_the_page(port: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return how soon Chromium paints the page, and shows answers."""
    from playwright.sync_api import expect, sync_playwright

    address = f"http://127.0.0.1:{port}/"
    found: dict[str, list[float]] = {"first paint": [], "page is loaded": []}
    with sync_playwright() as play:
        chromium = os.environ.get("TREELM_CHROMIUM") or shutil.which("chromium")
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for place in range(rounds):
            context = browser.new_context()
            page = context.new_page()
            page.goto(address)
            page.wait_for_selector("html[data-ready]")
            page.wait_for_timeout(300)
            found["first paint"].append(_entry(page, "paint", "first-contentful-paint"))
            found["page is loaded"].append(_entry(page, "navigation", ""))
            for view, key, model in (
                ("surprisal", "m", "en-hhmm"),
                ("trees", "m.trees", "en-parser"),
            ):
                shown_text = text(len(NAMES) * len(QUESTIONS) + place)
                asked = urlencode({"v": view, "t": shown_text, "z": 1, key: model, "a": 1})
                page.goto("about:blank")
                page.goto(f"{address}#{asked}")
                expect(page.locator("#status")).to_contain_text("Answered in", timeout=60_000)
                shown = re.search(r"(\d+) ms", page.inner_text("#status"))
                found.setdefault(f"{model} {view} shown", []).append(
                    float(shown[1] if shown else 0)
                )
            context.close()
        browser.close()
    return {name: summary(values) for name, values in found.items() if any(values)}


def _entry(page: Any, kind: str, name: str) -> float:
    script = """([kind, name]) => {
        const entries = performance.getEntriesByType(kind);
        const found = entries.find((each) => !name || each.name === name);
        return found ? (found.loadEventEnd || found.startTime) : 0;
    }"""
    return float(page.evaluate(script, [kind, name]))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-m", "--model", action="append", default=[], help="instead of ready ones")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--no-browser", action="store_true", help="ask over HTTP alone")
    options = parser.parse_args()
    command = [sys.executable, "-m", "treelm", "serve", "--no-ready", "--port", "0"]
    for folder in options.model:
        command += ["-m", folder]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            said = re.search(r"serving (.+) at http://[^:]+:(\d+)/", server.stderr.readline())
            if not said:
                raise SystemExit("the server did not start")
            models, port = said[1].split(", "), int(said[2])
            found: dict[str, Any] = {"load before": os.getloadavg()[0]}
            for number, (label, (name, question)) in enumerate(QUESTIONS.items()):
                if label.split()[0] not in models:
                    continue
                before = processor_seconds(server.pid)
                taken = [
                    over_http(port, name, question, len(NAMES) * number + place)
                    for place in range(options.rounds)
                ]
                used = 1000 * (processor_seconds(server.pid) - before) / options.rounds
                found[label] = {**summary(taken), "processor": round(used)}
            if not options.no_browser:
                found.update(on_the_page(port, options.rounds))
            found["load after"] = os.getloadavg()[0]
        finally:
            server.terminate()
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
