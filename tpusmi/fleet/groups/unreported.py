"""Hosts of a job that no exporter reports: its processes say how many they are. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from tpusmi.fleet.fleet_figures import FleetHost, FleetProcess
from tpusmi.fleet.groups.stragglers import JobKey, job_of

PROCESSES_MOST = 100_000
"""A larger number is not one of processes."""


def unreported_hosts(hosts: Iterable[FleetHost]) -> Mapping[tuple[str, ...], int]:
    """How many hosts of each job there are at least beside these, which must be all of the fleet;
    by their JobKey. Jobs of which that is unknown are left out: without `slice_job` two jobs can
    have one name, and one job can be on two slices.
    """
    of_job: dict[JobKey, list[tuple[str, FleetProcess]]] = defaultdict(list)
    unsure = set()
    for host in hosts:
        for p in host.processes:
            if p.slice_job is None:
                unsure.add(p.likeness)
            elif p.process_count is not None:
                of_job[job_of(host, p)].append((host.key, p))
    counts = (
        (job, _missing(reported))
        for job, reported in of_job.items()
        if unsure.isdisjoint(p.likeness for _, p in reported)
    )
    return {job: count for job, count in counts if count is not None}


def _missing(reported: Sequence[tuple[str, FleetProcess]]) -> int | None:
    counts = {p.process_count for _, p in reported}
    indexes = {p.process_index for _, p in reported}
    expected = counts.pop() or 0
    if counts or not 0 < expected <= PROCESSES_MOST:
        return None
    present = len(reported) if None in indexes else len(indexes)
    on_one_host = max(Counter(host for host, _ in reported).values())
    return max(0, -(-(expected - present) // on_one_host))
