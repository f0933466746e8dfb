"""Serving: sockets, signals and the log."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Sequence
from typing import Any

from treelm.errors import EngineError, option
from treelm.extras import import_extra
from treelm.web.app import create_app
from treelm.web.limits import ServerLimits
from treelm.web.offered_models import OfferedModels
from treelm.web.patient_protocol import MOST_HEADER_BYTES, patient_protocol

#: Seconds for which requests that are under way may finish when the server is stopped.
_LAST_SECONDS = 3
#: Connections that the system holds until the server takes them.
_BACKLOG = 1024


class PlaygroundServer:
    """A server that listens; `run` answers until `stop`, or a signal, ends it.

    Args:
        models: What is offered.
        limits: What is taken.
        host: Address to listen at; by default only this machine can ask.
        port: Port to listen at; 0 for any that is free.
        hosts: Further names by which the server may be called.
        log: Whether every request is written to standard error.

    Raises:
        MissingExtra: without uvicorn, which the extra ``web`` brings.
        EngineError: ``E_ADDRESS`` if nobody can listen there.
    """

    def __init__(
        self,
        models: OfferedModels,
        limits: ServerLimits,
        *,
        host: str = "127.0.0.1",
        port: int = 8700,
        hosts: Sequence[str] = (),
        log: bool = False,
    ) -> None:
        uvicorn: Any = import_extra("uvicorn", "Serving the playground")
        self._listener = _listen(host, port)
        self._host = f"[{host}]" if ":" in host else host
        self._app = create_app(models, limits, hosts=allowed_hosts(host, hosts))
        config = uvicorn.Config(
            self._app,
            http=patient_protocol(limits.send_seconds),
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_level=logging.INFO if log else logging.ERROR,
            access_log=log,
            limit_concurrency=limits.connections,
            backlog=_BACKLOG,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=_LAST_SECONDS,
            h11_max_incomplete_event_size=MOST_HEADER_BYTES,
            server_header=False,
            proxy_headers=False,
        )
        self._server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{self._host}:{self._listener.getsockname()[1]}/"

    def run(self) -> None:
        """Answer requests until somebody stops it."""
        with self._listener:
            self._server.run(sockets=[self._listener])

    @property
    def is_working(self) -> bool:
        """Whether kernels still work after `run`: on requests given up, or on loading a model."""
        working: bool = self._app.state.queue.is_working or self._app.state.models.is_loading
        return working

    def stop(self) -> None:
        """Let `run` return, in whatever thread it is."""
        self._server.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # From here on clients wait for the first answer instead of being refused.
        listener.listen(_BACKLOG)
    except OSError as error:
        raise EngineError(
            f"nobody can listen at {host} port {port}: {error.strerror or error}. Choose another "
            f"with {option('host')} and {option('port')}.",
            code="E_ADDRESS",
        ) from error
    return listener


def allowed_hosts(host: str, further: Sequence[str] = ()) -> frozenset[str] | None:
    """Return the names by which a server may be called; None for any.

    Where only this machine can ask, a page of another site could have its own name lead here and
    read what it gets (DNS rebinding); so only the names of this machine are taken. A server for
    others is called by names that it does not know, unless it is told.

    Examples:
        >>> sorted(allowed_hosts("127.0.0.1"))
        ['127.0.0.1', '[::1]', 'localhost']
        >>> allowed_hosts("0.0.0.0") is None
        True
    """
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local and not further:
        return None
    own = {"localhost", "127.0.0.1", "[::1]", f"[{host}]" if ":" in host else host}
    return frozenset(own | {name.lower() for name in further})
