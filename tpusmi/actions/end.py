"""Carries out a plan: proof, SIGTERM to all, a time of grace, proof, SIGKILL, until the nodes are
free. A process that ends may hold its nodes for a while: the kernel unpins its memory first.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from tpusmi.actions.lockfile import Cleared, clear
from tpusmi.actions.plan import Plan
from tpusmi.actions.proof import DOUBTS, GONE, LET_GO, Grip
from tpusmi.model import ENDING_CODES, Chip, Host, Process, ProcessKey
from tpusmi.sources.holders.lockfile import PATHS
from tpusmi.sources.holders.nodes import known_nodes
from tpusmi.sources.holders.scan import Found, Scan

GRACE_S = 10.0
FREE_WITHIN_S = 60.0
WAIT_MOST_S = 86400.0
SLACK_S = 10.0
"""For looks and signals, beyond the two waits."""
PROOF_S = 0.1
"""A proof that is older than that is taken again."""
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL)
LOOK_S, LOOK_CLOSER_S = 0.1, 0.5
"""How often it is seen whether a process has ended, and whether it still holds its nodes."""

Say = Callable[[Mapping[ProcessKey, str]], object]
"""Told now and then what happens to each process, in words."""


class Order(NamedTuple):
    """How to end them."""

    signal: int = signal.SIGTERM
    """The first signal. SIGKILL follows it, to whoever is left after the time of grace."""
    grace_s: float = GRACE_S
    free_within_s: float = FREE_WITHIN_S
    """How long to wait for the nodes after that."""

    def check(self) -> None:
        """Raises ValueError for a signal that ends nothing, and for a wait without an end."""
        if self.signal not in ENDING_SIGNALS:
            names = ", ".join(number.name for number in ENDING_SIGNALS)
            raise ValueError(f"signal {self.signal} is none of {names}")
        for wait_s in (self.grace_s, self.free_within_s):
            if not 0 <= wait_s <= WAIT_MOST_S:
                raise ValueError(f"{wait_s} is not between 0 and {WAIT_MOST_S:.0f} s")


class Result(NamedTuple):
    """What became of one process."""

    process: Process
    outcome: str
    """`ended`; `killed`, by SIGKILL; `released`: it lives on without the TPU; `not_permitted`;
    `alive`: it does not end; or one of DOUBTS, when it was not signalled at all.
    """
    message: str
    took_s: float

    @property
    def is_free(self) -> bool:
        """True when it holds nothing any more."""
        return self.outcome in ("ended", "killed", "released", GONE, LET_GO, "replaced")


class Report(NamedTuple):
    """What became of all of them, of their nodes, and of the lock file."""

    results: tuple[Result, ...]
    still_held: Mapping[str, tuple[int, ...]]
    """Pids by node, of the plan's nodes that are not free; none where nobody could look."""
    lock_files: tuple[Cleared, ...]
    notes: tuple[str, ...]
    unseen: str = ""
    """What could not be inspected, in words: holders may be among it."""

    @property
    def is_free(self) -> bool | None:
        """True when nobody holds a node of the plan any more; None when none of those who could be
        seen does, and others could not.
        """
        if self.still_held or not all(r.is_free for r in self.results):
            return False
        return None if self.unseen else True


def carry_out(
    host: Host, chips: Iterable[Chip], plan: Plan, order: Order, say: Say | None = None
) -> Report:
    """End the plan's targets and wait until their nodes are free; takes at most the two waits of
    the order, and a little. Raises ValueError for an order that cannot be carried out, and nothing
    else: whatever fails is in the report.
    """
    order.check()
    nodes = known_nodes(host, chips)
    here = nodes._replace(paths=tuple(map(host.path, nodes.paths)))
    ending = _Ending(
        Scan(host.path("/proc"), here, map(host.path, PATHS)), host.path("/proc"), plan, say
    )
    try:
        worker = _Worker(lambda: _carried_out(host, plan, order, ending))
        return worker.result(order.grace_s + order.free_within_s + SLACK_S) or ending.given_up()
    finally:
        ending.stop()


class _Worker(threading.Thread):
    """A thread for what may hang in the kernel: it must not take its caller with it."""

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


def _carried_out(host: Host, plan: Plan, order: Order, ending: _Ending) -> Report:
    try:
        ending.signal_all(order.signal)
        ending.wait(order.grace_s, f"{signal.Signals(order.signal).name} sent")
        if order.signal != signal.SIGKILL:
            ending.signal_all(signal.SIGKILL)
        ending.wait(order.free_within_s, "SIGKILL sent")
        held = ending.still_held()
        results = ending.results()
    finally:
        ending.close()
    cleared = clear(host, ending.found()) if plan.lock_files and not held else ()
    return Report(results, held, cleared, ending.notes(), plan.unseen)


class _Ending:
    """The targets, how far each is, and what is left of them."""

    def __init__(self, scan: Scan, proc: str, plan: Plan, say: Say | None) -> None:
        self._scan = scan
        self._plan = plan
        self._listener = say
        self._started_s = time.monotonic()
        self._grips = [Grip(scan, proc, target.process) for target in plan.targets]
        self._done: dict[ProcessKey, Result] = {}
        self._signalled: dict[ProcessKey, int] = {}
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Send nothing more, and say nothing more: whoever waited for it has gone."""
        self._stopped.set()

    def signal_all(self, number: int) -> None:
        """The signal to everybody who is left, after proof of all of them."""
        proven = []
        for grip in self._left():
            doubt = grip.doubt()
            if doubt is None:
                proven.append(grip)
            elif grip.process.key in self._signalled:
                self._settle(grip)
            else:
                self._finish(grip, doubt, DOUBTS[doubt])
        proven_at_s = time.monotonic()
        for grip in proven:
            if self._is_ending_already(grip):
                continue
            if time.monotonic() - proven_at_s > PROOF_S and (doubt := grip.doubt()):
                self._finish(grip, doubt, DOUBTS[doubt])
            else:
                self._signal(grip, number)

    def given_up(self) -> Report:
        """What is known when the kernel does not answer any more."""
        message = "nobody can tell: a look at it has not come back"
        left = [Result(g.process, "unseen", message, 0.0) for g in self._left()]
        results = (*self._done.values(), *left)
        return Report(results, dict.fromkeys(self._plan.nodes, ()), (), self.notes(), message)

    def wait(self, limit_s: float, what: str) -> None:
        """Until all have ended or let go of the TPU, at most so long."""
        since_s = time.monotonic()
        while left := self._left():
            waited_s = time.monotonic() - since_s
            if waited_s >= limit_s or self._stopped.is_set():
                return
            self._say({g.process.key: f"{what}, {waited_s:.0f} of {limit_s:.0f} s" for g in left})
            time.sleep(min(LOOK_S, limit_s - waited_s))
            closer = int((waited_s + LOOK_S) / LOOK_CLOSER_S) > int(waited_s / LOOK_CLOSER_S)
            for grip in left:
                if closer or grip.has_ended():
                    self._settle(grip)

    def still_held(self) -> dict[str, tuple[int, ...]]:
        """Who holds the nodes of the plan now; nobody in particular where that cannot be seen."""
        try:
            self._scan.look(time.monotonic(), everybody=True)
        except OSError:
            return dict.fromkeys(self._plan.nodes, ())
        found = self.found()
        held = {
            node: tuple(pid for pid, nodes in found.holders.items() if node in nodes)
            for node in self._plan.nodes
        }
        return {node: pids for node, pids in held.items() if pids}

    def found(self) -> Found:
        """What the last look has seen."""
        return self._scan.found()

    def results(self) -> tuple[Result, ...]:
        """What became of each, in the order of the plan; those that are left do not end."""
        for grip in self._left():
            self._settle(grip)
        for grip in self._left():
            number = self._signalled.get(grip.process.key)
            sent = f"{signal.Signals(number).name} is pending" if number else "it is ending"
            self._finish(grip, "alive", f"{sent}, but it does not end: {grip.where_it_waits()}")
        return tuple(self._done[grip.process.key] for grip in self._grips)

    def notes(self) -> tuple[str, ...]:
        """What else a person should know."""
        if all(grip.is_firm for grip in self._grips):
            return ()
        return ("this kernel has no pidfd: each pid was looked at right before its signal",)

    def close(self) -> None:
        """Let go of the processes."""
        for grip in self._grips:
            grip.close()

    def _say(self, words: Mapping[ProcessKey, str]) -> None:
        if self._listener is not None and not self._stopped.is_set():
            self._listener(words)

    def _left(self) -> list[Grip]:
        return [grip for grip in self._grips if grip.process.key not in self._done]

    def _is_ending_already(self, grip: Grip) -> bool:
        """Of one that the kernel takes apart another signal changes nothing."""
        return grip.process.stale_code in ENDING_CODES

    def _signal(self, grip: Grip, number: int) -> None:
        key = grip.process.key
        if self._stopped.is_set():
            return
        try:
            grip.signal(number)
            self._signalled[key] = number
            if number != signal.SIGKILL and grip.is_stopped():
                grip.signal(signal.SIGCONT)
        except ProcessLookupError:
            self._settle(grip)
        except OSError as error:
            self._finish(grip, "not_permitted", f"could not be signalled: {error.strerror}")

    def _settle(self, grip: Grip) -> None:
        """See whether it has ended, or lives on without the TPU."""
        number = self._signalled.get(grip.process.key)
        if grip.has_ended():
            outcome = "killed" if number == signal.SIGKILL else "ended"
            by = f" by {signal.Signals(number).name}" if number else ""
            self._finish(grip, outcome, f"ended{by}")
        elif grip.held() == () and not grip.is_exiting():
            self._finish(grip, "released", "has let go of the TPU, and lives on")

    def _finish(self, grip: Grip, outcome: str, message: str) -> None:
        took_s = time.monotonic() - self._started_s
        key = grip.process.key
        self._done[key] = Result(grip.process, outcome, message, took_s)
        self._say({key: message})
