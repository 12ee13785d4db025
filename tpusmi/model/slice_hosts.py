"""The slice: every process of a multi-host job, as the agent of one of them has read it."""

from typing import NamedTuple

from tpusmi.model.process import ProcessKey
from tpusmi.model.states import Phase, SliceState

SILENT_PERIODS = 2.75
"""A host that has said nothing for this many periods has stopped reporting: a live one is heard of
every 2.2 at most, and a dead one is shown as such within three.
"""
READ_PERIODS = 1.5
"""An agent that has not read for this many periods knows nothing new of any host: none of them
grows silent by that.
"""


class SliceDevice(NamedTuple):
    """One device of a host. None is unknown."""

    id: int | None
    coords: tuple[int, ...] | None
    core_on_chip: int | None
    hbm_used_bytes: int | None
    hbm_limit_bytes: int | None
    tensorcore_utilization_percent: float | None
    duty_cycle_percent: float | None
    idle_s: float | None


class SliceProcess(NamedTuple):
    """One process of the job, as it described itself `age_s` ago. None is unknown."""

    process_index: int
    name: str
    """Its host's name."""
    kind: str | None
    """`TPU v5e`."""
    age_s: float
    """Time since it reported."""
    period_s: float
    """Time between two such reports of it."""
    phase: Phase | None
    steps: int | None
    step_time_s: float | None
    """Mean over the last minute."""
    since_last_step_s: float | None
    mfu_percent: float | None
    sample_age_s: float
    """How old its newest sample was when it reported that."""
    clock_difference_s: float | None
    """Its wall clock minus that of this host."""
    warnings: tuple[str, ...]
    """Codes of its agent's warnings."""
    devices: tuple[SliceDevice, ...]
    slice_index: int | None = None
    """Which slice of a multislice job it is in."""
    counted_devices: int = 0
    """How many devices it has, where those listed are only the first of them."""
    state: SliceState = SliceState.LIVE

    @property
    def device_count(self) -> int:
        """How many devices it has, with those that are not listed."""
        return max(self.counted_devices, len(self.devices))

    @property
    def data_age_s(self) -> float:
        """How old its figures are."""
        return self.age_s + self.sample_age_s

    @property
    def is_old(self) -> bool:
        """True where its figures are not current: it has stopped reporting, or its reports are no
        longer read.
        """
        return self.state != SliceState.LIVE or self.age_s > SILENT_PERIODS * self.period_s

    @property
    def memory_percents(self) -> list[float]:
        """The share of its memory that is in use, of each device of which that is known."""
        return [
            100.0 * d.hbm_used_bytes / d.hbm_limit_bytes
            for d in self.devices
            if d.hbm_used_bytes is not None and d.hbm_limit_bytes
        ]


class Slice(NamedTuple):
    """All processes of one job, by their numbers. Processes without an agent are missing."""

    process: ProcessKey | None
    """The process here whose agent has read it."""
    process_index: int
    """Its number in the job."""
    process_count: int
    job: int
    """The same in all processes of the job."""
    period_s: float
    at_s: float
    """CLOCK_MONOTONIC of when it was read."""
    hosts: tuple[SliceProcess, ...]
    read_s_ago: float = 0.0
    """Seconds since it was read, at the time of the snapshot."""

    @property
    def is_old(self) -> bool:
        """True once its reader has stopped, or hangs: the job may go on, but nothing here can tell
        how.
        """
        return self.read_s_ago > SILENT_PERIODS * self.period_s

    @property
    def pid(self) -> int | None:
        return None if self.process is None else self.process.pid

    def aged(self, now_s: float) -> "Slice":
        """The slice at that time: with the ages then, and with the state of each host."""
        passed_s = max(0.0, now_s - self.at_s)
        counted_s = min(passed_s, READ_PERIODS * self.period_s)
        hosts = tuple(_aged(h, passed_s, counted_s) for h in self.hosts)
        return self._replace(hosts=hosts, read_s_ago=passed_s)


def _aged(h: SliceProcess, passed_s: float, counted_s: float) -> SliceProcess:
    is_silent = h.age_s + counted_s > SILENT_PERIODS * h.period_s
    state = SliceState.STOPPED if is_silent else SliceState.LIVE
    return h._replace(age_s=h.age_s + passed_s, state=state)
