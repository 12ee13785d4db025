"""A real program in the place of the simulated job: what its agent measures, from which the numbers
of the simulated chips follow, so that both tell the same story.

The process that serves metrics reads the program's segment, and writes what follows from it to a
file that the stand-in for libtpu's SDK reads as well.

Standard library only, and little of it: see workload.py.
"""

from __future__ import annotations

import os
import time
from collections import deque

from tpusmi.simulate import workload
from tpusmi.simulate.description import content
from tpusmi.simulate.workload import BUSY, COMPILING, HUNG, IDLE, MODEL_SHARE, MXU, TRAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

FILE = "measured"
"""In the host's directory: a line of numbers. Absent until the program's agent has measured."""
IDLE_AFTER_S, STOPPED_AFTER_S = 5.0, 2.0
"""A program whose last step ended longer ago lets its chips wait: steps that wait for their input
take seconds, but with a fault that stops the program there are none.
"""
RESERVED, SCRATCH = 0.012, 0.02
"""What is in use beside arrays: a share of the memory for the runtime, and one of the arrays."""
RECENT_LOOKS = 6
"""MFU is a mean of the last minute; the chips are as busy as the last few seconds made them."""
STEADY = 0.75
"""Steps of the last seconds that differ less from the minute's differ by chance."""
KEPT_LOOKS = 4
"""The allocator returns memory a few looks after the arrays in it are gone."""


class Measured:
    """What the program's agent has measured: its present MFU is a share, and `live_bytes` are the
    bytes in arrays of each device.
    """

    def __init__(
        self, at_s: float, steps: float, since_step_s: float, mfu: float, *live_bytes: float
    ) -> None:
        self.at_s = at_s
        self.steps = steps
        self.since_step_s = since_step_s
        self.mfu = mfu
        self.live_bytes = live_bytes

    @property
    def line(self) -> str:
        """Its line of the file."""
        numbers = (self.at_s, self.steps, self.since_step_s, self.mfu, *self.live_bytes)
        return " ".join(map(repr, numbers))


def measured_in(line: bytes) -> Measured | None:
    """What that line of the file says; None if it is not one."""
    try:
        return Measured(*map(float, line.split()))
    except (TypeError, ValueError):  # too few numbers, or other text
        return None


def write(directory: str, measured: Measured | None) -> None:
    """Write what was measured; None when there is no program."""
    path = f"{directory}/{FILE}"
    if measured is None:
        if os.path.exists(path):
            os.unlink(path)
        return
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(measured.line)
    os.replace(f"{path}.new", path)


class RecentSteps:
    """How fast the program's steps end now, compared to the minute of which the MFU is a mean."""

    def __init__(self) -> None:
        self._ends: deque[tuple[float, float]] = deque(maxlen=RECENT_LOOKS)
        """When a step had ended, and how many there were then: newest last."""

    def look(self, ended_s: float, steps: float) -> None:
        """Add a look. After a pause, and with another program, it begins again."""
        if self._ends:
            last_s, last_steps = self._ends[-1]
            if steps == last_steps:
                return
            if steps < last_steps or ended_s - last_s > IDLE_AFTER_S:
                self._ends.clear()
        self._ends.append((ended_s, steps))

    def over_mean(self, steps_per_s: float) -> float:
        """Present steps per second over those of the minute; 1 where the two hardly differ, or
        nothing is known.
        """
        if len(self._ends) < 2 or steps_per_s <= 0:
            return 1.0
        (first_s, first), (last_s, last) = self._ends[0], self._ends[-1]
        ratio = (last - first) / max(last_s - first_s, 1e-3) / steps_per_s
        return 1.0 if STEADY < ratio < 1 / STEADY else ratio


class FollowedJob(workload.Workload):
    """The chips of a real program, as busy and as full as it makes them."""

    program_s = 0.24

    def __init__(self, directory: str, limit_bytes: int) -> None:
        super().__init__()
        self._path = f"{directory}/{FILE}"
        self._limit_bytes = limit_bytes
        self._line = b""
        self._measured: Measured | None = None
        self._live: deque[tuple[float, ...]] = deque(maxlen=KEPT_LOOKS)
        """The bytes in arrays of each device at the last few looks."""
        self._at_rest, self._slow, self._patience_s = IDLE, 1.0, IDLE_AFTER_S

    def follow(self, faults: Collection[str], speed: float) -> None:
        """Read what was measured last. A program without steps hangs where that is a fault, and a
        program on slow hardware makes fewer steps, which does not leave its chips less to do.
        """
        self._at_rest, self._slow = HUNG if "hang" in faults else IDLE, speed
        is_stopped = not {"hang", "idle"}.isdisjoint(faults)
        self._patience_s = STOPPED_AFTER_S if is_stopped else IDLE_AFTER_S
        try:
            line = content(self._path)
        except (OSError, ValueError):
            line = b""
        if line != self._line:
            self._line, self._measured = line, measured_in(line)
            self._live.append(() if self._measured is None else self._measured.live_bytes)

    def activity(self, t_s: float) -> str:
        if self._measured is None or not self._measured.steps:
            return COMPILING  # the memory has a limit before the first step
        return TRAIN if self.since_step_s(t_s) < self._patience_s else self._at_rest

    def duty(self, t_s: float, device: int) -> float:
        if self.activity(t_s) == HUNG:
            return BUSY[HUNG]
        share = min(BUSY[TRAIN], self._like(t_s, BUSY) / self._slow)
        return self._shaken(share, 0.012, "duty", device, t_s)

    def mxu(self, t_s: float, device: int) -> float:
        # So little noise that it is never less than the MFU, which is a part of it.
        return self._shaken(self.mxu_mean(t_s), 0.04, "mxu", device, t_s)

    def mxu_mean(self, t_s: float) -> float:
        if self._measured is None or self.activity(t_s) != TRAIN:
            return 0.0
        return self._measured.mfu / MODEL_SHARE

    def bandwidth(self, t_s: float, device: int) -> float:
        share = self._like(t_s, workload.BANDWIDTH)
        return self._shaken(min(0.95, share), 0.04, "bw", device, t_s)

    def idle_s(self, t_s: float, device: int) -> float:
        activity = self.activity(t_s)
        if activity in (COMPILING, HUNG):
            return 0.0
        since_s = self.since_step_s(t_s)
        return since_s if activity == IDLE else min(since_s, 0.02)

    def memory(self, t_s: float, device: int) -> float:
        """Share of the memory in use: the program's arrays, and a little more."""
        live = max((looked[device] for looked in self._live if device < len(looked)), default=0.0)
        return min(1.0, RESERVED + (1 + SCRATCH) * live / self._limit_bytes) if live else 0.0

    def paces(self, t_s: float) -> list[tuple[float, float]]:
        return [(1.0, 0.0 if self._measured is None else self._measured.steps)]

    def steps_per_s(self, t_s: float) -> float:
        return 0.0  # its agent says it

    def since_step_s(self, t_s: float) -> float:
        """How long ago the last step ended, by the clock of the machine."""
        last = self._measured
        return 0.0 if last is None else max(0.0, time.monotonic() - last.at_s + last.since_step_s)

    def _like(self, t_s: float, of: dict[str, float]) -> float:
        """That share, in proportion to the work of the matrix units."""
        return of[TRAIN] * self.mxu_mean(t_s) / MXU[TRAIN]
