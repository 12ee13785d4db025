"""Whether a holder works: what shows that it does, and what answers that it does not. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from tpusmi.model import (
    LOST_AFTER_S,
    OK,
    PROFILE,
    ChipKey,
    Device,
    History,
    Life,
    Phase,
    Process,
    Server,
    Snapshot,
    State,
)
from tpusmi.model.history import NOTHING_PERCENT
from tpusmi.model.process import Limits
from tpusmi.model.several import fresh, fresh_own, least
from tpusmi.text import elapsed

WORKED_LATELY_S = 60.0
BUSY = ("duty_cycle_percent", "tensorcore_utilization_percent", "hbm_bandwidth_utilization_percent")
"""Metrics that say whether a device works."""
WORKING_CPU_PERCENT = 20.0
RESTING_CPU_PERCENT = 1.0
"""Share of one core: a process that uses no more does nothing. It is one tick of the kernel's clock
in the shortest time over which it is measured.
"""
NOT_MEASURED = "what it uses of the processor has not been measured yet"
_WORKING_PHASES = (Phase.COMPILING, Phase.RUNNING)


class Case(NamedTuple):
    """A holder at one moment, before its verdict."""

    snapshot: Snapshot
    process: Process
    life: Life
    devices: Sequence[Device]
    limits: Limits
    history: History | None

    @property
    def servers(self) -> list[Server]:
        """Its own metrics servers, those that are silent as well."""
        return [server for server in self.snapshot.servers if server.process == self.process.key]

    @property
    def has_server(self) -> bool:
        """Whether one of them answers."""
        return any(server.status == OK for server in self.servers)

    @property
    def has_agent(self) -> bool:
        """Whether its agent writes."""
        return self.process.interval_s is not None and self.process.state == State.LIVE

    def is_measured(self, *names: str) -> bool:
        """Whether one of those metrics of its devices is measured."""
        return any(self.has_witness(name, d) for name in names for d in self.devices)

    def has_witness(self, name: str, d: Device) -> bool:
        """Whether a metric of that device is measured again and again. A capture is of a moment: it
        can show work, and does not show that there is none.
        """
        value = fresh(self.snapshot, name, d)
        return value is not None and value.source != PROFILE


class Answer(NamedTuple):
    """Whether something that was asked says that it does no work, and the words for either."""

    rests: bool
    words: str


def why_working(c: Case) -> str:
    """What shows that it works, in words; empty when nothing does."""
    lately_s = min(WORKED_LATELY_S, c.limits.idle_s)
    if c.has_agent and c.process.phase in _WORKING_PHASES:
        return f"its agent says that it is {c.process.phase}"
    idle_s = least(c.snapshot, "idle_s", c.devices)
    if idle_s is not None:  # says it exactly; a duty cycle is of the last minute
        return f"one of its devices ran a program {idle_s:.0f} s ago" if idle_s < lately_s else ""
    for d in c.devices:
        for name in BUSY:
            share = fresh(c.snapshot, name, d)
            if share is not None and share.value > NOTHING_PERCENT:
                return f"{d.name} is busy"
    used = c.life.recent_cpu_percent
    if used is None or used < WORKING_CPU_PERCENT or c.is_measured(*BUSY):
        return ""
    return f"it uses {used:.0f} % of a core"


def lack_of_work(c: Case) -> Answer:
    """Whether it is known to do nothing. That nothing shows its work is not enough: a program that
    loads its data, saves a checkpoint or waits for other hosts is also at work.
    """
    rests_s = idle_s(c)
    if rests_s is not None and rests_s >= LOST_AFTER_S:
        return Answer(True, f"it has run nothing for {elapsed(rests_s)}")
    if c.has_agent and c.process.phase != Phase.IDLE:
        return Answer(False, f"its agent says that it is {c.process.phase or 'alive'}")
    used, over_s = c.life.recent_cpu_percent, c.life.recent_s
    if used is None or over_s is None:
        return Answer(False, NOT_MEASURED)
    words = f"used {used:.1f} % of a core over {over_s:.1f} s"
    if used > RESTING_CPU_PERCENT:
        return Answer(False, f"it {words}")
    return Answer(True, f"{_who_answers(c)}, and it {words}")


def idle_s(c: Case) -> float | None:
    """For how long all its devices have run nothing; None when that is not known of every one."""
    measured_s = least(c.snapshot, "idle_s", c.devices)
    if measured_s is not None:
        return measured_s
    stepped_s = fresh_own(c.snapshot, "since_last_step_s", c.process.key)
    if c.has_agent and c.process.phase == Phase.IDLE and stepped_s is not None:
        return stepped_s
    if c.history is None or not all(c.has_witness("duty_cycle_percent", d) for d in c.devices):
        return None
    since_s = [s for d in c.devices if (s := _quiet_since_s(d, c.history)) is not None]
    if not since_s or len(since_s) < len(c.devices):
        return None
    rests_s = c.snapshot.at_s - max(since_s)
    # The chip may have rested for longer than this process has been there.
    return rests_s if c.life.age_s is None else min(rests_s, c.life.age_s)


def _who_answers(c: Case) -> str:
    """What its agent and its server say about its work."""
    if c.has_agent:
        return "its agent says that it is idle"
    names = ("idle_s", *BUSY)
    measured = (any(c.has_witness(name, d) for name in names) for d in c.devices)
    if c.devices and all(measured):
        return "its chips run nothing"
    if c.has_server:
        return "its metrics server knows of no program"
    return "neither an agent nor a metrics server of its own answers"


def _quiet_since_s(d: Device, history: History) -> float | None:
    """Since when a device's duty cycle, or its chip's, is known to have been nothing."""
    since_s = history.nothing_since_s(d.key)
    if since_s is None and d.chip is not None:
        since_s = history.nothing_since_s(ChipKey(d.chip))
    return since_s
