"""Where the devices are of jobs that report nothing about other hosts. Pure."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from math import prod
from typing import NamedTuple

from tpusmi.model import Device, DeviceKey, Process, Snapshot
from tpusmi.model.torus import Coords, Wraps
from tpusmi.report.torus import chip_places
from tpusmi.report.torus.chip_places import sensible
from tpusmi.text import counted, noun

BY_NUMBER = (
    "No agent reports coordinates: places follow from TPU_TOPOLOGY{worker}, and from the order of "
    "chips on the bus."
)
SPLIT = ("TPU_PROCESS_ADDRESSES", "TPU_PROCESS_BOUNDS", "TPU_CHIPS_PER_PROCESS_BOUNDS")
"""Variables that all processes of one job have in common."""


class PlacedDevice(NamedTuple):
    """A device of this host, and its place."""

    device: Device
    coords: Coords


class PlacedJob(NamedTuple):
    """The devices of a job whose places are known."""

    title: str
    devices: tuple[PlacedDevice, ...]
    sizes: tuple[Coords, ...]
    """What the size of its slice may be."""
    wraps: Wraps | None
    notes: tuple[str, ...]


def jobs(s: Snapshot, taken: Collection[DeviceKey]) -> tuple[list[PlacedJob], list[str]]:
    """The jobs whose devices have known places, without the devices that are taken; and why
    others have none.
    """
    placed: list[PlacedJob] = []
    notes: list[str] = []
    for owners, devices in _by_job(s, taken):
        job = _placed(s, owners, devices)
        if job.devices:
            placed.append(job)
        else:
            notes += job.notes
    return placed, notes


def _by_job(
    s: Snapshot, taken: Collection[DeviceKey]
) -> Iterator[tuple[list[Process], list[Device]]]:
    """The processes of each job, and its devices; those of no job last."""
    processes = {p.key: p for p in s.processes}
    groups: dict[Hashable, tuple[list[Process], list[Device]]] = {}
    free: list[Device] = []
    for d in s.devices:
        if d.key in taken or not d.is_tpu:
            continue
        keys = dict.fromkeys((*d.owners, *([d.key.process] if d.key.process else [])))
        owner = next((processes[key] for key in keys if key in processes), None)
        if owner is None:
            free.append(d)
            continue
        owners, devices = groups.setdefault(_job(owner), ([], []))
        devices.append(d)
        if owner not in owners:
            owners.append(owner)
    yield from groups.values()
    if free:
        yield [], free


def _job(p: Process) -> Hashable:
    """The same for the processes of one job on this host."""
    split = tuple(p.environment.get(name) for name in SPLIT)
    return (p.uid, split) if all(split) else p.key


def _placed(s: Snapshot, owners: Sequence[Process], devices: Sequence[Device]) -> PlacedJob:
    title = f"pid {', '.join(str(p.pid) for p in owners[:3])}" if owners else ""
    title += f" and {len(owners) - 3} more" if len(owners) > 3 else ""
    environment = owners[0].environment if owners else {}
    sizes, wraps = chip_places.sizes_of(environment), chip_places.wraps_of(environment)
    by_agent = [PlacedDevice(d, at) for d in devices if (at := sensible(d.coords)) is not None]
    if by_agent:
        return PlacedJob(
            title=title,
            devices=tuple(by_agent),
            sizes=sizes,
            wraps=wraps,
            notes=_lost(devices, by_agent),
        )
    if not owners:
        text = f"{counted(len(devices), 'device')} of this host {noun(len(devices), 'is', 'are')} "
        text += "not drawn: no job says where in a slice the chips are."
        return PlacedJob(title=title, devices=(), sizes=(), wraps=None, notes=(text,))
    return _by_environment(s, owners[0], devices, title)


def left_out(devices: int) -> str:
    """That so many devices have no place."""
    has, is_not = noun(devices, "has", "have"), noun(devices, "is", "are")
    return f"{counted(devices, 'device')} {has} no coordinates, and {is_not} not drawn."


def _lost(devices: Sequence[Device], placed: Sequence[PlacedDevice]) -> tuple[str, ...]:
    lost = len(devices) - len(placed)
    return (left_out(lost),) if lost else ()


def _by_environment(s: Snapshot, p: Process, devices: Sequence[Device], title: str) -> PlacedJob:
    """The devices of a job without an agent, by the variables of one of its processes."""
    mine = [*dict.fromkeys(sorted(d.chip for d in devices if d.chip is not None))]
    sizes, wraps = chip_places.sizes_of(p.environment), chip_places.wraps_of(p.environment)
    # A slice of as many chips as the job holds is all of it; else the host is a part of the slice.
    own = next((size for size in sizes if prod(size) == len(mine)), None)
    size = own or next(iter(sizes), None)
    chips = mine if own else [c.index for c in s.chips]
    generation = chip_places.generation_of(next((d.kind for d in devices if d.kind), None))
    at = chip_places.placement(p.environment, size, generation, len(chips))
    places = dict(zip(chips, at.places, strict=False))
    placed = [PlacedDevice(d, places[d.chip]) for d in devices if d.chip in places]
    if not placed or size is None:
        reason = at.reason or "which chips it holds is not known"
        text = (
            f"pid {p.pid} is not drawn: where in the slice its chips are is not known ({reason})."
        )
        return PlacedJob(title=title, devices=(), sizes=sizes, wraps=wraps, notes=(text,))
    note = BY_NUMBER.format(worker="" if prod(size) == len(chips) else " and TPU_WORKER_ID")
    return PlacedJob(
        title=title,
        devices=tuple(placed),
        sizes=(size,),
        wraps=wraps,
        notes=(note, *_lost(devices, placed)),
    )
