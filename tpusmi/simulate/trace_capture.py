"""A capture on a simulated host: which devices, and when."""

from __future__ import annotations

from typing import Any, NamedTuple

from tpusmi.chips import Generation, by_name
from tpusmi.simulate.running import Running
from tpusmi.simulate.trace_timeline import TracedRun

LAUNCH = 12
"""The kind of context that ties a program on a device to the call on the host."""
PICO = 1e12


class SimulatedCapture(NamedTuple):
    """A capture by one process of the job. Times are those of the job."""

    running: Running
    devices: list[dict[str, Any]]
    """Those of the process."""
    begin_s: float
    end_s: float
    began_at_ns: int
    """Unix time."""

    @property
    def generation(self) -> Generation:
        generation = by_name(self.running.description["generation"])
        assert generation is not None
        return generation

    @property
    def length_s(self) -> float:
        return self.end_s - self.begin_s

    def clipped_ps(self, begin_s: float, end_s: float) -> tuple[int, int] | None:
        """Offset and duration of the part of a time that the capture sees; None for none."""
        first = max(0, round((begin_s - self.begin_s) * PICO))
        last = round((min(end_s, self.end_s) - self.begin_s) * PICO)
        return (first, last - first) if last > first else None

    def seen_s(self, begin_s: float, end_s: float) -> float:
        """How much of a time it sees, in seconds."""
        return max(0.0, min(end_s, self.end_s) - max(begin_s, self.begin_s))

    def moment_s(self, run: TracedRun) -> float:
        """A moment for the noise of a run: the same for all in which the job does the same."""
        middle_s = (self.begin_s + self.end_s) / 2
        job = self.running.workload
        is_steady = not any(self.begin_s < change <= self.end_s for change in job.changes())
        is_alike = is_steady and job.activity(middle_s) == run.activity
        return middle_s if is_alike else max(run.begin_s, self.begin_s) + 1e-6


def context_of(number: int, device_index: int) -> int:
    """What ties the run with that number on a device to its call on the host."""
    return number << 16 | device_index
