"""Connections whose headers must arrive in time, which uvicorn alone does not ask."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from treelm.extras import import_extra

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol
else:
    H11Protocol = import_extra(
        "uvicorn.protocols.http.h11_impl", "Serving the playground"
    ).H11Protocol

#: Bytes of a request line and headers together.
MOST_HEADER_BYTES = 16 << 10
_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that cuts off whoever opens a connection and does not ask for anything."""

    #: How long the headers of the first request may take, in seconds.
    header_seconds = 10.0

    _deadline: asyncio.TimerHandle | None = None
    _has_asked = False

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        """Stop the clock when a request has begun, and start it for half of one."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._has_asked = True
            self._stop_clock()
        elif self._is_idle() and self._deadline is None:
            self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        return not self._has_asked or self.cycle.response_complete

    def _expect_request(self) -> None:
        self._deadline = self.loop.call_later(self.header_seconds, self._cut_off)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut_off(self) -> None:
        self._deadline = None
        if self._is_idle() and not self.transport.is_closing():
<<<<<<< HEAD
            cycle: object = self.cycle
            if cycle is None:
=======
            if not self._has_asked:
>>>>>>> serve
                self.transport.write(_TIMEOUT)
            self.transport.close()
