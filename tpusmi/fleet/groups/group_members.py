"""Which hosts, devices, processes and notices are of which job, slice or host. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from tpusmi.fleet.fleet_figures import FleetDevice, FleetHost, FleetNotice, FleetProcess
from tpusmi.fleet.groups.stragglers import STEP, JobKey, job_of
from tpusmi.text import counted

JOB, SLICE, HOST = GROUPINGS = ("job", "slice", "host")
"""What hosts can be grouped by."""
NO_SLICE = "no slice"
NO_JOB = "no job"
"""Devices that no known process has, and hosts of which no device and no process is known."""
NO_NAME = "a job without a name"


class GroupKey(NamedTuple):
    """Which group, and what it is called."""

    key: str
    name: str
    detail: str


class Member(NamedTuple):
    """The part of a host that is of a group."""

    host: FleetHost
    devices: tuple[FleetDevice, ...]
    processes: tuple[FleetProcess, ...]
    notices: tuple[FleetNotice, ...]


def whole_host(host: FleetHost) -> Member:
    """All of a host."""
    return Member(host=host, devices=host.devices, processes=host.processes, notices=host.notices)


def part_of_host(
    host: FleetHost, devices: Sequence[FleetDevice], processes: Sequence[FleetProcess]
) -> FleetHost:
    """The host as if it had only these devices and processes, and their chips and notices."""
    part = _part(host, devices, processes)
    chips = {d.chip for d in devices if d.chip is not None}
    return host._replace(
        devices=part.devices,
        processes=part.processes,
        notices=part.notices,
        chips=len(chips) or None,
        held_chips=None,
        links=tuple(link for link in host.links if link.chip in chips),
    )


def members(hosts: Iterable[FleetHost], by: str) -> Mapping[GroupKey, Sequence[Member]]:
    """The members of each group. `by` is one of GROUPINGS."""
    of_key: dict[GroupKey, list[Member]] = {}
    for host in hosts:
        for key, member in _by_job(host) if by == JOB else [(_key(host, by), whole_host(host))]:
            of_key.setdefault(key, []).append(member)
    return {_with_slices(key, of_key[key]): of_key[key] for key in of_key} if by == JOB else of_key


def _with_slices(key: GroupKey, of_job: Sequence[Member]) -> GroupKey:
    """The key of a job with the slices that it runs on: `ann v5e-a`, `ann 4 slices`."""
    slices = {m.host.slice for m in of_job if m.host.slice is not None}
    if not key.key or not slices:
        return key
    names = [*slices] if len(slices) == 1 else [counted(len(slices), "slice")]
    return key._replace(detail=" ".join([*filter(None, [key.detail]), *names]))


def _key(host: FleetHost, by: str) -> GroupKey:
    if by == SLICE:
        return _slice_key(host)
    address = host.address if host.address != host.name else ""
    return GroupKey(key=host.key, name=host.name, detail=address or "")


def _slice_key(host: FleetHost) -> GroupKey:
    """By the label that the exporters have; else by the job that runs on several hosts."""
    if host.slice is not None:
        return GroupKey(key=host.slice, name=host.slice, detail="")
    jobs = sorted((job, p.job or NO_NAME) for p in host.processes if (job := p.slice_job))
    if not jobs:
        return GroupKey(key="", name=NO_SLICE, detail="")
    slice_job, job = jobs[0]
    return GroupKey(key=f"job {slice_job}", name=f"hosts of {job}", detail=slice_job)


def _by_job(host: FleetHost) -> list[tuple[GroupKey, Member]]:
    """A part of the host for each of its jobs, and one for what is of none."""
    pids = {d.pid for d in host.devices}
    of_job: dict[JobKey | None, tuple[list[FleetDevice], list[FleetProcess]]] = {}
    jobs: dict[int, JobKey] = {}
    for p in host.processes:
        if p.pid in pids or p.verdict is not None or STEP in p.values:
            jobs[p.pid] = job = job_of(host, p)
            of_job.setdefault(job, ([], []))[1].append(p)
    for d in host.devices:
        of_job.setdefault(_job_of_device(host, d, jobs), ([], []))[0].append(d)
    if not of_job:
        of_job[None] = [], []
    return [(_job_key(job), _part(host, *part)) for job, part in of_job.items()]


def _job_of_device(host: FleetHost, d: FleetDevice, jobs: Mapping[int, JobKey]) -> JobKey | None:
    if d.pid is None:
        return None
    # Exporters need not export processes: devices have the name of their job.
    return jobs.get(d.pid) or JobKey(name=d.job or "", user="", slice=host.slice or "")


def _job_key(job: JobKey | None) -> GroupKey:
    if job is None:
        return GroupKey(key="", name=NO_JOB, detail="")
    return GroupKey(key=key_of_job(job), name=job.name or NO_NAME, detail=job.user)


def key_of_job(job: Iterable[str]) -> str:
    """The key of the group of a JobKey."""
    return "/".join(quote(part, safe=":", errors="replace") for part in job)


def _part(
    host: FleetHost, devices: Sequence[FleetDevice], processes: Sequence[FleetProcess]
) -> Member:
    """That part of the host, with the notices about these devices, chips and processes."""
    pids = {p.pid for p in processes} | {d.pid for d in devices if d.pid is not None}
    chips = {d.chip for d in devices if d.chip is not None}
    return Member(
        host=host,
        devices=tuple(devices),
        processes=tuple(processes),
        notices=tuple(
            n for n in host.notices if n.pid in pids or (n.pid is None and n.chip in chips)
        ),
    )
