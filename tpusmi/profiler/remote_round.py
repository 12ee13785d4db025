"""Shared by the captures of several profiler services: the moment at which they begin, and the
room for their traces.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from tpusmi.profiler import remote_troubles
from tpusmi.profiler.disk_room import would_fill
from tpusmi.profiler.requests import CaptureRequest

LATE_S = 1.0
"""The services that are ready wait this long for the others, to begin together."""


class Meeting:
    """Where tasks wait for each other, to begin at the same moment."""

    def __init__(self, expected: int) -> None:
        self._changed = threading.Condition()
        self._expected = expected
        self._until_s = float("inf")
        self._began_s: float | None = None

    def leave(self) -> None:
        """One task less will come."""
        with self._changed:
            self._expected -= 1
            self._changed.notify_all()

    def wait(self) -> float:
        """Until all are here, but not long after the first one. Returns how many seconds later than
        the first one it ends: 0, but for a task that is late.
        """
        with self._changed:
            self._expected -= 1
            self._changed.notify_all()
            self._until_s = min(self._until_s, time.monotonic() + LATE_S)
            while self._expected > 0 and (left_s := self._until_s - time.monotonic()) > 0:
                self._changed.wait(left_s)
            now_s = time.monotonic()
            self._began_s = now_s if self._began_s is None else self._began_s
            return now_s - self._began_s


class Space:
    """The free space of a folder: all traces together leave half of it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._claimed = 0
        self._lock = threading.Lock()

    def claim(self, size: int) -> None:
        """Raises CaptureError when there is not enough of it."""
        with self._lock:
            try:
                is_full = would_fill(self._folder, self._claimed + size)
            except OSError as error:
                raise remote_troubles.not_written(self._folder, error) from None
            if is_full:
                raise remote_troubles.no_room(self._folder, size)
            self._claimed += size


class Round(NamedTuple):
    """What the tasks of one capture have in common."""

    request: CaptureRequest
    folder: str
    meeting: Meeting
    space: Space
    say: Callable[[str], None]
    """Takes a sentence for the user, or an empty one when a task has ended."""
    pid: int | None
    """The only process that may be captured; None for any."""

    @property
    def limit_s(self) -> float:
        """For the call itself."""
        return self.request.duration_ms / 1000 + self.request.deadline_s
