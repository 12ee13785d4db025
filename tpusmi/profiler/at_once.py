"""Runs tasks at the same moment, and ends all of them when the user interrupts."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tpusmi.trace.troubles import CaptureError, Trouble

Result = TypeVar("Result")
ENDED_WITHIN_S = 3.0
"""How long to wait for tasks that are interrupted to put away what they have begun."""
LOOK_EVERY_S = 0.2


def at_once(tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """The results, in the order of the tasks, each of which has a deadline of its own. An exception
    of one of them is raised once all have ended; KeyboardInterrupt and SystemExit end all.
    """
    if len(tasks) < 2:
        return [task() for task in tasks]
    running: list[_Running[Result]] = []
    try:
        for one in tasks:  # those that run already are in the list when it is broken off
            running.append(_Running(one))
        for task in running:
            while not task.ended.wait(LOOK_EVERY_S):
                pass
    except BaseException:
        for task in running:
            task.interrupt()
        until_s = time.monotonic() + ENDED_WITHIN_S
        for task in running:
            task.ended.wait(max(0.0, until_s - time.monotonic()))
        raise
    return [task.result() for task in running]


class _Running(Generic[Result]):
    """A task on a thread of its own."""

    def __init__(self, task: Callable[[], Result]) -> None:
        self._task = task
        self._results: list[Result] = []
        self._failure: BaseException | None = None
        self.ended = threading.Event()
        """Not Thread.join(): after an interrupt, Python 3.11 takes a joined thread for ended."""
        self._thread = threading.Thread(target=self._run, name="tpusmi-capture", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._failure = CaptureError(Trouble.FAILED, "No thread can be started for a capture")
            self.ended.set()

    def _run(self) -> None:
        try:
            self._results.append(self._task())
        except BaseException as failure:  # noqa: BLE001  # result() raises it
            self._failure = failure
        finally:
            self.ended.set()

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the thread, so that its `finally` clauses run."""
        if not self.ended.is_set() and self._thread.ident is not None:
            thread, error = ctypes.c_ulong(self._thread.ident), ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, error)

    def result(self) -> Result:
        """What the task returned. Raises what it raised."""
        if self._failure is not None:
            raise self._failure
        (result,) = self._results
        return result
