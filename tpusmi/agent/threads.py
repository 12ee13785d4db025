"""Threads of the kernel, also where a library has put green ones in the place of Python's.

gevent and eventlet exchange what `threading` and `_thread` hold, before or after we are imported. A
green thread of ours would live in one of the job's own: each would wait for the other, and the
signals that we block would be the job's.
"""

from __future__ import annotations

import _thread as shared
from functools import cache
from typing import Any


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
        """Let it happen. May be called from a signal handler, and again."""
        self._is_set = True
        try:
            self._closed.release()
        except RuntimeError:
            pass  # it has happened before

    def wait(self, seconds: float) -> bool:
        """Wait for it, at most so long; True once it has happened."""
        if not self._is_set and self._closed.acquire(timeout=max(0.0, seconds)):
            self.set()  # for the next one who waits
        return self._is_set


class Thread:
    """A daemon: it ends with the process. `run` is to be overridden, and to raise nothing."""

    def __init__(self) -> None:
        self._ended: Event | None = None
        self._ident: int | None = None

    def run(self) -> None:
        """What the thread does."""

    def start(self) -> None:
        """Begin. Raises RuntimeError where there are no more threads to be had."""
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
        """Wait for its end, at most so long."""
        if self._ended is not None:
            self._ended.wait(seconds)

    def _run(self, ended: Event) -> None:
        self._ident = _thread().get_ident()
        try:
            self.run()
        finally:
            ended.set()


@cache
def _thread() -> Any:
    """A module `_thread` of our own, with Python's functions in it, whatever has become of those in
    the one that all others share.
    """
    spec: Any = shared.__spec__
    own = spec.loader.create_module(spec)
    spec.loader.exec_module(own)
    return own
