"""The hosts of a fleet by job, slice or host, with totals that say how much of them is known. Pure.

Only the numbers of live hosts count. Chips of the others are counted, and unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from tpusmi.fleet.fleet_figures import FleetHost, FleetSnapshot, HostState
from tpusmi.fleet.groups.group_members import (
    JOB,
    GroupKey,
    Member,
    key_of_job,
    members,
    whole_host,
)
from tpusmi.fleet.groups.slice_jobs import with_slice_jobs
from tpusmi.fleet.groups.slice_wide import each_once
from tpusmi.fleet.groups.stragglers import STEP, Straggler, stragglers
from tpusmi.fleet.groups.totals import (
    OfHost,
    Total,
    added,
    chip_uses,
    held,
    idle_held,
    is_tpu,
    mean,
    memory_percent,
    memory_totals,
    of_host,
    total,
)
from tpusmi.fleet.groups.unreported import unreported_hosts

MEMORY_PERCENT = "memory_percent"
"""In `means`: the share of the memory that is in use."""
MEANS = (
    MEMORY_PERCENT,
    "tensorcore_utilization_percent",
    "duty_cycle_percent",
    "hbm_bandwidth_utilization_percent",
)


class FleetGroup(NamedTuple):
    """A job, a slice or a host, or all of them."""

    key: str
    """Unlike that of any other group, and the same at every look."""
    by: str
    """One of GROUPINGS; empty for all of the fleet."""
    name: str
    detail: str
    """What tells it from others of its name: a user, a slice, an address."""
    members: tuple[Member, ...]
    """Its hosts, each with the devices, processes and notices that are of the group."""
    states: Mapping[HostState, int]
    """How many hosts are in each state; states of none of them are missing."""
    chips: Total
    """How many, of its hosts."""
    held_chips: Total
    """How many of its chips a process holds, of its chips."""
    idle_held_chips: Total
    """How many of the held chips have been idle for long, of the chips that are held or may be."""
    hbm_used_bytes: Total
    hbm_limit_bytes: Total
    means: Mapping[str, Total]
    """Means over its devices, by the names of MEANS; all of them are there."""
    fullest_percent: float | None
    """Memory in use on its fullest device."""
    step_time_s: float | None
    """Median of its processes."""
    slowest_step_s: float | None
    stragglers: tuple[Straggler, ...]
    """The slowest first."""
    processes: int
    users: tuple[str, ...]
    jobs: tuple[str, ...]
    slices: tuple[str, ...]
    unreported_hosts: int | None
    """Hosts of the job that no exporter reports, at least so many: its processes say how many they
    are. None where that is unknown, and for other groups.
    """
    notices: Mapping[str, int]
    """Problems by their codes, the most frequent first."""

    @property
    def hosts(self) -> int:
        """How many hosts."""
        return len(self.members)

    @property
    def host(self) -> FleetHost | None:
        """Its host; None for several."""
        return self.members[0].host if self.hosts == 1 else None

    @property
    def problems(self) -> int:
        """How many problems, all codes together."""
        return sum(self.notices.values())

    def in_state(self, state: HostState) -> int:
        """How many of its hosts are in that state."""
        return self.states.get(state, 0)


def groups(s: FleetSnapshot, by: str) -> tuple[FleetGroup, ...]:
    """The groups, by their names. `by` is one of GROUPINGS."""
    hosts, slow = _prepared(s)
    unreported = _unreported(s, hosts) if by == JOB else {}
    made = (
        _group(key, by, of_key, slow)._replace(unreported_hosts=unreported.get(key.key))
        for key, of_key in members(hosts, by).items()
    )
    return tuple(sorted(made, key=lambda g: (g.name, g.detail, g.key)))


def whole(s: FleetSnapshot) -> FleetGroup:
    """All hosts as one group, for the totals of the fleet."""
    of_all = GroupKey(key="", name=s.source, detail="")
    hosts, slow = _prepared(s)
    return _group(of_all, "", [whole_host(host) for host in hosts], slow)


def _prepared(s: FleetSnapshot) -> tuple[Sequence[FleetHost], Mapping[str, Sequence[Straggler]]]:
    """The hosts with what only others know of them, and the stragglers of each."""
    hosts = with_slice_jobs(s.hosts)
    of_host: dict[str, list[Straggler]] = {}
    for straggler in stragglers(hosts):
        of_host.setdefault(straggler.host, []).append(straggler)
    return each_once(hosts, of_host), of_host


def _unreported(s: FleetSnapshot, hosts: Sequence[FleetHost]) -> Mapping[str, int]:
    """By the keys of jobs."""
    of_jobs = unreported_hosts(hosts) if s.unreported is None else s.unreported
    return {key_of_job(job): count for job, count in of_jobs.items()}


def _group(
    key: GroupKey, by: str, of_key: Sequence[Member], slow: Mapping[str, Sequence[Straggler]]
) -> FleetGroup:
    parts = [of_host(m.host, m.devices) for m in of_key]
    shares = _memory_percents(parts)
    processes = [(m.host, p) for m in of_key for p in m.processes]
    live = [p for host, p in processes if host.state == HostState.LIVE]
    steps = [step_s for p in live if (step_s := p.values.get(STEP))]
    pids = {(host.key, p.pid) for host, p in processes}
    uses = [use for part in parts for use in chip_uses(part)]
    used, limit = memory_totals(parts)
    return FleetGroup(
        key=key.key,
        by=by,
        name=key.name,
        detail=key.detail,
        members=tuple(of_key),
        states=Counter(m.host.state for m in of_key),
        chips=total(_chips(m, by) for m in of_key),
        held_chips=held(uses),
        idle_held_chips=idle_held(uses),
        hbm_used_bytes=used,
        hbm_limit_bytes=limit,
        means=_means(parts, shares),
        fullest_percent=max(shares, default=None),
        step_time_s=median(steps) if steps else None,
        slowest_step_s=max(steps, default=None),
        stragglers=tuple(
            x for m in of_key for x in slow.get(m.host.key, ()) if (x.host, x.pid) in pids
        ),
        processes=len(processes),
        users=_names(p.user for _, p in processes),
        jobs=_names(p.job for _, p in processes),
        slices=_names(m.host.slice for m in of_key),
        unreported_hosts=None,
        notices=added({n.code: n.problems} for m in of_key for n in m.notices),
    )


def _chips(m: Member, by: str) -> float | None:
    """How many chips of the host are in the group."""
    if by != JOB:
        return m.host.chips
    if not m.host.devices:  # which of its chips a job has is not known
        return None if m.processes else m.host.chips
    devices = [d for d in m.devices if is_tpu(d)]
    return len(
        {d.chip for d in devices if d.chip is not None}
        | {d.name for d in devices if d.chip is None}
    )


def _names(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name}))


def _means(parts: Sequence[OfHost], shares: Sequence[float]) -> dict[str, Total]:
    of = sum(len(part.devices) for part in parts)
    live = [d.values for part in parts if part.is_live for d in part.devices]
    means = {
        metric: mean([v for values in live if (v := values.get(metric)) is not None], of)
        for metric in MEANS
        if metric != MEMORY_PERCENT
    }
    return {**means, MEMORY_PERCENT: mean(shares, of)}


def _memory_percents(parts: Sequence[OfHost]) -> list[float]:
    devices = (d for part in parts if part.is_live for d in part.devices)
    return [share for d in devices if (share := memory_percent(d)) is not None]
