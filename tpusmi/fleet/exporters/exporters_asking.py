"""Threads that ask many exporters at once. Half of them at most ask exporters that have failed.

A process with few files or little memory has fewer of them: one that finds no room ends.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from tpusmi.fleet.exporters.exporter_record import ExporterRecord
from tpusmi.fleet.exporters.exporters_reading import NotAskedError

THREADS_MOST = 128

Ask = Callable[[ExporterRecord], None]


class Asking:
    """Asks exporters as they are given to it. All records are guarded by `changed`."""

    def __init__(self, ask: Ask) -> None:
        """`ask` does one of them, on a thread, without the lock."""
        lock = threading.RLock()
        self.changed = threading.Condition(lock)
        """Notified after each."""
        self._work = threading.Condition(lock)
        self._ask = ask
        self._well: deque[ExporterRecord] = deque()
        self._failing: deque[ExporterRecord] = deque()
        self._failing_now = 0
        self._threads = 0
        self._threads_most = THREADS_MOST
        """For how many there is room, as far as that is known."""
        self._idle = 0
        self._is_closed = False

    def begin(self, records: Iterable[ExporterRecord]) -> None:
        """Have those asked whose time has come, on threads. Returns at once. Raises RuntimeError
        when not a single thread can be started.
        """
        now_s = time.monotonic()
        with self.changed:
            for record in records:
                if not record.is_running and record.next_at_s <= now_s:
                    record.is_running = True
                    (self._failing if record.failures else self._well).append(record)
            wanting = len(self._well) + len(self._failing)
            for _ in range(min(wanting - self._idle, self._threads_most - self._threads)):
                if not self._start():
                    break
            self._work.notify(wanting)

    def close(self) -> None:
        """Stop asking. Threads that wait for an exporter end after its deadline."""
        with self.changed:
            self._is_closed = True
            self._well.clear()
            self._failing.clear()
            self._work.notify_all()

    def _start(self) -> bool:
        thread = threading.Thread(target=self._run, name="tpusmi-exporter", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            if not self._threads:
                raise
            return False
        self._threads += 1
        return True

    def _run(self) -> None:
        while (taken := self._taken()) is not None:
            record, is_failing = taken
            why = self._try(record)
            with self.changed:
                self._failing_now -= is_failing
                if why and self._threads > 1 and not self._is_closed:
                    self._leave_to_others(record)
                    return
                if why:
                    record.postpone(why)
                else:
                    self._threads_most = min(THREADS_MOST, self._threads_most + 1)
                record.is_running = False
                self.changed.notify_all()

    def _try(self, record: ExporterRecord) -> str:
        """Ask it. The reason, if this process cannot ask anything now, else empty."""
        try:
            self._ask(record)
        except NotAskedError as error:
            return str(error)
        except (MemoryError, ImportError):  # of a module that there is no memory for
            return "no memory is left here"
        except Exception as error:  # noqa: BLE001  # it costs this host only
            with self.changed:
                record.fail(f"its answer could not be read ({type(error).__name__})")
        return ""

    def _leave_to_others(self, record: ExporterRecord) -> None:
        """This thread ends, and makes room for the others."""
        record.begun_at_s = 0.0
        (self._failing if record.failures else self._well).appendleft(record)
        self._threads -= 1
        self._threads_most = self._threads
        self._work.notify()

    def _taken(self) -> tuple[ExporterRecord, bool] | None:
        """The next one, and whether it failed the last time. None at the end."""
        with self.changed:
            while not self._is_closed:
                if self._well:
                    return _begun(self._well.popleft()), False
                if self._failing and self._failing_now < THREADS_MOST // 2:
                    self._failing_now += 1
                    return _begun(self._failing.popleft()), True
                self._idle += 1
                self._work.wait()
                self._idle -= 1
        return None


def _begun(record: ExporterRecord) -> ExporterRecord:
    record.begun_at_s = time.monotonic()
    return record
