"""Notices about a whole slice, which all of its hosts have: once per job in a fleet. Pure."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

from tpusmi.fleet.fleet_figures import FleetHost, FleetNotice, HostState
from tpusmi.fleet.groups.stragglers import job_of

SILENT, STRAGGLER = "slice_silent", "slice_straggler"
ABOUT_SLICES = (SILENT, STRAGGLER, "slice_memory", "slice_clock")
"""Codes of notices about hosts of a slice that all of its hosts have."""


def each_once(hosts: Iterable[FleetHost], slow: Collection[str]) -> tuple[FleetHost, ...]:
    """The hosts, where one host of each job keeps such a notice: the straggler if it is about one
    and known, else the first live host. `slow` has the keys of stragglers.
    """
    all_hosts = tuple(hosts)
    keepers: dict[Hashable, tuple[tuple[bool, bool], str]] = {}
    for host in all_hosts:
        for n in host.notices:
            if n.code in ABOUT_SLICES:
                is_it = n.code == STRAGGLER and host.key in slow
                rank = not is_it, host.state != HostState.LIVE
                sign = _sign(host, n)
                if sign not in keepers or rank < keepers[sign][0]:
                    keepers[sign] = rank, host.key
    return tuple(_kept(host, keepers) for host in all_hosts) if keepers else all_hosts


def _kept(host: FleetHost, keepers: dict[Hashable, tuple[tuple[bool, bool], str]]) -> FleetHost:
    notices = tuple(
        n
        for n in host.notices
        if n.code not in ABOUT_SLICES or keepers[_sign(host, n)][1] == host.key
    )
    return host if len(notices) == len(host.notices) else host._replace(notices=notices)


def _sign(host: FleetHost, n: FleetNotice) -> Hashable:
    """Which notice it is, of which job; of an unknown process that of its slice, or of the host."""
    p = next((p for p in host.processes if p.pid == n.pid), None)
    job: Hashable = host.slice or host.key
    if p is not None and (p.slice_job or host.slice):
        job = job_of(host, p)
    elif p is not None:
        job = host.key  # two jobs of one name, without a slice, are two
    return n.code, job
