"""Which job to profile when the user names none: the only one that can be captured."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from tpusmi.model import Process, Snapshot
from tpusmi.trace.troubles import CaptureError, Trouble

OTHER_WAYS = (
    "or call jax.profiler.start_server(9012) in it and run `tpusmi profile :9012`, or let it write "
    "a trace and run `tpusmi profile DIRECTORY`"
)
NO_JOB = f"no job here has an agent or holds the TPU: call tpusmi.start() in your job, {OTHER_WAYS}"

NEW_JOB_WITHIN_S, AGAIN_S = 10.0, 0.1


class SeveralJobsError(ValueError):
    """Several jobs run here: the user has to choose."""

    def __init__(self, snapshot: Snapshot, processes: Sequence[Process]) -> None:
        listed = ", ".join(f"{p.pid} ({p.command[:60]})" for p in processes[:10])
        super().__init__(f"several jobs can be profiled, name one of them: pid {listed}")
        self.snapshot, self.processes = snapshot, tuple(processes)


def awaited_jobs(look: Callable[[], Snapshot], is_simulated: bool) -> tuple[Process, ...]:
    """What `jobs_of` gives, from a look at the host. The job of a simulated host may have been
    started just now: it has some time for its first words.
    """
    until_s = time.monotonic() + (NEW_JOB_WITHIN_S if is_simulated else 0.0)
    while True:
        try:
            return jobs_of(look())
        except CaptureError:
            if time.monotonic() >= until_s:
                raise
        time.sleep(AGAIN_S)


def jobs_of(s: Snapshot) -> tuple[Process, ...]:
    """The only job that has an agent or holds the TPU: its process, or all its processes on this
    host when JAX runs it in several.

    Raises SeveralJobsError when there is more than one, and CaptureError when there is none.
    """
    living = [p for p in s.processes if p.is_living and p.is_verified and p.pid != os.getpid()]
    with_agent = [p for p in living if p.interval_s is not None]
    own = [p for p in with_agent if _is_reachable(p)] or with_agent
    jobs = [p for p in own if p.holds] or own or [p for p in living if p.holds]
    if not jobs:
        raise CaptureError(Trouble.ABSENT, NO_JOB)
    if len(jobs) > 1 and not _is_one_job(jobs):
        raise SeveralJobsError(s, jobs)
    return tuple(sorted(jobs, key=lambda p: (p.facts.get("process_index") or 0, p.pid)))


def _is_reachable(p: Process) -> bool:
    """True if its agent takes requests of this user."""
    return os.geteuid() in (0, p.uid)


def _is_one_job(processes: Sequence[Process]) -> bool:
    """True for processes of one user that JAX has numbered as parts of one job."""
    counts = {(p.uid, p.facts.get("process_count")) for p in processes}
    numbers = [p.facts.get("process_index") for p in processes]
    if len(counts) != 1 or None in numbers or len({*numbers}) != len(numbers):
        return False
    ((_, count),) = counts
    return isinstance(count, int) and count >= len(processes)
