"""Time that passes when a test says so, a bound on processor time, and time without the pauses of
the machine.
"""

from __future__ import annotations

import gc
import threading
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
def without_collector() -> Iterator[None]:
    """No garbage is collected meanwhile. The collector would look through all that the tests before
    have left, and an interrupt that comes while it calls back is lost.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def takes_at_most(seconds: float) -> Iterator[None]:
    """Fails when what is done meanwhile takes more processor time."""
    with without_collector():
        started_s = time.process_time()
        yield
        took_s = time.process_time() - started_s
    assert took_s < seconds


class Stopwatch:
    """Seconds since the beginning of the `with` block in which this machine was running: of a pause
    it counts next to nothing, and of what hangs all. In place of time.monotonic() where a test
    bounds from above how long something took.
    """

    EVERY_S, COUNTED_MOST_S = 0.05, 0.25

    def __enter__(self) -> Stopwatch:
        self._seconds, self._at_s = 0.0, time.monotonic()
        self._reading, self._end = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="stopwatch", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds()
        self._end.set()
        self._thread.join()

    def seconds(self) -> float:
        """So far; after the block, how long it took."""
        with self._reading:
            if not self._end.is_set():
                now_s = time.monotonic()
                self._seconds += min(now_s - self._at_s, self.COUNTED_MOST_S)
                self._at_s = now_s
            return self._seconds

    def _run(self) -> None:
        while not self._end.wait(self.EVERY_S):
            self.seconds()


class Pauses:
    """How long this machine stood still at most: this process, which sleeps in between, with it."""

    EVERY_S = 0.05

    def __enter__(self) -> Pauses:
        self._longest_s, self._end = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._run, name="pauses", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def longest_s(self) -> float:
        """Since this was last asked."""
        longest_s, self._longest_s = self._longest_s, 0.0
        return longest_s

    def _run(self) -> None:
        before_s = time.monotonic()
        while not self._end.wait(self.EVERY_S):
            now_s = time.monotonic()
            self._longest_s = max(self._longest_s, now_s - before_s - self.EVERY_S)
            before_s = now_s
