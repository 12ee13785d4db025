"""Waiting for something to become true, never for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

LIMIT_S = 60.0
"""For a job to start JAX on a busy machine with two cores."""

T = TypeVar("T")


def until(answer: Callable[[], T | None], limit_s: float = LIMIT_S, what: str = "an answer") -> T:
    """The first answer that is true; fails when there is none within the limit."""
    until_s = time.monotonic() + limit_s
    while True:
        found = answer()
        if found:
            return found
        assert time.monotonic() < until_s, f"not within {limit_s:.0f} s: {what}"
        time.sleep(0.02)
