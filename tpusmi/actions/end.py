"""Carries out a plan: proof, SIGTERM to all, a time of grace, proof, SIGKILL, until the nodes are
free. A process that ends may hold its nodes for a while: the kernel unpins its memory first.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from tpusmi.actions.lockfile import Cleared, clear
from tpusmi.actions.newcomers import Ended, newcomers
from tpusmi.actions.order import Order
from tpusmi.actions.outcome import Newcomer, Report, Result
from tpusmi.actions.plan import Plan, Starter, Target
from tpusmi.actions.proof import DOUBTS, Grip
from tpusmi.actions.starters import is_there
from tpusmi.actions.worker import Worker
from tpusmi.model import ENDING_CODES, Chip, Host, ProcessKey
from tpusmi.sources.holders.lockfile import PATHS
from tpusmi.sources.holders.nodes import known_nodes
from tpusmi.sources.holders.scan import Found, Scan

SLACK_S = 10.0
"""For looks and signals, beyond the waits."""
PROOF_S = 0.1
"""A proof that is older than that is taken again."""
LOOK_S, LOOK_CLOSER_S = 0.1, 0.5
"""How often it is seen whether a process has ended, and whether it still holds its nodes."""
LOOK_WHO_S = 0.2
"""How often everybody is looked at, for who starts it again."""

Say = Callable[[Mapping[ProcessKey, str]], object]
"""Told now and then what happens to each process, in words."""


def carry_out(
    host: Host, chips: Iterable[Chip], plan: Plan, order: Order, say: Say | None = None
) -> Report:
    """End the plan's targets and wait until their nodes are free; takes at most the waits of the
    order, and a little. Raises ValueError for an order that cannot be carried out, and nothing
    else: whatever fails is in the report.
    """
    order.check()
    nodes = known_nodes(host, chips)
    here = nodes._replace(paths=tuple(map(host.path, nodes.paths)))
    ending = _Ending(Scan(host.path("/proc"), here, map(host.path, PATHS)), host, plan, say)
    try:
        worker = Worker(lambda: _carried_out(host, plan, order, ending))
        return (
            worker.result(order.grace_s + order.free_within_s + order.settle_s + SLACK_S)
            or ending.given_up()
        )
    finally:
        ending.stop()


def _carried_out(host: Host, plan: Plan, order: Order, ending: _Ending) -> Report:
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
    cleared = clear(host, ending.found()) if plan.lock_files and not held else ()
    return ending.report(results, held, cleared)


class _Ending:
    """The targets, how far each is, and what is left of them."""

    def __init__(self, scan: Scan, host: Host, plan: Plan, say: Say | None) -> None:
        self._scan = scan
        self._host = host
        self._plan = plan
        self._listener = say
        self._started_s = time.monotonic()
        self._booted_s = time.clock_gettime(time.CLOCK_BOOTTIME) - self._started_s
        proc = host.path("/proc")
        self._grips = [Grip(scan, proc, target.process) for target in plan.targets]
        self._done: dict[ProcessKey, Result] = {}
        self._signalled: dict[ProcessKey, int] = {}
        self._woken: set[ProcessKey] = set()
        """Those that were stopped, and go on to take the signal."""
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
        message = "unknown: a look at it has not come back"
        left = [Result(g.process, "unseen", message, 0.0) for g in self._left()]
        results = (*self._done.values(), *left)
        report = self.report(results, dict.fromkeys(self._plan.nodes, ()), ())
        return report._replace(unseen=message)

    def report(
        self,
        results: tuple[Result, ...],
        held: Mapping[str, tuple[int, ...]],
        cleared: tuple[Cleared, ...],
    ) -> Report:
        """All of it."""
        plan = self._plan
        began_s = self._started_s + self._booted_s
        came_back = newcomers(self._host, plan, held, self._ended(), began_s)
        return Report(
            results,
            held,
            cleared,
            self._notes(came_back),
            plan.unseen or plan.blind,
            plan.refused,
            plan.also_held_by,
            plan.nodes,
            plan.spared,
            came_back,
        )

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

    def held_after(self, settle_s: float) -> dict[str, tuple[int, ...]]:
        """Who holds the nodes of the plan now. Where something may start again what has ended, they
        are looked at for so long, unless somebody takes one.
        """
        until_s = time.monotonic() + settle_s
        held = self._still_held()
        while not held and time.monotonic() < until_s and self._restartable():
            time.sleep(LOOK_WHO_S)
            held = self._still_held()
        return held

    def _restartable(self) -> list[tuple[Target, Starter]]:
        """The targets that have ended, with what is there to start them again."""
        if self._stopped.is_set():
            return []
        ended = [e.target for e in self._ended()]
        return [(t, t.starter) for t in ended if t.starter and is_there(self._host, t.starter)]

    def _ended(self) -> list[Ended]:
        """The targets that have ended, and when, in that order."""
        targets = {t.process.key: t for t in self._plan.targets}
        zero_s = self._started_s + self._booted_s
        return [
            Ended(targets[key], zero_s + result.took_s)
            for key, result in self._done.items()
            if result.outcome in ("ended", "killed")
        ]

    def _still_held(self) -> dict[str, tuple[int, ...]]:
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
            sent = f"{signal.Signals(number).name} is pending" if number else "not signalled"
            self._finish(grip, "alive", f"{sent}, but it does not end: {grip.where_it_waits()}")
        if any(grip.reaper() is not None for grip in self._grips):
            time.sleep(LOOK_S)  # most parents take note at once
        return tuple(self._result(grip) for grip in self._grips)

    def _result(self, grip: Grip) -> Result:
        """What became of it, with what is left to do."""
        found = self._done[grip.process.key]
        reaper = grip.reaper()
        if reaper is None:
            return found
        return found._replace(message=f"{found.message}; its parent, pid {reaper}, has to reap it")

    def _notes(self, came_back: Iterable[Newcomer]) -> tuple[str, ...]:
        """What else a person should know."""
        replaced = {newcomer.replaces for newcomer in came_back}
        said = [
            f"pid {target.process.pid} may come back: started by {starter.words}"
            for target, starter in self._restartable()
            if target.process.pid not in replaced
        ]
        if not all(grip.is_firm for grip in self._grips):
            said.append("this kernel has no pidfd: each pid was looked at right before its signal")
        return tuple(said)

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
                self._woken.add(key)
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
            woken = ", and SIGCONT: it was stopped" if grip.process.key in self._woken else ""
            self._finish(grip, outcome, f"ended{by}{woken}")
        elif grip.held() == () and not grip.is_exiting():
            self._finish(grip, "released", "has let go of the TPU, and lives on")

    def _finish(self, grip: Grip, outcome: str, message: str) -> None:
        took_s = time.monotonic() - self._started_s
        key = grip.process.key
        self._done[key] = Result(grip.process, outcome, message, took_s)
        self._say({key: message})
