"""Waiting for something to become true, never for ever."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

ATTEMPTS = 4
LIMIT_S = 60.0
"""For a job to start JAX on a busy machine with two cores."""

T = TypeVar("T")
Test = TypeVar("Test", bound=Callable[..., None])


def with_a_short_limit(test: Test) -> Test:
    """For a test of what an answer within a short limit of ours does: a machine that stands still
    for that long uses the limit up, so the test may fail all but its last attempt.
    """
    tried = _tried_again(test)
    tried.has_a_short_limit = True  # type: ignore[attr-defined]
    return tried


def where_all_can_be_seen(test: Test) -> Test:
    """For a test of what is said to be free, which nobody knows while one process of the machine
    cannot be inspected. One of another test may not be, for a moment: such as a viewer with files
    of a container open. The test may fail all but its last attempt.
    """
    return _tried_again(test)


def _tried_again(test: Test) -> Test:
    @functools.wraps(test)
    def tried(*values: object, **named: object) -> None:
        for _ in range(ATTEMPTS - 1):
            try:
                return test(*values, **named)
            except (AssertionError, ValueError, pytest.fail.Exception):  # or nothing to unpack
                pass
        return test(*values, **named)

    return tried  # type: ignore[return-value]


def has_a_short_limit(test: object) -> bool:
    """Whether it is such a test. The limits of others may be longer than the product's own."""
    return hasattr(test, "has_a_short_limit")


def until(answer: Callable[[], T | None], limit_s: float = LIMIT_S, what: str = "an answer") -> T:
    """The first answer that is true; fails when there is none within the limit."""
    until_s = time.monotonic() + limit_s
    while True:
        found = answer()
        if found:
            return found
        assert time.monotonic() < until_s, f"not within {limit_s:.0f} s: {what}"
        time.sleep(0.02)
