"""Requests that are not answered, and why."""

from __future__ import annotations


class Refusal(Exception):
    """Why a request is not answered.

    Args:
        status: Of HTTP.
        code: Stable identifier, as errors of treelm have.
        message: What is wrong, and what to do.
        retry_after: Seconds after which it may be asked again, if that helps.
    """

    def __init__(
        self, status: int, code: str, message: str, *, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.retry_after = status, code, retry_after
