"""Which job a process is of, where only other hosts of its slice know that. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable

from tpusmi.fleet.fleet_figures import FleetHost, FleetProcess


def with_slice_jobs(hosts: Iterable[FleetHost]) -> tuple[FleetHost, ...]:
    """The hosts, with the `slice_job` of each process that has none itself: its agent does not
    read the others, or has not done so yet. It is that of the processes of the same name, user and
    number on the same slice, if all of those have the same.
    """
    all_hosts = tuple(hosts)
    known: dict[Hashable, set[str]] = defaultdict(set)
    for host in all_hosts:
        for p in host.processes:
            if p.slice_job is not None:
                known[_sign(host, p)].add(p.slice_job)
    one = {sign: next(iter(jobs)) for sign, jobs in known.items() if len(jobs) == 1}
    return tuple(_filled(host, one) for host in all_hosts) if one else all_hosts


def _filled(host: FleetHost, known: dict[Hashable, str]) -> FleetHost:
    if host.slice is None or all(p.slice_job is not None for p in host.processes):
        return host
    processes = [
        p._replace(slice_job=p.slice_job or known.get(_sign(host, p))) for p in host.processes
    ]
    return host._replace(processes=tuple(processes))


def _sign(host: FleetHost, p: FleetProcess) -> Hashable:
    return host.slice, *p.likeness
