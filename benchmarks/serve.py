"""The playground under load: many clients at once, with questions of all sizes, for minutes.

    python benchmarks/serve.py -m models/hhmm -m models/parser --clients 200 --seconds 120

It starts `treelm serve` on this machine, asks it, and prints one JSON object: how many requests had
which status, how long answers took, and how much memory the server had over time. A request that is
answered 503 is asked again after as many seconds as the server says, by which nothing is failed:
that is what the queue is for. With --hostile some clients send what no honest one does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

TEXT = (
    "the old horse raced past the barn near the river and the children who were watching the boats "
    "that came from the small island in spring told their mother about it before dinner was ready"
)


class Answer(NamedTuple):
    status: int
    retry_after: float
    body: bytes


async def send(port: int, head: str, body: bytes = b"") -> Answer:
    """Send one request and return its answer; the connection is closed after it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head.encode() + body)
        await writer.drain()
        whole = await reader.read()
    finally:
        writer.close()
    top, _, content = whole.partition(b"\r\n\r\n")
    status = int(top.split(b" ", 2)[1]) if top.startswith(b"HTTP/1.1 ") else 0
    after = re.search(rb"retry-after: (\d+)", top)
    return Answer(status, float(after[1]) if after else 0.0, content)


def get(path: str) -> str:
    """Return the head of a request without a body."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


def post(path: str, question: object) -> tuple[str, bytes]:
    """Return the head and the body of a request."""
    body = json.dumps(question).encode()
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n",
        body,
    )


def sentence(chance: random.Random, most: int) -> str:
    """Return a sentence that is most often short."""
    length = min(most, 3 + int(chance.expovariate(1 / 12)))
    return " ".join(chance.choices(TEXT.split(), k=length)) + " ."


def question(chance: random.Random, views: dict[str, list[str]]) -> tuple[str, dict[str, Any]]:
    """Return an address and a question that the models can answer."""
    kinds = [kind for kind, models in views.items() if models]
    view = chance.choice([*kinds, "surprisal", "compare"] if views["surprisal"] else kinds)
    formats = ["svg", "latex"] if chance.random() < 0.5 else []
    if view == "compare":
        return view, {
            "first": sentence(chance, 40),
            "second": sentence(chance, 40),
            "formats": formats,
        }
    model = chance.choice(views[view])
    if view == "sample":
        return view, {"model": model, "count": chance.randint(1, 10), "max_words": 30}
    if view == "surprisal":
        text = "\n".join(sentence(chance, 60) for _ in range(chance.choice((1, 1, 2, 8))))
        return ("stream" if chance.random() < 0.1 else view), {"text": text, "formats": formats}
    if view == "judge":
        return view, {"text": sentence(chance, 40), "model": model, "formats": formats}
    return view, {"text": sentence(chance, 40), "model": model, "k": 3, "formats": formats}


#: What hostile clients send, and the statuses that it may be answered with: 503 if the server has
#: too much to do to look at it.
HOSTILE: list[tuple[str, str, bytes, set[int]]] = [
    ("10 MB", *post("/api/surprisal", {"text": "a " * (5 << 20)}), {413}),
    ("5,000 words", *post("/api/surprisal", {"text": "a " * 5000}), {413, 503}),
    ("binary", post("/api/trees", "")[0].replace(": 2\r", ": 64\r"), bytes(range(192, 256)), {400}),
    ("wrong JSON", *post("/api/trees", ["no", {"object": 1}]), {422}),
    ("path", get("/../../etc/passwd"), b"", {404}),
    ("half a header", "GET / HTTP/1.1\r\nHost: 127.0", b"", {408}),
    ("half a body", post("/api/sample", {})[0].replace(": 2\r", ": 99\r"), b"{", {408}),
    ("unknown model", *post("/api/trees", {"text": "a", "model": "/etc/passwd"}), {404, 503}),
]  # fmt: skip


class Load:
    """Clients, and what was answered to them."""

    def __init__(self, port: int, views: dict[str, list[str]], end: float) -> None:
        self.port, self.views, self.end = port, views, end
        self.statuses: Counter[int] = Counter()
        self.failures: Counter[str] = Counter()
        #: Streams that ended early, for the reasons of a 503, which came too late for a status.
        self.late: Counter[str] = Counter()
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.hostile: dict[str, Counter[int]] = defaultdict(Counter)

    async def client(self, seed: int) -> None:
        """Ask until the time is over."""
        chance = random.Random(seed)
        await asyncio.sleep(chance.random())
        while time.monotonic() < self.end:
            name, asked = question(chance, self.views)
            started = time.monotonic()
            try:
                found = await send(self.port, *post(f"/api/{name}", asked))
            except OSError as error:
                self.failures[f"{name}: {type(error).__name__}"] += 1
                await asyncio.sleep(0.5)
                continue
            self.statuses[found.status] += 1
            if found.status == 200:
                self.seconds[name].append(time.monotonic() - started)
                if name == "stream" and b'"code"' in found.body.splitlines()[-1]:
                    self.late[json.loads(found.body.splitlines()[-1])["code"]] += 1
            elif found.status == 503 and found.retry_after > 0:
                await asyncio.sleep(found.retry_after * (0.5 + chance.random()))
            else:
                self.failures[f"{name}: {found.status} {found.body[:80].decode()}"] += 1
            await asyncio.sleep(chance.random() * 0.5)  # people look at what they get

    async def attacker(self, seed: int) -> None:
        """Send what no honest client sends, and look at the answers."""
        chance = random.Random(seed)
        while time.monotonic() < self.end:
            name, head, body, allowed = chance.choice(HOSTILE)
            try:
                found = await send(self.port, head, body)
            except OSError:
                # A body that is refused need not be taken to its end.
                self.hostile[name][-1] += 1
                continue
            self.hostile[name][found.status] += 1
            if found.status not in allowed:
                self.failures[f"{name}: {found.status}"] += 1
            await asyncio.sleep(0.2 + chance.random())


def resident_megabytes(process: int) -> float:
    """Return the memory of a process, without the files of models that are mapped into it."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def processor_seconds(process: int) -> float:
    """Return the time that a process has worked."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(options: argparse.Namespace, port: int, process: int) -> dict[str, Any]:
    """Return what was measured."""
    models = json.loads((await send(port, get("/api/models"))).body)["models"]
    kinds = ("surprisal", "trees", "states", "judge", "sample")
    views = {kind: [each["name"] for each in models if kind in each["tasks"]] for kind in kinds}
    load = Load(port, views, time.monotonic() + options.seconds)
    before = processor_seconds(process)
    tasks = [asyncio.create_task(load.client(seed)) for seed in range(options.clients)]
    if options.hostile:
        tasks += [asyncio.create_task(load.attacker(seed)) for seed in range(8)]
    memory = []
    while time.monotonic() < load.end:
        memory.append(round(resident_megabytes(process), 1))
        await asyncio.sleep(max(1.0, options.seconds / 24))
    await asyncio.gather(*tasks)
    memory.append(round(resident_megabytes(process), 1))
    everything = sorted(time for times in load.seconds.values() for time in times)
    return {
        "clients": options.clients,
        "seconds": options.seconds,
        "models": [each["name"] for each in models],
        "statuses": {str(status): count for status, count in sorted(load.statuses.items())},
        "failures": dict(load.failures),
        "streams_ended_early": dict(load.late),
        "answers_per_second": round(len(everything) / options.seconds, 1),
        "milliseconds": {
            "all": percentiles(everything),
            **{name: percentiles(sorted(times)) for name, times in sorted(load.seconds.items())},
        },
        "server_processor_seconds": round(processor_seconds(process) - before, 1),
        "resident_megabytes": memory,
        "hostile": {name: {str(k): v for k, v in c.items()} for name, c in load.hostile.items()},
    }


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Return the median and the 99th percentile, in milliseconds."""
    if not seconds:
        return {}
    p99 = seconds[min(len(seconds) - 1, int(0.99 * len(seconds)))]
    median = statistics.median(seconds)
    return {"n": len(seconds), "p50": round(1e3 * median, 1), "p99": round(1e3 * p99, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-m", "--model", action="append", required=True, help="model folder")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--threads", type=int, default=2, help="threads of the server")
    parser.add_argument("--hostile", action="store_true", help="eight clients more, hostile ones")
    options = parser.parse_args()
    command = [sys.executable, "-m", "treelm", "serve", "--no-ready", "--port", "0"]
    command += ["--threads", str(options.threads)]
    for folder in options.model:
        command += ["-m", folder]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            said = server.stderr.readline()
            address = re.search(r"http://[\d.]+:(\d+)/", said)
            if address is None:
                sys.exit(said + server.stderr.read())
            found = asyncio.run(measure(options, int(address[1]), server.pid))
        finally:
            server.terminate()
        complaints = server.stderr.read()
    found["exit_status"] = server.returncode
    found["complaints"] = complaints[-2000:]
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
