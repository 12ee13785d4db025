"""The targets of a plan while it is carried out: how far each one is, and what is left of them."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from tpusmi.actions.grip import DOUBTS, Fate, Grip
from tpusmi.actions.outcome import Cleared, Newcomer, Report, Result, zombie_until
from tpusmi.actions.plan import Plan, Starter, Target
from tpusmi.actions.restarts import EndedTarget, is_there, newcomers
from tpusmi.model import ENDING_CODES, Host, ProcessKey
from tpusmi.sources.holders.scan import Scan, ScanResult

PROOF_S = 0.1
"""An older proof is taken again before a signal."""
LOOK_S, LOOK_CLOSER_S = 0.1, 0.5
"""How often to look whether a process has ended, and whether it still holds its nodes."""
LOOK_FOR_HOLDERS_S = 0.2
"""How often to look at every process, for one that takes a node."""

OnProgress = Callable[[Mapping[ProcessKey, str]], object]
"""Called now and then with what is happening to each process, in words."""


class Ending:
    """Ends the targets of one plan, and remembers what became of each."""

    def __init__(self, scan: Scan, host: Host, plan: Plan, on_progress: OnProgress | None) -> None:
        self._scan = scan
        self._host = host
        self._plan = plan
        self._on_progress = on_progress
        self._started_s = time.monotonic()
        self._booted_s = time.clock_gettime(time.CLOCK_BOOTTIME) - self._started_s
        proc = host.path("/proc")
        self._grips = [Grip(scan, proc, target.process) for target in plan.targets]
        self._done: dict[ProcessKey, Result] = {}
        self._signalled: dict[ProcessKey, int] = {}
        self._woken: set[ProcessKey] = set()
        """Processes that were stopped, and were continued to take the signal."""
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Send no more signals and report no more progress: the caller has stopped waiting."""
        self._stopped.set()

    def signal_all(self, number: int) -> None:
        """Signal every target that is left, after proof of all of them."""
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
            if grip.process.stale_code in ENDING_CODES:
                continue  # the kernel is already taking it apart: a signal changes nothing
            if time.monotonic() - proven_at_s > PROOF_S and (doubt := grip.doubt()):
                self._finish(grip, doubt, DOUBTS[doubt])
            else:
                self._signal(grip, number)

    def given_up(self) -> Report:
        """A report for when the kernel has stopped answering."""
        message = "unknown: the kernel did not answer in time"
        left = [Result(g.process, Fate.UNSEEN, message, took_s=0.0) for g in self._left()]
        results = (*self._done.values(), *left)
        report = self.report(results, dict.fromkeys(self._plan.nodes, ()), ())
        return report._replace(unseen=message)

    def report(
        self,
        results: tuple[Result, ...],
        held: Mapping[str, tuple[int, ...]],
        cleared: tuple[Cleared, ...],
    ) -> Report:
        """The whole report."""
        plan = self._plan
        began_s = self._started_s + self._booted_s
        came_back = newcomers(self._host, plan, held, self._ended(), began_s)
        return Report(
            results=results,
            still_held=held,
            lock_files=cleared,
            notes=self._notes(came_back),
            unseen=plan.unseen or plan.blind,
            refused=plan.refused,
            also_held_by=plan.also_held_by,
            nodes=plan.nodes,
            spared=plan.spared,
            came_back=came_back,
        )

    def wait(self, limit_s: float, what: str) -> None:
        """Wait until all targets have ended or released the TPU, but not longer than the limit."""
        since_s = time.monotonic()
        while left := self._left():
            waited_s = time.monotonic() - since_s
            if waited_s >= limit_s or self._stopped.is_set():
                return
            words = f"{what}, {waited_s:.0f} of {limit_s:.0f} s"
            self._report_progress(dict.fromkeys((g.process.key for g in left), words))
            time.sleep(min(LOOK_S, limit_s - waited_s))
            closer = int((waited_s + LOOK_S) / LOOK_CLOSER_S) > int(waited_s / LOOK_CLOSER_S)
            for grip in left:
                if closer or grip.has_ended():
                    self._settle(grip)

    def held_after(self, settle_s: float) -> dict[str, tuple[int, ...]]:
        """The pids that hold each node of the plan now. Where something may start an ended process
        again, the nodes are watched for that long, or until a process takes one.
        """
        until_s = time.monotonic() + settle_s
        held = self._still_held()
        while not held and time.monotonic() < until_s and self._restartable():
            time.sleep(LOOK_FOR_HOLDERS_S)
            held = self._still_held()
        return held

    def _restartable(self) -> list[tuple[Target, Starter]]:
        """The targets that have ended, each with what is still there to start it again."""
        if self._stopped.is_set():
            return []
        ended = [e.target for e in self._ended()]
        return [(t, t.starter) for t in ended if t.starter and is_there(self._host, t.starter)]

    def _ended(self) -> list[EndedTarget]:
        """The targets that have ended, in the order of their ends."""
        targets = {t.process.key: t for t in self._plan.targets}
        zero_s = self._started_s + self._booted_s
        return [
            EndedTarget(targets[key], zero_s + result.took_s)
            for key, result in self._done.items()
            if result.outcome in (Fate.ENDED, Fate.KILLED)
        ]

    def _still_held(self) -> dict[str, tuple[int, ...]]:
        """The pids that hold each node of the plan now; no pid where that cannot be seen."""
        try:
            self._scan.look(time.monotonic(), full=True)
        except OSError:
            return dict.fromkeys(self._plan.nodes, ())
        holders = self.scanned().holders
        held = {
            node: tuple(pid for pid, nodes in holders.items() if node in nodes)
            for node in self._plan.nodes
        }
        return {node: pids for node, pids in held.items() if pids}

    def scanned(self) -> ScanResult:
        """What the last look has found."""
        return self._scan.result()

    def results(self) -> tuple[Result, ...]:
        """What became of each target, in the order of the plan. Any that is left does not end."""
        for grip in self._left():
            self._settle(grip)
        for grip in self._left():
            number = self._signalled.get(grip.process.key)
            sent = f"{signal.Signals(number).name} is pending" if number else "not signalled"
            self._finish(grip, Fate.ALIVE, f"{sent}, but it does not end: {grip.where_it_waits()}")
        if any(grip.reaper() is not None for grip in self._grips):
            time.sleep(LOOK_S)  # most parents reap at once
        return tuple(self._result(grip) for grip in self._grips)

    def _result(self, grip: Grip) -> Result:
        """What became of it, and what is left to do."""
        done = self._done[grip.process.key]
        reaper = grip.reaper()
        if reaper is None:
            return done
        return done._replace(message=f"{done.message}; {zombie_until(reaper)}")

    def _notes(self, came_back: Iterable[Newcomer]) -> tuple[str, ...]:
        """What else a person should know."""
        replaced = {newcomer.replaces for newcomer in came_back}
        notes = [
            f"pid {target.process.pid} may come back: started by {starter.words}"
            for target, starter in self._restartable()
            if target.process.pid not in replaced
        ]
        if not all(grip.is_firm for grip in self._grips):
            notes.append("this kernel has no pidfd: each pid was checked right before its signal")
        return tuple(notes)

    def close(self) -> None:
        """Close the descriptors of the processes."""
        for grip in self._grips:
            grip.close()

    def _report_progress(self, words: Mapping[ProcessKey, str]) -> None:
        if self._on_progress is not None and not self._stopped.is_set():
            self._on_progress(words)

    def _left(self) -> list[Grip]:
        return [grip for grip in self._grips if grip.process.key not in self._done]

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
            self._finish(grip, Fate.NOT_PERMITTED, f"could not be signalled: {error.strerror}")

    def _settle(self, grip: Grip) -> None:
        """Finish it if it has ended, or keeps running without the TPU."""
        number = self._signalled.get(grip.process.key)
        if grip.has_ended():
            outcome = Fate.KILLED if number == signal.SIGKILL else Fate.ENDED
            by = f" by {signal.Signals(number).name}" if number else ""
            woken = ", and SIGCONT: it was stopped" if grip.process.key in self._woken else ""
            self._finish(grip, outcome, f"ended{by}{woken}")
        elif grip.held() == () and not grip.is_exiting():
            self._finish(grip, Fate.RELEASED, "released the TPU, and is still running")

    def _finish(self, grip: Grip, outcome: Fate, message: str) -> None:
        took_s = time.monotonic() - self._started_s
        key = grip.process.key
        self._done[key] = Result(grip.process, outcome, message, took_s=took_s)
        self._report_progress({key: message})
