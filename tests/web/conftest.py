"""Small models, a server that offers them, and a client that sends what it is told."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import treelm
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import TreelmWarning
from treelm.models.interface.model import LanguageModel
from treelm.web.limits import ServerLimits

if TYPE_CHECKING:
    from treelm.web.offered_models import OfferedModels

LIMITS = ServerLimits(
    body_bytes=64 << 10,
    words=300,
    stream_words=3000,
    sentence_words=120,
    tree_words=40,
    trees=5,
    samples=10,
    seconds=60.0,
    send_seconds=2.0,
    threads=2,
    queue=8,
)


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Sends requests to a server, one connection each."""

    def __init__(self, address: str, models: OfferedModels) -> None:
        self.address = address
        #: What the server has, so that tests can say how loading goes.
        self.offers = models._offers
        self.host, port = address.removeprefix("http://").rstrip("/").split(":")
        self.port = int(port)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())

    def get(self, path: str) -> Answer:
        return self.send("GET", path)

    def ask(self, name: str, **question: object) -> Answer:
        body = json.dumps(question).encode()
        return self.send("POST", f"/api/{name}", body, {"Content-Type": "application/json"})


@contextlib.contextmanager
def running(
    models: dict[str, LanguageModel],
    limits: ServerLimits,
    further: dict[str, str] | None = None,
    **how: Any,
) -> Iterator[Client]:
    from treelm.web.offered_models import OfferedModels
    from treelm.web.server import PlaygroundServer

    offered = OfferedModels(models, further)
    server = PlaygroundServer(offered, limits, port=0, **how)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield Client(server.address, offered)
    finally:
        server.stop()
        thread.join(60)
        assert not thread.is_alive()


def eventually(condition: Any, seconds: float = 60.0) -> bool:
    """Wait until something is true, and return whether it became so."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture(scope="session")
def small_models() -> dict[str, LanguageModel]:
    """Models of all kinds, trained on the packaged treebank in a few seconds."""
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    trees = treelm.TreeCorpus((sample_path(),))
    good = [tree.words for tree in treelm.sample_treebank() if 4 <= len(tree.words) <= 12][:60]
    bad = [tuple(reversed(words)) for words in good]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)
        return {
            "hhmm": treelm.train("hhmm", trees, beam_width=100),
            "ngram": treelm.train("ngram", trees, order=2, smoothing="kn"),
            "pcfg": treelm.train("pcfg", trees, lexicon="closed"),
            "judge": treelm.train(
                "lsvm",
                (good[:40], bad[:40]),
                tuning=(good[40:], bad[40:]),
                trees=trees,
                rounds=1,
                regularization=0.01,
            ),
            "words": treelm.train("trigram_svm", (good, bad), regularization=0.01),
        }


@pytest.fixture(scope="session")
def client(small_models: dict[str, LanguageModel]) -> Iterator[Client]:
    with running(small_models, LIMITS) as found:
        yield found


@pytest.fixture(scope="session")
def model_folders(
    small_models: dict[str, LanguageModel], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with the model folders of some of them."""
    folder = tmp_path_factory.mktemp("served")
    for name in ("ngram", "pcfg", "judge"):
        small_models[name].save(folder / name)
    return folder
