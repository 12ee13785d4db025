"""Hosts that their job waits for: those with longer steps than the others. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from tpusmi.fleet.fleet_figures import FleetHost, FleetProcess, HostState
from tpusmi.merge.slice_notices import LEAST, SLOWER

STEP = "step_time_s.mean"


class JobKey(NamedTuple):
    """One job on many hosts."""

    name: str
    """The name of its program."""
    user: str
    slice: str
    """The slice that it runs on, where that is known: two jobs of one name are on two slices."""


class Straggler(NamedTuple):
    """A process whose steps are slow."""

    host: str
    """The key of its host."""
    name: str
    """The host's name."""
    pid: int
    step_time_s: float
    usual_s: float
    """The median of its job."""


def job_of(host: FleetHost, p: FleetProcess) -> JobKey:
    """The job that a process belongs to."""
    return JobKey(name=p.job or "", user=p.user or "", slice=p.slice_job or host.slice or "")


def stragglers(hosts: Iterable[FleetHost]) -> tuple[Straggler, ...]:
    """Processes of live hosts with steps that take SLOWER times the median of their job, of at
    least LEAST processes; the slowest first.
    """
    of_job: dict[JobKey, list[tuple[float, FleetHost, FleetProcess]]] = defaultdict(list)
    for host in hosts:
        for p in host.processes if host.state == HostState.LIVE else ():
            step_s = p.values.get(STEP)
            if step_s:
                of_job[job_of(host, p)].append((step_s, host, p))
    slow = []
    for steps in of_job.values():
        if len(steps) < LEAST:
            continue
        usual_s = median(step_s for step_s, _, _ in steps)
        slow += [
            Straggler(host=h.key, name=h.name, pid=p.pid, step_time_s=step_s, usual_s=usual_s)
            for step_s, h, p in steps
            if step_s > SLOWER * usual_s
        ]
    return tuple(sorted(slow, key=lambda x: (-x.step_time_s / x.usual_s, x.name, x.pid)))
