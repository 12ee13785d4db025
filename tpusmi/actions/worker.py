"""A thread for what may hang in the kernel: it must not take its caller with it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tpusmi.actions.outcome import Report

LOOK_S = 0.1


class Worker(threading.Thread):
    """Does that work, once."""

    def __init__(self, work: Callable[[], Report]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._report: Report | None = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Do it, and keep what came of it."""
        try:
            self._report = self._work()
        except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
            self._error = error

    def result(self, limit_s: float) -> Report | None:
        """What came of it; None when it has not come back within the limit. Raises its error."""
        until_s = time.monotonic() + limit_s
        while self.is_alive() and (left_s := until_s - time.monotonic()) > 0:
            self.join(min(left_s, LOOK_S))  # Ctrl-C just before a wait is seen only after it
        if self._error is not None:
            raise self._error
        return self._report
