"""A running simulated host, seen from one of its own processes: its job, its faults, its hardware.

Standard library only, and little of it: see workload.py.
"""

from __future__ import annotations

import time

from tpusmi.simulate import description, workload
from tpusmi.simulate.faults import FaultFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FORCED = {
    "orphan": workload.IDLE,  # what is left of the job holds its chips, and runs nothing
    "idle": workload.IDLE,
    "stall": workload.STALL,
    "hang": workload.HUNG,
}
TRAY = 1
LINKS_FLAT, LINKS_CUBIC = 4, 6
THROTTLE_MOST, HEALTH_MOST = 10, 10
"""The worst scores: a chip throttled by 100 %, and a link that cannot be used."""
SPEED_LEAST = 0.05
COLLECTIVES = 0.15
"""Share of a healthy step that its chips spend on talking to each other."""


class Running:
    """What the host's directory says, read again when its faults change."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.description = description.read_fast(directory)
        self._file = FaultFile(directory)
        self.workload = self._first_workload()
        self._is_first = True
        self.refresh()

    def _first_workload(self) -> workload.Workload:
        limit_bytes = self.description.get("followed_hbm_bytes")
        if limit_bytes is None:
            return workload.Workload(self.description["seed"])
        from tpusmi.simulate.followed import FollowedJob

        return FollowedJob(self.directory, limit_bytes)

    @property
    def is_followed(self) -> bool:
        """True when a real program is the job: its agent measures what it does."""
        return self.description.get("followed_hbm_bytes") is not None

    def refresh(self) -> None:
        """Adopt the faults that the file names now, and what a real program does."""
        changed = self._file.refresh()
        if self.is_followed:
            self.workload.follow(self.faults, self.speed)
        elif changed:
            self._adopt_faults()

    def _adopt_faults(self) -> None:
        ago_s = time.monotonic() - self._file.since_s
        stands_still = self.description["freeze_s"] is not None
        since_s = self.job_time_s - (0.0 if stands_still else ago_s)
        # Where time stands still, what begins now would never show.
        leaking_s = workload.LOAD_S + workload.COMPILE_S if stands_still else since_s
        before, what = self.workload, next((_FORCED[f] for f in _FORCED if f in self.faults), None)
        forced = None if what is None else (what, since_s)
        if before.forced is not None and before.forced[0] == what:
            forced = before.forced  # it goes on: only other faults have changed
        if before.leaking_s is not None:
            leaking_s = before.leaking_s
        self.workload = workload.Workload(
            self.description["seed"],
            forced,
            leaking_s if "leak" in self.faults else None,
            self.speed,
            None if self._is_first or stands_still else (since_s, before),
        )
        self._is_first = False

    @property
    def speed(self) -> float:
        """How fast the job works: all its chips wait for the slowest chip and the slowest link."""
        throttled = int(self.faults.get("throttle", "0")) / THROTTLE_MOST
        health = int(self.faults.get("bad-link", "0")) if self._has_links else 0
        carried = 1 - health / (HEALTH_MOST + 1)
        collectives = COLLECTIVES * (1 / carried - 1)
        return max(SPEED_LEAST, 1 - throttled) / (1 + collectives)

    @property
    def _has_links(self) -> bool:
        chips: int = self.description["hosts"] * len(self.description["chips"])
        return chips > 1

    @property
    def job_devices(self) -> int:
        """How many devices the job has, on all its hosts."""
        return int(self.description["hosts"] * len(self.description["devices"]))

    @property
    def faults(self) -> dict[str, str]:
        """The faults in force by name, with their arguments."""
        return self._file.faults

    @property
    def job_time_s(self) -> float:
        """Seconds since the job's start; with `freeze_s` always the same."""
        if self.description["freeze_s"] is not None:
            return float(self.description["freeze_s"])
        return time.monotonic() - float(self.description["born_at_s"])

    @property
    def has_agent(self) -> bool:
        """True when the job has called tpusmi.start(): its segment shows what it does."""
        if self.is_followed:
            return False  # it has a real one
        return "leak" in self.faults or bool(self.description.get("agent"))

    @property
    def is_loaded(self) -> bool:
        """False while libtpu has no program and answers with nothing."""
        no_program = self.workload.activity(self.job_time_s) == workload.LOADING
        return not no_program and "empty" not in self.faults

    # What only hardware knows.

    def mxu_percents(self) -> list[float]:
        """MXU utilization of every device, in local order; empty while no program is loaded."""
        if not self.is_loaded:
            return []
        t_s, devices = self.job_time_s, self.description["devices"]
        held = self._held_chips()
        return [
            100 * self.workload.mxu(t_s, device["id"]) if device["chip"] in held else 0.0
            for device in devices
        ]

    def _held_chips(self) -> set[int]:
        """The chips whose process is still there: no program runs on the others."""
        living = (p for p in self.description["processes"] if self._lives(p))
        return {chip for process in living for chip in process["chips"]}

    def _lives(self, process: dict[str, Any]) -> bool:
        if self.description["freeze_s"] is not None or process.get("start_ticks") is None:
            return True
        return description.lives(int(process["pid"]), int(process["start_ticks"]))

    def links(self) -> list[tuple[int, str, int]]:
        """Chip, name and health of every link. Both ends of a bad one report it, as far as they are
        on this host: its last chip, and the neighbor before.
        """
        chips = range(len(self.description["chips"]))
        each = LINKS_CUBIC if self.description["cubic"] else LINKS_FLAT
        bad, health = ((chips[-1], 0), (chips[-1] - 1, 1)), int(self.faults.get("bad-link", "0"))
        return [
            (chip, f"tray{TRAY}.chip{chip}.ici{link}.int", health if (chip, link) in bad else 0)
            for chip in chips
            for link in range(each)
        ]

    def throttle_scores(self) -> list[int]:
        """Score of every chip, 0 to 10."""
        score = int(self.faults.get("throttle", "0"))
        return [0 if chip else score for chip in range(len(self.description["chips"]))]
