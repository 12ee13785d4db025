"""Which devices the traces of captures are about. Pure.

A trace numbers the devices of its process as its agent does. Without an agent they are those that
the process holds, in order, where the trace has as many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tpusmi.merge.machine import Agents, Machine
from tpusmi.model import PROFILE, Device, DeviceKey, Reading, TracedKey
from tpusmi.text import counted


def of_devices(
    readings: Iterable[Reading],
    agents: Agents,
    machine: Machine,
    shown_of: Callable[[Iterable[Device]], Sequence[Device]],
    notes: Mapping[str, list[str]],
) -> list[Reading]:
    """The readings of captures, each of its device. Readings of a device that is not certain are
    left out, and a note says so. `shown_of` gives the machine's devices as they are shown.
    """
    places: dict[TracedKey, DeviceKey | None] = {}
    placed: list[Reading] = []
    for r in readings:
        traced = r.subject
        if not isinstance(traced, TracedKey):
            continue
        if traced not in places:
            own = agents.get(traced.process)
            is_holder = own is None and traced.process in machine.holds
            held = shown_of(machine.of(traced.process)) if is_holder else ()
            by_rank = _by_rank(traced, held)
            places[traced] = by_rank if own is None else _by_index(traced, own)
        device = places[traced]
        if device is not None:
            placed.append(r._replace(subject=device))
    notes[PROFILE].extend(_notes(key for key, device in places.items() if device is None))
    return placed


def _by_index(traced: TracedKey, devices: Sequence[Device]) -> DeviceKey | None:
    same = (d for d in devices if d.key.index == traced.index)
    return next((d.key for d in same if _may_be(d, traced)), None)


def _by_rank(traced: TracedKey, devices: Sequence[Device]) -> DeviceKey | None:
    if len(devices) != traced.devices or not 0 <= traced.index < traced.devices:
        return None
    device = devices[traced.index]
    return device.key if _may_be(device, traced) else None


def _may_be(d: Device, traced: TracedKey) -> bool:
    """False for another platform: a trace without the planes of the TPU may have those of the CPU.
    And where both sides know the global id, and it is not the same.
    """
    is_alike = d.platform == traced.platform
    return is_alike and (d.id is None or traced.id is None or d.id == traced.id)


def _notes(lost: Iterable[TracedKey]) -> list[str]:
    counts: dict[int, int] = {}
    for key in lost:
        counts[key.process.pid] = counts.get(key.process.pid, 0) + 1
    return [
        f"pid {pid}: {counted(count, 'device')} of its trace match no device here"
        for pid, count in counts.items()
    ]
