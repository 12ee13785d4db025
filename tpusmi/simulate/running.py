"""A running simulated host, seen from one of its own processes: its job, its faults, the time.

Standard library only, and little of it: see workload.py.
"""

from __future__ import annotations

import time

from tpusmi.simulate import description, workload
from tpusmi.simulate.faults import FaultFile

_FORCED = {
    "orphan": workload.IDLE,  # what is left of the job holds its chips, and runs nothing
    "idle": workload.IDLE,
    "stall": workload.STALL,
    "hang": workload.HUNG,
}


class Running:
    """What the host's directory says, read again when its faults change."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.description = description.read_fast(directory)
        self._file = FaultFile(directory)
        self._workload = workload.Workload(self.description["seed"])
        self.refresh()

    def refresh(self) -> bool:
        """Look for other faults; True when there are."""
        if not self._file.refresh():
            return False
        ago_s = time.monotonic() - self._file.since_s
        stands_still = self.description["freeze_s"] is not None
        since_s = self.job_time_s - (0.0 if stands_still else ago_s)
        forced = [(_FORCED[name], since_s) for name in _FORCED if name in self.faults]
        # Where time stands still nothing would ever be seen of a leak that begins now.
        leaking_s = workload.LOAD_S + workload.COMPILE_S if stands_still else since_s
        self._workload = workload.Workload(
            self.description["seed"],
            forced[0] if forced else None,
            leaking_s if "leak" in self.faults else None,
        )
        return True

    @property
    def faults(self) -> dict[str, str]:
        return self._file.faults

    @property
    def workload(self) -> workload.Workload:
        return self._workload

    @property
    def job_time_s(self) -> float:
        return description.job_time_s(self.description)

    @property
    def has_agent(self) -> bool:
        """True when the job has called tpusmi.start(): its segment tells what it does."""
        return "leak" in self.faults or bool(self.description.get("agent"))

    @property
    def is_loaded(self) -> bool:
        """False while libtpu has no program and answers with nothing."""
        no_program = self._workload.activity(self.job_time_s) == workload.LOADING
        return not no_program and "empty" not in self.faults
