"""Time that passes when a test says so, and a bound on processor time."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class Clock:
    """A monotonic clock that stands still until told to move."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def stopped(monkeypatch: pytest.MonkeyPatch, *names: str) -> Clock:
    """A clock in the place of each of those functions, such as `tpusmi.agent.steps.monotonic`."""
    clock = Clock()
    for name in names:
        monkeypatch.setattr(name, clock)
    return clock


@contextmanager
def takes_at_most(seconds: float) -> Iterator[None]:
    """Fails when what is done meanwhile takes more processor time. Without the garbage collector,
    which would look through all that the tests before have left.
    """
    was_on = gc.isenabled()
    gc.disable()
    started_s = time.process_time()
    try:
        yield
        took_s = time.process_time() - started_s
    finally:
        if was_on:
            gc.enable()
    assert took_s < seconds
