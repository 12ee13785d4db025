"""The hosts of a slice as chips at their places in its torus. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tpusmi.fleet.fleet_figures import FleetDevice, FleetHost, HostState, shown_name
from tpusmi.fleet.groups.slice_jobs import with_slice_jobs
from tpusmi.fleet.groups.stragglers import STEP, stragglers
from tpusmi.fleet.groups.totals import is_tpu, ratio
from tpusmi.fleet.report.device_marks import DeviceMarks
from tpusmi.model.servers import Link
from tpusmi.model.torus import Coords, Torus, TorusChip, Wraps
from tpusmi.report import words
from tpusmi.report.quantities import OF_TORUS, THROTTLE
from tpusmi.report.torus.chip_facts import IDLE_LEAST_S, about_bad_links, bad_links
from tpusmi.report.torus.chip_places import bounds, generation_of, placement, sensible, size_around
from tpusmi.report.torus.neighbor_links import between_neighbors
from tpusmi.report.torus.placed_jobs import left_out
from tpusmi.report.torus.snapshot_tori import NO_LINKS, outside
from tpusmi.text import counted, noun

BY_NUMBER = (
    "The places of {count} follow from the topology and the workers' numbers: no agent there "
    "reports coordinates."
)
TWICE = (
    "{count} {is_not} drawn: another device is at the same coordinates, perhaps of another slice "
    "of that name. --match or --hosts can choose the hosts of one slice."
)
NOT_YET = "The health of the links has not been read yet: it comes with the next answer."
NO_WRAPS = "Whether the ends of the axes are joined is not known."


class _IndexedHost(NamedTuple):
    """A host, and what it says of its chips and processes by their numbers: a stranger may have
    named a thousand of each.
    """

    host: FleetHost
    links: Mapping[int, Sequence[Link]]
    step_s: Mapping[int, float]
    marks: DeviceMarks


class _Placed(NamedTuple):
    """A device and its place."""

    of: _IndexedHost
    device: FleetDevice
    coords: Coords

    @property
    def host(self) -> FleetHost:
        return self.of.host

    @property
    def links(self) -> Sequence[Link]:
        """Those of its chip."""
        return () if self.device.chip is None else self.of.links.get(self.device.chip, ())


class _DevicePlaces(NamedTuple):
    """The devices of all hosts that have a place, and how many have none."""

    placed: tuple[_Placed, ...]
    by_number: int
    """Hosts whose devices are placed by the number of their worker."""
    lost: int
    twice: int


def torus_of(hosts: Sequence[FleetHost], metric: str, *, is_partial: bool = False) -> Torus:
    """The torus of the hosts of one slice, with the quantity of OF_TORUS of each device. Its
    notes say what is missing. `is_partial`: their links have not been read yet.
    """
    places = _places(hosts)
    at = {p.coords for p in places.placed}
    sizes = [size for size in dict.fromkeys(bounds(h.topology) for h in hosts) if size is not None]
    size = size_around(at, sizes) if at else None
    worst = _worst_links(places.placed)
    wraps = _wraps(hosts)
    links = between_neighbors(at, worst, size, wraps)
    return Torus(
        size=size,
        wraps=wraps,
        chips=tuple(_chip(p, metric) for p in places.placed),
        links=links,
        notes=tuple(
            [
                *_notes(hosts, places),
                *([outside(sizes)] if sizes and at and size is None else []),
                *_about_links(at, worst, is_partial),
                *([NO_WRAPS] if wraps is None and len(at) > 1 else []),
            ]
        ),
        warnings=_bad_links(places.placed),
        title=_title(hosts),
    )


def _wraps(hosts: Sequence[FleetHost]) -> Wraps | None:
    """What the hosts say of their axes; None if none does, or two differ."""
    of_hosts = {h.wraps for h in hosts} - {None}
    return of_hosts.pop() if len(of_hosts) == 1 else None


def _places(hosts: Sequence[FleetHost]) -> _DevicePlaces:
    placed: dict[tuple[Coords, int], _Placed] = {}
    by_number = lost = twice = 0
    slow = {x.host for x in stragglers(with_slice_jobs(hosts))}
    for host in hosts:
        devices = [d for d in host.devices if is_tpu(d)]
        at = {d.name: place for d in devices if (place := sensible(d.coords)) is not None}
        if devices and not at:
            at = _by_number(host, devices)
            by_number += bool(at)
        lost += len(devices) - len(at)
        of = _host(host, host.key in slow)
        for d in devices:
            if d.name not in at:
                continue
            core = at[d.name], d.core_on_chip or 0
            twice += core in placed
            placed.setdefault(core, _Placed(of=of, device=d, coords=at[d.name]))
    return _DevicePlaces(placed=tuple(placed.values()), by_number=by_number, lost=lost, twice=twice)


def _host(host: FleetHost, is_slow: bool) -> _IndexedHost:
    links: dict[int, list[Link]] = {}
    for link in host.links:
        links.setdefault(link.chip, []).append(link)
    return _IndexedHost(
        host=host,
        links=links,
        step_s={p.pid: p.values[STEP] for p in host.processes if STEP in p.values},
        marks=DeviceMarks(host, host.notices, is_slow),
    )


def _by_number(host: FleetHost, devices: Sequence[FleetDevice]) -> dict[str, Coords]:
    """The places of devices by the topology and the number of the host; empty if unknown."""
    chips = sorted({d.chip for d in devices if d.chip is not None})
    worker = {} if host.worker is None else {"TPU_WORKER_ID": str(host.worker)}
    generation = generation_of(next((d.kind for d in devices if d.kind), None))
    at = placement(worker, bounds(host.topology), generation, len(chips))
    places = dict(zip(chips, at.places, strict=False))
    return {d.name: places[d.chip] for d in devices if d.chip in places}


def _worst_links(placed: Sequence[_Placed]) -> dict[Coords, int]:
    """Health of the worst link of each chip of a live host."""
    worst: dict[Coords, int] = {}
    for p in placed:
        if p.host.state == HostState.LIVE and p.links:
            worst[p.coords] = max(link.health for link in p.links)
    return worst


def _bad_links(placed: Sequence[_Placed]) -> tuple[str, ...]:
    """A sentence that names the bad links of live hosts: a torus does not tell which is which."""
    names = {
        p.coords: f"{p.host.name} {shown_name(p.device)} {', '.join(bad)}"
        for p in reversed(placed)
        if p.host.state == HostState.LIVE and (bad := [*bad_links(p.links)])
    }
    return about_bad_links(names)


def _chip(p: _Placed, metric: str) -> TorusChip:
    return TorusChip(
        coords=p.coords,
        host=p.host.name,
        name=shown_name(p.device),
        ratio=ratio(p.device, metric),
        is_old=p.host.state != HostState.LIVE,
        mark=p.of.marks.of(p.device),
        key=(p.host.key, p.device.name),
        facts=", ".join(_facts(p)),
    )


def _facts(p: _Placed) -> Iterator[str]:
    """The figures of the device and of its host."""
    d, host = p.device, p.host
    for quantity in OF_TORUS:
        share = ratio(d, quantity.metric)
        if share is not None and (share or quantity != THROTTLE):
            yield f"{quantity.word} {words.percent(100 * share)}"
    if d.values.get("idle_s", 0.0) >= IDLE_LEAST_S:
        yield f"idle {words.idle(d.values['idle_s'])}"
    yield from bad_links(p.links)
    if d.job:
        yield d.job
    step_s = None if d.pid is None else p.of.step_s.get(d.pid)
    if step_s is not None:
        yield f"step {words.duration(step_s)}"
    if host.state != HostState.LIVE:
        yield host.reason or str(host.state)


def _about_links(at: set[Coords], worst: Mapping[Coords, int], is_partial: bool) -> Iterator[str]:
    if len(at) < 2:
        return
    if not worst:
        yield NOT_YET if is_partial else NO_LINKS
    elif len(worst) < len(at):
        count = counted(len(at) - len(worst), "chip")
        yield f"How healthy the links of {count} are is not known."


def _notes(hosts: Sequence[FleetHost], places: _DevicePlaces) -> Iterator[str]:
    empty = sum(not any(map(is_tpu, h.devices)) for h in hosts)
    if empty:
        has = noun(empty, "has", "have")
        yield f"{counted(empty, 'host')} {has} no devices that are known: they are not drawn."
    if places.by_number:
        yield BY_NUMBER.format(count=counted(places.by_number, "host"))
    if places.lost:
        yield left_out(places.lost)
    if places.twice:
        count, is_not = counted(places.twice, "device"), noun(places.twice, "is not", "are not")
        yield TWICE.format(count=count, is_not=is_not)


def _title(hosts: Sequence[FleetHost]) -> str:
    """`slice v5e-a: 16 hosts, 15 live`"""
    names = {h.slice for h in hosts if h.slice}
    name = f"slice {next(iter(names))}" if len(names) == 1 else "hosts"
    live = sum(h.state == HostState.LIVE for h in hosts)
    return f"{name}: {counted(len(hosts), 'host')}, {live} live"
