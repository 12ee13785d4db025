"""Runs each source on its own clock, and merges their newest outcomes. History records them all."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from tpusmi import __version__
from tpusmi.merge import snapshot_of
from tpusmi.merge.join import Join
from tpusmi.merge.staleness import judged
from tpusmi.model import History, Host, Snapshot
from tpusmi.model.process import USUAL, Limits
from tpusmi.source_runner import ONCE_DEADLINE_S, Runner, Source
from tpusmi.sources.host_facts import host_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.merge.memory_watch import MemoryWatch
    from tpusmi.merge.sightings import Sightings
    from tpusmi.model import ProcessKey
    from tpusmi.sources.profiles import Profiles
    from tpusmi.trace.figures import TraceProfile

SETTLED_S = 10.0
"""A viewer that has run for this long stays: from then on it watches how memory changes."""
PORT_VARIABLE = "LIBTPUINFO_GRPC_PORT"
"""Ports that are asked for metrics, as nvtop reads it."""
LOOK_DEADLINE_S = 5.0
"""For one look at who holds the TPU, on which more may depend."""


class Collector:
    """Sources on threads of their own: a hung one shows as old and freezes nothing."""

    def __init__(self, host: Host, sources: Sequence[Source], limits: Limits = USUAL) -> None:
        self.history = History()
        self.limits = limits
        """How long a holder may do nothing."""
        self._host, self._sources = host, [*sources]
        self._profiles: Profiles | None = None
        """None before the first capture."""
        self._sightings: Sightings | None = None
        self._first_s: float | None = None
        """When it recorded first."""
        self._watch: MemoryWatch | None = None
        self._recording = threading.Lock()
        self._runners = [Runner(source, self.history, self._record) for source in sources]

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

    def keep_profile(self, process: ProcessKey, profile: TraceProfile, at_s: float) -> None:
        """Show what a capture says of a process's devices; it ended at CLOCK_MONOTONIC at_s."""
        if self._profiles is None:
            from tpusmi.sources.profiles import Profiles

            self._profiles = Profiles()
            self._profiles.take(process, profile, at_s)
            runner = Runner(self._profiles, self.history, self._record)
            self._sources.append(self._profiles)
            self._runners.append(runner)
            runner.start()
        else:
            self._profiles.take(process, profile, at_s)

    def read_once(self, deadline_s: float = ONCE_DEADLINE_S) -> Snapshot:
        """Read every source once, all at the same time.

        What has not answered by the deadline has FAILED.
        """
        left_s = deadline_s
        questions = deque(runner.question() for runner in self._runners if not runner.is_asked)
        self._answer_all(questions)
        for runner in self._runners:
            left_s = runner.wait(left_s)
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

    def ages_s(self) -> dict[str, float]:
        """How long ago each source answered last, by its name; without those that never did."""
        now_s = time.monotonic()
        ages = {runner.name: runner.age_s(now_s) for runner in self._runners}
        return {name: age_s for name, age_s in ages.items() if age_s is not None}

    def snapshot(self) -> Snapshot:
        """The newest answers of all sources, merged. Does not wait for any of them."""
        s = snapshot_of(self._record(), host_facts(self._host), __version__, self._judged)
        watch = self._watch
        if watch is not None:
            with self._recording:
                s = watch.on(s)
        return self._with_ages(s)

    def _with_ages(self, s: Snapshot) -> Snapshot:
        """The snapshot with the ages of its notices."""
        if self._sightings is None:
            if not s.warnings:
                return s
            from tpusmi.merge.sightings import Sightings

            self._sightings = Sightings()
        return self._sightings.with_ages(s)

    def _record(self) -> Join:
        """The newest outcomes, joined, and what they show in the history."""
        with self._recording:
            now = time.monotonic()
            outcomes = [runner.outcome(now) for runner in self._runners]
            join = Join(outcomes, now, self._host.simulated)
            self.history.record(dict(join.readings), join.places, join.owners, now)
            watch = self._watched_for(now)
            if watch is not None:
                watch.look(join, self.history, now)
                watch.add_peaks(join)  # not recorded: a series for each device, and none is drawn
        return join

    def _watched_for(self, now_s: float) -> MemoryWatch | None:
        """What sees how memory changes; None in a viewer that may be gone at once."""
        if self._watch is None:
            self._first_s = now_s if self._first_s is None else self._first_s
            if now_s - self._first_s >= SETTLED_S:
                from tpusmi.merge.memory_watch import MemoryWatch

                self._watch = MemoryWatch()
        return self._watch

    def _judged(self, s: Snapshot) -> Snapshot:
        return judged(s, self.limits, self.history)


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


def look_for_jobs(host: Host, deadline_s: float = LOOK_DEADLINE_S) -> Snapshot:
    """The processes with an agent and the holders of the TPU, with no question to any server."""
    from tpusmi.sources.holders import Holders
    from tpusmi.sources.segments import Segments
    from tpusmi.sources.sysfs import Sysfs

    chips = Sysfs(host)
    collector = Collector(host, [Segments(host), chips, Holders(host, chips.chips)])
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
