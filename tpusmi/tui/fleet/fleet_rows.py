"""Hosts of a fleet, by job, slice or host: one row each, with its figures. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from tpusmi.fleet.figures import (
    FleetDevice,
    FleetHost,
    FleetProcess,
    FleetSnapshot,
    HostState,
)
from tpusmi.tui.draw.graphs import HBM, Quantity

NOTHING = {"job": "no job", "slice": "no slice"}
"""The name of the row of what belongs to none."""
IDLE_HELD_S = 900.0
"""A chip that a process holds is idle from here on, as in the alert `TpuIdleButHeld`."""
_LIMIT = "hbm_limit_bytes"


class Figures(NamedTuple):
    """Sums and means over live hosts; over old numbers where no host is live. None is unknown."""

    states: Counter[HostState]
    chips: int | None
    held: int | None
    idle_held: int | None
    """Chips that are held and have been idle for `IDLE_HELD_S`."""
    used_bytes: float | None
    limit_bytes: float | None
    fullest: float | None
    """Memory in use on the fullest device, 0 to 1."""
    mxu: float | None
    duty: float | None
    bandwidth: float | None
    step_s: float | None
    """Of its slowest process."""
    slowest: str
    """The host of that process, where it is one of several."""
    mfu: float | None
    age_s: float | None
    """Of its oldest numbers."""
    users: tuple[str, ...]
    jobs: tuple[str, ...]
    codes: Counter[str]
    """Its notices."""
    is_old: bool
    """None of its numbers is of now."""


class FleetRow(NamedTuple):
    """A job, a slice or a host."""

    key: tuple[str, str]
    """What it is, and its name or the key of its host."""
    name: str
    hosts: tuple[FleetHost, ...]
    """A host of a job has only the devices and processes of that job here."""
    figures: Figures

    @property
    def severity(self) -> tuple[int, ...]:
        """How bad it is: the worst is the largest."""
        f = self.figures
        states = f.states
        return (
            states[HostState.DOWN],
            sum(f.codes.values()),
            states[HostState.OLD],
            f.idle_held or 0,
        )


def rows_of(hosts: Sequence[FleetHost], by: str) -> list[FleetRow]:
    """The rows of these hosts, by name."""
    if by == "host":
        ordered = sorted(hosts, key=lambda h: (natural(h.name), h.key))
        return [_row((by, h.key), h.name, (h,)) for h in ordered]
    groups: dict[str | None, list[FleetHost]] = {}
    for host in hosts:
        for name, part in _parts(host, by):
            groups.setdefault(name, []).append(part)
    names = sorted(groups, key=lambda name: (name is None, natural(name or "")))
    return [_row((by, name or ""), name or NOTHING[by], groups[name]) for name in names]


def total_of(s: FleetSnapshot) -> Figures:
    """The figures of the whole fleet."""
    return _figures(s.hosts)


def ratio_of(device: FleetDevice, quantity: Quantity) -> float | None:
    """That quantity of a device, 0 to 1; None where it is unknown."""
    value = device.values.get(quantity.metric)
    if value is None:
        return None
    if quantity is not HBM:
        return value / 100.0
    limit = device.values.get(_LIMIT)
    return value / limit if limit else None


def natural(text: str) -> list[tuple[int, str]]:
    """A key that puts `w-2` before `w-10`."""
    parts: list[tuple[int, str]] = []
    word = ""
    for char in text[:200]:
        if word and char.isdecimal() != word[-1].isdecimal():
            parts.append(_natural_part(word))
            word = ""
        word += char
    return [*parts, _natural_part(word)] if word else parts


def _natural_part(word: str) -> tuple[int, str]:
    return (int(word), "") if word.isdecimal() and len(word) < 30 else (-1, word.casefold())


def _row(key: tuple[str, str], name: str, hosts: Sequence[FleetHost]) -> FleetRow:
    return FleetRow(key=key, name=name, hosts=tuple(hosts), figures=_figures(hosts))


def _parts(host: FleetHost, by: str) -> Iterator[tuple[str | None, FleetHost]]:
    """The groups that a host is in, with what of it belongs there."""
    if by == "slice":
        yield host.slice, host
        return
    jobs = dict.fromkeys(p.job for p in host.processes)
    jobs |= dict.fromkeys(d.job for d in host.devices)
    if len(jobs) < 2:
        yield next(iter(jobs), None), host
        return
    for job in jobs:
        processes = tuple(p for p in host.processes if p.job == job)
        pids = {p.pid for p in processes}
        devices = tuple(d for d in host.devices if d.job == job)
        yield (
            job,
            host._replace(
                devices=devices,
                processes=processes,
                notices=tuple(n for n in host.notices if n.pid is None or n.pid in pids),
                chips=len({d.chip for d in devices if d.chip is not None}) or None,
                held_chips=None,
            ),
        )


def _figures(hosts: Sequence[FleetHost]) -> Figures:
    live = [h for h in hosts if h.state == HostState.LIVE]
    counted = live or [h for h in hosts if h.devices or h.processes]
    devices = [d for h in counted for d in h.devices]
    used, limit, fullest = _memory(devices)
    step_s, slowest = _slowest(counted)
    processes = [p for h in hosts for p in h.processes]
    ages = [h.age_s for h in hosts if h.age_s is not None]
    return Figures(
        states=Counter(h.state for h in hosts),
        chips=_sum(h.chips for h in hosts),
        held=_sum(_held(h) for h in counted),
        idle_held=_sum(_idle_held(h) for h in counted),
        used_bytes=used,
        limit_bytes=limit,
        fullest=fullest,
        mxu=_mean(devices, "tensorcore_utilization_percent"),
        duty=_mean(devices, "duty_cycle_percent"),
        bandwidth=_mean(devices, "hbm_bandwidth_utilization_percent"),
        step_s=step_s,
        slowest=slowest,
        mfu=_mean([p for h in counted for p in h.processes], "mfu_percent"),
        age_s=max(ages, default=None),
        users=_names(p.user for p in processes),
        jobs=_names(p.job for p in processes),
        codes=Counter(n.code for h in hosts for n in h.notices),
        is_old=not live,
    )


def _memory(devices: Iterable[FleetDevice]) -> tuple[float | None, float | None, float | None]:
    """Used and limit of the devices that have both, and the fullest share."""
    pairs = [
        (used, limit)
        for d in devices
        if (used := d.values.get(HBM.metric)) is not None and (limit := d.values.get(_LIMIT))
    ]
    if not pairs:
        return None, None, None
    used_bytes, limit_bytes = (sum(column) for column in zip(*pairs, strict=True))
    return used_bytes, limit_bytes, max(used / limit for used, limit in pairs)


def _mean(things: Sequence[FleetDevice] | Sequence[FleetProcess], metric: str) -> float | None:
    values = [value for thing in things if (value := thing.values.get(metric)) is not None]
    return fmean(values) if values else None


def _slowest(hosts: Sequence[FleetHost]) -> tuple[float | None, str]:
    times = [
        (time, h.name)
        for h in hosts
        for p in h.processes
        if (time := p.values.get("step_time_s.mean")) is not None
    ]
    if not times:
        return None, ""
    step_s, name = max(times)
    return step_s, name if len(times) > 1 else ""


def _held(h: FleetHost) -> int | None:
    if h.held_chips is not None or not h.devices:
        return h.held_chips
    return len({d.chip for d in h.devices if d.pid is not None and d.chip is not None})


def _idle_held(h: FleetHost) -> int | None:
    """None where no device says how long it has been idle."""
    idle = {
        d.chip if d.chip is not None else d.name: d.pid is not None and seconds >= IDLE_HELD_S
        for d in h.devices
        if (seconds := d.values.get("idle_s")) is not None
    }
    return sum(idle.values()) if idle else None


def _sum(values: Iterable[int | None]) -> int | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None


def _names(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


Keep = Callable[[FleetHost], bool]
