"""The agent's threads, and how much of the CPU each may use. They are threads of the kernel, also
where a library has replaced Python's with green ones.

gevent and eventlet exchange the contents of `threading` and `_thread`, before or after we are
imported. A green thread of ours would live in one of the job's own: each would wait for the other,
and the signals that we block would be the job's.
"""

from __future__ import annotations

import _thread as shared
from collections import deque
from functools import cache
from typing import Any

SAMPLE_SHARE = 0.001
PROFILE_SHARE = 0.001
UTILIZATION_SHARE = 0.0009
SLICE_SHARE = 0.001
"""CPU time of the agent's threads as shares of wall time; together they stay under 0.4 %."""

LATER = 1.2
"""A period that is so many times longer than the one before is published at once."""


class Event:
    """Something that happens once, and that threads can wait for."""

    def __init__(self) -> None:
        self._is_set = False
        self._closed = _thread().allocate_lock()
        self._closed.acquire()

    def is_set(self) -> bool:
        """True once it has happened."""
        return self._is_set

    def set(self) -> None:
        """Let it happen. May be called from a signal handler, and more than once."""
        self._is_set = True
        try:
            self._closed.release()
        except RuntimeError:
            pass  # it has happened before

    def wait(self, seconds: float) -> bool:
        """Wait for it at most this long; True once it has happened."""
        if not self._is_set and self._closed.acquire(timeout=max(0.0, seconds)):
            self.set()  # for the next thread that waits
        return self._is_set


class Thread:
    """A daemon: it ends with the process. `run` must be overridden, and must raise nothing."""

    def __init__(self) -> None:
        self._ended: Event | None = None
        self._ident: int | None = None

    def run(self) -> None:
        """The work of the thread."""

    def start(self) -> None:
        """Begin. Raises RuntimeError where no more threads can be started."""
        ended = Event()
        _thread().start_new_thread(self._run, (ended,))
        self._ended = ended

    def is_alive(self) -> bool:
        """True from start() until run() has returned."""
        return self._ended is not None and not self._ended.is_set()

    def is_current(self) -> bool:
        """True in the thread itself."""
        return bool(self._ident == _thread().get_ident())

    def join(self, seconds: float) -> None:
        """Wait for its end at most this long; in the thread itself, not at all."""
        if self._ended is not None and not self.is_current():
            self._ended.wait(seconds)

    def _run(self, ended: Event) -> None:
        self._ident = _thread().get_ident()
        try:
            self.run()
        finally:
            ended.set()


class Pace:
    """The period of one activity: as asked for, or longer when it costs more than its share."""

    def __init__(self, period_s: float, share: float) -> None:
        self.asked_s = period_s
        self.share = share
        self.cost_s: float | None = None
        """CPU time of the last run."""
        self._costs: deque[float] = deque(maxlen=3)
        self._due_at_s = 0.0

    @property
    def period_s(self) -> float:
        """Seconds between two runs, at most, by the most expensive of the last three."""
        return max(self.asked_s, max(self._costs, default=0.0) / self.share)

    def is_due(self, now_s: float) -> bool:
        """True when the next run may start."""
        return now_s >= self._due_at_s

    def wait_s(self, now_s: float) -> float:
        """Seconds until the next run may start."""
        return max(0.0, self._due_at_s - now_s)

    def spent(self, started_at_s: float, cost_s: float) -> bool:
        """Note a run and what it cost. True if the next one is due much later than the run itself
        could tell, as after a collection of garbage in it: to those who wait for it the agent would
        look dead.
        """
        before_s = self.period_s
        self.cost_s = cost_s
        self._costs.append(cost_s)
        wait_s = max(self.asked_s, cost_s / self.share)  # each run is paid for once
        self._due_at_s = started_at_s + wait_s
        return wait_s > LATER * before_s


@cache
def _thread() -> Any:
    """Our own `_thread` module, with Python's functions even where the shared one was changed."""
    spec: Any = shared.__spec__
    own = spec.loader.create_module(spec)
    spec.loader.exec_module(own)
    return own
