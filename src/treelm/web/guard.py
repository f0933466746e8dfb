"""What stands before the application: hosts, sizes, slow senders, and safe headers.

It is plain ASGI, so that a request is refused before anything of it is parsed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from treelm.web.limits import ServerLimits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

#: Everything comes from this server; pictures that are exported pass through blob addresses.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: Bytes of a body that are thrown away so that its sender hears why it is refused.
_MOST_DISCARDED = 16 << 20
_MOST_HEADER_BYTES = 16 << 10
_HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
    b"cache-control": b"no-cache",
}


class _Refused(Exception):
    """A request that is not taken."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Guard:
    """Lets requests through that are small, quick and meant for this server.

    Args:
        app: What answers them.
        limits: What is too much.
        hosts: Names by which the server may be called; None for any. Where only this machine can
            reach it, a page of somebody else could have its own name lead here.
    """

    def __init__(self, app: Any, limits: ServerLimits, hosts: Iterable[str] | None) -> None:
        self._app: Application = app
        self._limits = limits
        self._hosts = None if hosts is None else frozenset(hosts)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = ended = False

        async def guarded(message: Message) -> None:
            nonlocal begun, ended
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = _with_safe_headers(message.get("headers", ()))
            elif not message.get("more_body", False):
                ended = True
            # A client that takes nothing is cut off: the error closes its connection.
            await asyncio.wait_for(send(message), self._limits.send_seconds)

        try:
            headers = dict(scope["headers"])
            self._check(scope["method"], headers)
            body = await self._body(headers, receive)
            client = _Client(body, receive)
            answering = asyncio.ensure_future(self._app(scope, client.receive, guarded))
            leaving = asyncio.ensure_future(client.leaves())
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
            if not ended and not answering.done():
                answering.cancel()  # nobody waits for it
                await asyncio.wait((answering,))
                return
            await answering
        except _Refused as refused:
            await guarded(_start(refused.status))
            await guarded(_json_body({"code": refused.code, "message": str(refused)}))
        except TimeoutError:
            raise ConnectionResetError("the client takes no bytes") from None
        except Exception:
            # What went wrong may name files of this machine: it is for its owner alone.
            sys.stderr.write(traceback.format_exc())
            if begun:
                raise
            await guarded(_start(500))
            failure = {"code": "E_FAILED", "message": "the server failed; its log says why."}
            await guarded(_json_body(failure))

    def _check(self, method: str, headers: dict[bytes, bytes]) -> None:
        if sum(map(len, headers)) + sum(map(len, headers.values())) > _MOST_HEADER_BYTES:
            raise _Refused(431, "E_BODY_SIZE", "the headers are too long.")
        host = headers.get(b"host", b"").decode("latin-1")
        if self._hosts is not None and _without_port(host) not in self._hosts:
            raise _Refused(421, "E_HOST", "this server is not called by that name.")
        if method not in ("GET", "HEAD", "POST"):
            raise _Refused(405, "E_METHOD", "this server knows GET and POST.")
        kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip()
        # Other sites can make a browser send text and forms here, but not JSON.
        if method == "POST" and kind.lower() != "application/json":
            raise _Refused(415, "E_CONTENT_TYPE", "send JSON: Content-Type: application/json.")

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        most = self._limits.body_bytes
        too_large = _Refused(413, "E_BODY_SIZE", f"a request has at most {most} bytes.")
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or len(declared) > 18:
            raise _Refused(400, "E_BODY_SIZE", "Content-Length is no number.")
        # One that waits for leave to send is told at once.
        if int(declared) > most and b"expect" in headers:
            raise too_large
        loop = asyncio.get_running_loop()
        end = loop.time() + self._limits.send_seconds
        found, size, more = bytearray(), 0, True
        while more:
            try:
                message = await asyncio.wait_for(receive(), max(0.01, end - loop.time()))
            except TimeoutError:
                if max(size, int(declared)) > most:
                    raise too_large from None
                raise _Refused(408, "E_SLOW", "the request was sent too slowly.") from None
            if message["type"] == "http.disconnect":
                raise ConnectionResetError("the client left")
            piece, more = message.get("body", b""), message.get("more_body", False)
            size += len(piece)
            # Whoever still sends does not listen: too much is thrown away before the answer.
            if size <= most:
                found += piece
            elif size > _MOST_DISCARDED:
                raise too_large
        if size > most:
            raise too_large
        return bytes(found)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isdigit() else host.lower()


class _Client:
    """Whoever sent a request: its whole body, and whether it is still there."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        self._receive, self._left = receive, asyncio.Event()

    async def receive(self) -> Message:
        """Return the body, and after it nothing until the client leaves."""
        if self._pending:
            return self._pending.pop()
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def leaves(self) -> None:
        """Wait until the client leaves."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._left.set()


def _with_safe_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    own = [(name, value) for name, value in headers if name.lower() != b"server"]
    given = {name.lower() for name, _ in own}
    return [*own, *((name, value) for name, value in _HEADERS.items() if name not in given)]


def _start(status: int) -> Message:
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    return {"type": "http.response.start", "status": status, "headers": headers}


def _json_body(content: dict[str, str]) -> Message:
    return {"type": "http.response.body", "body": json.dumps(content).encode()}
