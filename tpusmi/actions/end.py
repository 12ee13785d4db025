"""Carries out a plan: proof, SIGTERM to all targets, a grace period, proof, SIGKILL, and a wait
until the nodes are free. A process that ends may hold its nodes for a while: the kernel unpins its
memory first.
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tpusmi.actions.outcome import Cleared, Report
from tpusmi.actions.plan import Plan
from tpusmi.actions.targets import Ending, OnProgress
from tpusmi.model import Chip, Host, LockFile, LockState
from tpusmi.sources.holders.lockfile import PATHS, lock_files
from tpusmi.sources.holders.nodes import known_nodes
from tpusmi.sources.holders.passes import is_inside
from tpusmi.sources.holders.scan import Scan, ScanResult

GRACE_S = 10.0
FREE_WITHIN_S = 60.0
WAIT_MOST_S = 86400.0
SETTLE_S = 1.0
SLACK_S = 10.0
"""Time for looks and signals, beyond the waits."""
JOIN_S = 0.1
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL)


class Order(NamedTuple):
    """How processes are to be ended."""

    signal: int = signal.SIGTERM
    """The first signal; processes still running after the grace period get SIGKILL."""
    grace_s: float = GRACE_S
    free_within_s: float = FREE_WITHIN_S
    """How long to wait for the nodes after that."""
    settle_s: float = SETTLE_S
    """How long to watch whether an ended process is started again, where something may do that."""

    def check(self) -> None:
        """Raises ValueError for a signal that ends no process, and for a wait without a limit."""
        if self.signal not in ENDING_SIGNALS:
            names = ", ".join(number.name for number in ENDING_SIGNALS)
            raise ValueError(f"signal {self.signal} is not one of {names}")
        waits = {"grace_s": self.grace_s, "wait_s": self.free_within_s, "settle_s": self.settle_s}
        for name, wait_s in waits.items():
            if not 0 <= wait_s <= WAIT_MOST_S:
                raise ValueError(f"{name}: {wait_s} is not between 0 and {WAIT_MOST_S:.0f} s")


def carry_out(
    host: Host,
    chips: Iterable[Chip],
    plan: Plan,
    order: Order,
    on_progress: OnProgress | None = None,
) -> Report:
    """End the plan's targets and wait until their nodes are free; takes at most the waits of the
    order, and a little. Raises ValueError for an order that cannot be carried out, and nothing
    else: any failure is in the report.
    """
    order.check()
    scan = Scan(host.path("/proc"), known_nodes(host, chips), map(host.path, PATHS))
    ending = Ending(scan, host, plan, on_progress)
    try:
        worker = _Worker(lambda: _carried_out(host, plan, order, ending))
        return (
            worker.result(order.grace_s + order.free_within_s + order.settle_s + SLACK_S)
            or ending.given_up()
        )
    finally:
        ending.stop()


def _carried_out(host: Host, plan: Plan, order: Order, ending: Ending) -> Report:
    try:
        ending.signal_all(order.signal)
        ending.wait(order.grace_s, f"{signal.Signals(order.signal).name} sent")
        if order.signal != signal.SIGKILL:
            ending.signal_all(signal.SIGKILL)
        ending.wait(order.free_within_s, "SIGKILL sent")
        held = ending.held_after(order.settle_s)
        results = ending.results()
    finally:
        ending.close()
    cleared = clear(host, ending.scanned()) if plan.lock_files and not held else ()
    return ending.report(results, held, cleared)


class _Worker(threading.Thread):
    """Does work that may hang in the kernel, on a thread that does not hang its caller."""

    def __init__(self, work: Callable[[], Report]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._report: Report | None = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Do the work, and keep its result."""
        try:
            self._report = self._work()
        except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
            self._error = error

    def result(self, limit_s: float) -> Report | None:
        """The report; None when the work takes longer than the limit. Raises the work's error."""
        until_s = time.monotonic() + limit_s
        while self.is_alive() and (left_s := until_s - time.monotonic()) > 0:
            self.join(min(left_s, JOIN_S))  # Ctrl-C just before a wait is seen only after it
        if self._error is not None:
            raise self._error
        return self._report


# -- libtpu's lock file: removed where it is proven that no process locks it, and it is in the way


def clear(host: Host, scanned: ScanResult) -> tuple[Cleared, ...]:
    """Remove every lock file that is unlocked, in the way, and of no use to any holder.

    `scanned` is the result of a full scan a moment ago. A missing or harmless file is left out of
    the answer.
    """
    sees_all = not (scanned.hides_others or is_inside(host))
    return tuple(
        _cleared(host, file, scanned)
        for file in lock_files(host, scanned.lock_files, sees_all)
        if file.state in (LockState.LOCKED, LockState.UNKNOWN, LockState.BLOCKING)
    )


def _cleared(host: Host, file: LockFile, scanned: ScanResult) -> Cleared:
    kept = "" if file.state == LockState.BLOCKING else file.message
    if not kept and scanned.holders:
        kept = f"pid {', '.join(map(str, scanned.holders))} holds the TPU"
    elif not kept and scanned.hidden:
        kept = "a process that could not be inspected may hold the TPU"
    return Cleared(file.path, False, f"kept: {kept}") if kept else _removed(host, file.path)


def _removed(host: Host, path: str) -> Cleared:
    """Remove it while we have its lock: a process that takes the lock at the same time keeps it."""
    here = host.path(path)
    try:
        # Without O_CREAT, and never through a link: any user can write to /tmp.
        descriptor = os.open(here, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return Cleared(path, False, f"kept: it cannot be opened ({error.strerror}), try sudo")
    try:
        opened = os.fstat(descriptor)
        if not stat.S_ISREG(opened.st_mode):
            return Cleared(path, False, "kept: not a regular file")
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        named = os.lstat(here)
        if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino):
            return Cleared(path, False, "kept: it is now another file")
        os.unlink(here)
    except BlockingIOError:
        return Cleared(path, False, "kept: another process has just locked it")
    except OSError as error:
        return Cleared(path, False, f"kept: {error.strerror}")
    finally:
        os.close(descriptor)
    return Cleared(path, True, "removed: not locked, and in the way")
