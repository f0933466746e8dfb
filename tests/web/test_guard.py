"""Hostile requests: the server refuses them, stays up, and says nothing about its machine."""

from __future__ import annotations

import json
import socket
import threading
import time
from dataclasses import replace

import pytest
from tests.web.conftest import LIMITS, Client, eventually, running

from treelm.models.interface.model import LanguageModel

JSON = {"Content-Type": "application/json"}


def raw(client: Client, sent: bytes, *, wait: float = 30.0) -> bytes:
    """Send bytes as they are, and return everything until the server closes the connection."""
    with socket.create_connection((client.host, client.port), timeout=wait) as connection:
        connection.sendall(sent)
        found = b""
        while piece := connection.recv(65536):
            found += piece
        return found


def test_every_answer_has_safe_headers(client: Client) -> None:
    for path in ("/", "/api/models", "/nothing", "/playground.js"):
        headers = client.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Server"] is None


def test_large_bodies_are_refused(client: Client) -> None:
    body = json.dumps({"text": "a " * (5 << 20)}).encode()
    # Whoever waits for leave to send it is told at once.
    head = f"POST /api/surprisal HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((client.host, client.port), timeout=30) as connection:
        connection.sendall(head.replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n").encode())
        assert b" 413 " in connection.recv(4096).splitlines()[0]


def test_whoever_sends_too_much_hears_so(client: Client) -> None:
    body = json.dumps({"text": "a " * (5 << 20)}).encode()
    answer = client.send("POST", "/api/surprisal", body, JSON)
    assert (answer.status, answer.json["code"]) == (413, "E_BODY_SIZE")


def test_bodies_without_a_length_are_counted(client: Client) -> None:
    head = b"POST /api/surprisal HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    piece = b"8000\r\n" + b"a" * 0x8000 + b"\r\n"
    answer = raw(client, head + 4 * piece)
    assert b" 413 " in answer.splitlines()[0]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\x00\xff\xfe\x80" * 50, b"[1, 2", b'{"text": "a"', b"\xef\xbb\xbf{}"],
    ids=["nothing", "half", "binary", "list", "open", "bom"],
)
def test_what_is_no_json_is_refused(body: bytes, client: Client) -> None:
    answer = client.send("POST", "/api/surprisal", body, JSON)
    assert answer.status in (400, 422)
    assert answer.json["code"] in ("E_JSON", "E_USAGE")


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"null", b"1e999", b"[" * 20000])
def test_json_of_another_kind_is_refused(body: bytes, client: Client) -> None:
    answer = client.send("POST", "/api/surprisal", body, JSON)
    assert answer.status in (400, 422)


def test_forms_of_other_sites_are_refused(client: Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        headers = {"Content-Type": kind} if kind else {}
        assert client.send("POST", "/api/sample", b"{}", headers).status == 415


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2fapp.py",
        "/page/index.html",
        "/playground.js/../app.py",
        "//etc/passwd",
        "/api/../app.py",
        "/index.html%00.js",
        "/api/models/..",
    ],
)
def test_paths_lead_nowhere(path: str, client: Client) -> None:
    answer = client.get(path)
    assert answer.status == 404
    assert set(answer.json) == {"code", "message"}


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(method: str, client: Client) -> None:
    assert client.send(method, "/api/models").status == 405


def test_other_names_are_refused_where_only_this_machine_asks(client: Client) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", ""):
        assert client.send("GET", "/api/models", headers={"Host": host}).status == 421
    for host in ("localhost", "LOCALHOST:8700", "127.0.0.1:1", "[::1]:8700"):
        assert client.send("GET", "/api/models", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 10,
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /api/sample HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
    ],
    ids=["tls", "headers", "version", "length"],
)
def test_what_is_no_http_is_refused(sent: bytes, client: Client) -> None:
    assert raw(client, sent).startswith(b"HTTP/1.1 4")
    assert client.get("/api/health").status == 200


def test_slow_senders_of_headers_are_cut_off(client: Client) -> None:
    started = time.monotonic()
    answer = raw(client, b"GET / HTTP/1.1\r\nHost: 127.0")
    assert b" 408 " in answer.splitlines()[0]
    assert time.monotonic() - started >= 0.9 * LIMITS.send_seconds


def test_connections_without_a_word_are_cut_off(client: Client) -> None:
    assert b" 408 " in raw(client, b"").splitlines()[0]


def test_slow_senders_of_bodies_are_cut_off(client: Client) -> None:
    head = b"POST /api/sample HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    answer = raw(client, head)
    assert b" 408 " in answer.splitlines()[0]
    assert b"E_SLOW" in answer


def test_a_client_that_leaves_costs_nothing(client: Client) -> None:
    body = json.dumps({"text": "The old ferry left . " * 8, "tokenized": True}).encode()
    head = f"POST /api/surprisal HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    for _ in range(5):
        with socket.create_connection((client.host, client.port)) as connection:
            connection.sendall(head.encode() + body)
    assert eventually(lambda: client.get("/api/health").json["requests"] == 0)


def test_work_for_a_client_that_left_is_given_up(
    small_models: dict[str, LanguageModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    going, calls = threading.Event(), []
    real = type(small_models["ngram"]).surprisal

    def wait(self: LanguageModel, *given: object, **named: object) -> object:
        calls.append(given)
        going.wait(60)
        return real(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(type(small_models["ngram"]), "surprisal", wait)
    with running({"ngram": small_models["ngram"]}, LIMITS) as client:
        body = json.dumps({"text": "rain\n" * 100}).encode()
        head = f"POST /api/surprisal HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection((client.host, client.port)) as connection:
            connection.sendall(head.encode() + body)
            assert eventually(lambda: len(calls) == 1)
        time.sleep(0.5)  # the server hears that the client has left
        going.set()
        assert eventually(lambda: client.get("/api/health").json["requests"] == 0)
        assert len(calls) < 100


def test_no_answer_names_a_path_of_the_machine(
    small_models: dict[str, LanguageModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(2, "No such file or directory", "/secret/place/model")

    monkeypatch.setattr(type(small_models["ngram"]), "surprisal", fail)
    with running({"ngram": small_models["ngram"]}, LIMITS) as client:
        answer = client.ask("surprisal", text="rain fell")
        assert answer.status == 500
        assert b"secret" not in answer.body
        assert answer.json["code"] == "E_FAILED"
        assert client.get("/api/health").status == 200


def test_a_full_queue_is_answered_503(
    small_models: dict[str, LanguageModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    going = threading.Event()
    real = type(small_models["ngram"]).surprisal

    def wait(self: LanguageModel, *given: object, **named: object) -> object:
        going.wait(60)
        return real(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(type(small_models["ngram"]), "surprisal", wait)
    limits = replace(LIMITS, threads=1, queue=1)
    with running({"ngram": small_models["ngram"]}, limits) as client:
        found: list[int] = []
        threads = [
            threading.Thread(
                target=lambda: found.append(client.ask("surprisal", text="rain").status)
            )
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        assert eventually(lambda: client.get("/api/health").json["requests"] == 2)
        turned_away = client.ask("surprisal", text="rain")
        assert turned_away.status == 503
        assert int(turned_away.headers["Retry-After"]) > 0
        assert turned_away.json["code"] == "E_BUSY"
        going.set()
        for thread in threads:
            thread.join(60)
        assert found == [200, 200]
        assert eventually(lambda: client.get("/api/health").json["requests"] == 0)


def test_whoever_waited_too_long_is_turned_away(
    small_models: dict[str, LanguageModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    going, calls = threading.Event(), []
    real = type(small_models["ngram"]).surprisal

    def wait(self: LanguageModel, *given: object, **named: object) -> object:
        calls.append(given)
        going.wait(60)
        return real(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(type(small_models["ngram"]), "surprisal", wait)
    limits = replace(LIMITS, threads=1, seconds=4.0)
    with running({"ngram": small_models["ngram"]}, limits) as client:
        first = threading.Thread(target=lambda: client.ask("surprisal", text="rain"))
        first.start()
        assert eventually(lambda: len(calls) == 1)
        answer = client.ask("surprisal", text="rain")
        assert (answer.status, answer.json["code"]) == (503, "E_BUSY")
        going.set()
        first.join(60)
        assert eventually(lambda: client.get("/api/health").json["requests"] == 0)
        assert len(calls) == 1  # what nobody waits for is not begun


def test_work_that_takes_too_long_is_given_up(
    small_models: dict[str, LanguageModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    going = threading.Event()
    real = type(small_models["ngram"]).surprisal

    def wait(self: LanguageModel, *given: object, **named: object) -> object:
        going.wait(60)
        return real(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(type(small_models["ngram"]), "surprisal", wait)
    with running({"ngram": small_models["ngram"]}, replace(LIMITS, seconds=0.5)) as client:
        answer = client.ask("surprisal", text="rain\nfell")
        assert (answer.status, answer.json["code"]) == (503, "E_TOO_SLOW")
        # Its thread is taken until the model returns, and then free again.
        assert client.get("/api/health").json["requests"] == 1
        going.set()
        assert eventually(lambda: client.get("/api/health").json["requests"] == 0)
        assert client.ask("surprisal", text="rain").status == 200
