"""Runs each source on its own clock, and merges their newest outcomes. History records them all."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from tpusmi import __version__
from tpusmi.merge import Sightings, snapshot_of
from tpusmi.merge.join import Join
from tpusmi.merge.staleness import judged
from tpusmi.merge.witnesses import SHARED
from tpusmi.model import FAILED, History, Host, Missing, Outcome, Snapshot
from tpusmi.model.process import USUAL, Limits
from tpusmi.sources.host_facts import host_facts
from tpusmi.text import clean

PORT_VARIABLE = "LIBTPUINFO_GRPC_PORT"
"""Ports that are asked for metrics, as nvtop reads it."""
ONCE_DEADLINE_S = 2.0
"""A one-shot run waits no longer than this for all its sources together."""
LOOK_DEADLINE_S = 5.0
"""For one look at who holds the TPU, on which more may depend."""
HUNG_AFTER_PERIODS = 5


class Source(Protocol):
    """A place to read facts from."""

    name: str
    period_s: float

    def read(self, now_s: float) -> Outcome:
        """The facts at present. Answers; does not raise."""
        ...

    def close(self) -> None:
        """Let go of what it holds open. Another read may still be under way."""
        ...


class Collector:
    """Sources on threads of their own: a hung one shows as old and freezes nothing."""

    def __init__(self, host: Host, sources: Sequence[Source], limits: Limits = USUAL) -> None:
        self.history = History()
        self.limits = limits
        """How long a holder may do nothing."""
        self._host, self._sources, self._sightings = host, sources, Sightings()
        self._recording = threading.Lock()
        self._runners = [_Runner(source, self.history, self._record) for source in sources]

    def start(self) -> None:
        """Read every source again and again, until stop()."""
        for runner in self._runners:
            runner.start()

    def stop(self) -> None:
        """Let the threads end; a thread that hangs is left alone, it is a daemon."""
        for runner in self._runners:
            runner.stop()

    def watch_programs(self, is_on: bool) -> None:
        """Ask libtpu what the cores run, from its next look on, or no longer: it is expensive."""
        for source in self._sources:
            if hasattr(source, "with_programs"):
                source.with_programs = is_on

    def read_once(self, deadline_s: float = ONCE_DEADLINE_S) -> Snapshot:
        """Read every source once, all at the same time.

        What has not answered by the deadline has FAILED.
        """
        until_s = time.monotonic() + deadline_s
        questions = deque(runner.question() for runner in self._runners if not runner.is_asked)
        self._answer_all(questions)
        for runner in self._runners:
            runner.wait(max(0.0, until_s - time.monotonic()))
        return self.snapshot()

    def _answer_all(self, questions: deque[Callable[[], None]]) -> None:
        """Each on a thread of its own; where there are not so many, as soon as one is free."""

        def work() -> None:
            while True:
                try:
                    question = questions.popleft()
                except IndexError:
                    return
                question()

        for started in range(len(questions)):
            try:
                threading.Thread(target=work, name="tpusmi-source", daemon=True).start()
            except RuntimeError as error:  # no more threads
                if not started:
                    for runner in self._runners:
                        runner.refuse(error)
                return

    def have_all_answered(self) -> bool:
        """True once every source has been read at least once."""
        return all(runner.has_answered for runner in self._runners)

    def snapshot(self) -> Snapshot:
        """The newest answers of all sources, merged. Does not wait for any of them."""
        s = snapshot_of(self._record(), host_facts(self._host), __version__, self._judged)
        return self._sightings.with_ages(s)

    def _record(self) -> Join:
        """The newest outcomes, joined, and what they show in the history."""
        with self._recording:
            now = time.monotonic()
            outcomes = [runner.outcome(now) for runner in self._runners]
            join = Join(outcomes, now, self._host.simulated)
            self.history.record(join.readings, join.places, join.owners, now)
        return join

    def _judged(self, s: Snapshot) -> Snapshot:
        return judged(s, self.limits, self.history)


class _Runner:
    """One source, its thread, and its newest outcome."""

    def __init__(self, source: Source, history: History, record: Callable[[], object]) -> None:
        self.end = threading.Event()
        self._source = source
        self._history = history
        self._record = record
        self._newest: Outcome | None = None
        self._is_recorded = True
        """Whether the history has the readings of the newest outcome."""
        self._answered_at_s = time.monotonic()
        self._asking: threading.Event | None = None
        """Set once the last question is answered; None for a source on a clock of its own."""

    def start(self) -> None:
        """Read the source again and again, on a thread. Where there is none it has FAILED."""
        self._asking = None
        name = f"tpusmi-{self._source.name}"
        try:
            threading.Thread(target=self._run, name=name, daemon=True).start()
        except RuntimeError as error:
            self.refuse(error)

    def stop(self) -> None:
        """Let the thread end after the read that is under way, and the source let go."""
        self.end.set()
        self._source.close()

    @property
    def is_asked(self) -> bool:
        """True while an answer is owed: a source that hangs is not asked twice."""
        return self._asking is not None and not self._asking.is_set()

    def question(self) -> Callable[[], None]:
        """What reads the source once. The answer is owed from now on."""
        done = self._asking = threading.Event()
        return lambda: self._answer(done)

    def wait(self, limit_s: float) -> None:
        """Until the answer is there that is owed, if any is."""
        if self._asking is not None:
            self._asking.wait(limit_s)

    def refuse(self, error: RuntimeError) -> None:
        """No thread can be started: the source has FAILED."""
        self._newest = Outcome(self._source.name, FAILED, f"not asked: {error}")
        if self._asking is not None:
            self._asking.set()

    @property
    def has_answered(self) -> bool:
        return self._newest is not None

    def outcome(self, now_s: float) -> Outcome:
        """The newest outcome; FAILED, with its last results, when the source no longer answers."""
        self._is_recorded = True
        silent_s = now_s - self._answered_at_s
        newest = self._newest
        if newest is not None and not self._is_hung(silent_s):
            return newest
        message = f"has not answered for {silent_s:.{1 if newest is None else 0}f} s"
        if newest is None:
            return Outcome(self._source.name, FAILED, message, silent_s)
        # Its servers answered then: it is the source itself that is silent now.
        witness = Missing(self._source.name, message)
        missing = (*newest.missing, witness) if self._source.name in SHARED else newest.missing
        return newest._replace(status=FAILED, message=message, took_s=silent_s, missing=missing)

    def _is_hung(self, silent_s: float) -> bool:
        """Whether it owes an answer: to the question that was asked of it, else to its clock.

        How old an answer to a question is tells only how long the other sources took.
        """
        if self._asking is not None:
            return self.is_asked
        return silent_s > max(ONCE_DEADLINE_S, HUNG_AFTER_PERIODS * self._source.period_s)

    def _run(self) -> None:
        while not self.end.is_set():
            self._answer()
            self.end.wait(self._source.period_s)

    def _answer(self, done: threading.Event | None = None) -> None:
        started = time.monotonic()
        try:
            outcome = self._source.read(started)
            if not self._is_recorded:  # the screen is paused, or drawn more seldom
                self._record()
        except Exception as error:  # noqa: BLE001  # must not take the screen with it
            message = clean(f"{type(error).__name__}: {error}", 200)
            outcome = Outcome(self._source.name, FAILED, message, time.monotonic() - started)
        self._history.add(outcome.past)
        self._newest, self._is_recorded = outcome, not outcome.readings
        self._answered_at_s = time.monotonic()
        if done is not None:
            done.set()


def open_collector(
    host: Host,
    with_past: bool = False,
    period_s: float = 1.0,
    with_programs: bool = False,
    detailed: bool = False,
) -> Collector:
    """The collector of a host, with every source this version has.

    `with_past` and `detailed` are for a screen that stays: the past of each job, the origin of each
    holder, and the contents of each device's memory.
    """
    from tpusmi.sources.holders import Holders
    from tpusmi.sources.libtpu import Libtpu
    from tpusmi.sources.libtpu.sdk import LibtpuSdk
    from tpusmi.sources.segments import Segments
    from tpusmi.sources.sysfs import Sysfs

    chips = Sysfs(host)
    holders = Holders(host, chips.chips, detailed)
    libtpu = Libtpu(host, holders.processes, with_programs)
    return Collector(
        host,
        [
            Segments(host, with_past, period_s, by_device=detailed),
            chips,
            holders,
            libtpu,
            LibtpuSdk(host, lambda: bool(chips.chips()), lacking=libtpu.lacking),
        ],
    )


def holding_collector(host: Host, limits: Limits = USUAL) -> Collector:
    """The collector of the TPU's holders and of all evidence of their work: its verdicts are those
    of the dashboard.
    """
    collector = open_collector(host, detailed=True)
    collector.limits = limits
    return collector


def look(host: Host, limits: Limits = USUAL, deadline_s: float = LOOK_DEADLINE_S) -> Snapshot:
    """The host as a program sees it that wants the TPU: chips, holders and their work, the lock."""
    collector = holding_collector(host, limits)
    try:
        return collector.read_once(deadline_s)
    finally:
        collector.stop()


def this_host() -> Host:
    """The machine we run on; TPUSMI_DIR names the only place to look for segments, and
    LIBTPUINFO_GRPC_PORT ports that are asked for metrics besides the usual one.
    """
    host = Host(segment_dir=os.environ.get("TPUSMI_DIR") or None)
    text = os.environ.get(PORT_VARIABLE)
    if not text:
        return host
    from tpusmi.sources.libtpu.ports import named_ports  # here: few set it

    ports = (*host.metrics_ports, *named_ports(text))
    return host._replace(metrics_ports=tuple(dict.fromkeys(ports)))


def snapshot(deadline_s: float = ONCE_DEADLINE_S) -> Snapshot:
    """What is on this host now, as `tpusmi --json` shows it.

    Sources that do not answer within the deadline are listed as failed; it raises nothing.
    """
    collector = open_collector(this_host())
    try:
        return collector.read_once(deadline_s)
    finally:
        collector.stop()
