"""Connections whose headers must arrive in time, which uvicorn alone does not ask."""

from __future__ import annotations

import asyncio
from typing import Any

from treelm.extras import import_extra

#: Bytes of a request line and headers together.
MOST_HEADER_BYTES = 16 << 10
_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def patient_protocol(header_seconds: float) -> type[Any]:
    """Return HTTP/1.1 that cuts off whoever opens a connection and does not ask for anything.

    Args:
        header_seconds: How long the headers of a request may take.

    Raises:
        MissingExtra: without uvicorn, which the extra ``web`` brings.
    """
    uvicorn = import_extra("uvicorn.protocols.http.h11_impl", "Serving the playground")
    protocol: Any = uvicorn.H11Protocol

    class PatientProtocol(protocol):  # type: ignore[misc]  # known only when it is wanted
        _deadline: asyncio.TimerHandle | None = None
        _has_asked = False

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._expect_request()

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            if self.cycle is not before:
                self._has_asked = True
                self._stop_clock()
            elif self._is_idle() and self._deadline is None:
                self._expect_request()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_clock()
            super().connection_lost(exc)

        def _is_idle(self) -> bool:
            return not self._has_asked or bool(self.cycle.response_complete)

        def _expect_request(self) -> None:
            self._deadline = self.loop.call_later(header_seconds, self._cut_off)

        def _stop_clock(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _cut_off(self) -> None:
            self._deadline = None
            if self._is_idle() and not self.transport.is_closing():
                if not self._has_asked:
                    self.transport.write(_TIMEOUT)
                self.transport.close()

    return PatientProtocol
