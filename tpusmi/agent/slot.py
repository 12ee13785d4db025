"""One sample of the job as the doubles of a slot, in the order of the layout; NaN is unknown."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from tpusmi.memprofile import Totals
from tpusmi.wire.layout import PROCESS_FIELDS

NAN = float("nan")

Values = tuple[float | None, ...]


def doubles(
    now_s: float, process: Mapping[str, float | None], devices: Iterable[Values]
) -> list[float]:
    """A slot's doubles, from the process's fields by name and each device's in order."""
    values = [now_s, time.time(), *(_double(process.get(name)) for name in PROCESS_FIELDS)]
    for device in devices:
        values += map(_double, device)
    return values


def live(totals: Totals, device_id: int | None, devices: int) -> Values:
    """Live bytes and buffers of a device: one that the profile does not mention has none."""
    if None in totals.devices:
        # Some buffers name no device; with one device they are its own, with more nobody knows.
        return (None, None) if devices > 1 else _sum(totals)
    usage = totals.devices.get(device_id)
    return (usage.bytes, usage.buffers) if usage else (0, 0)


def _double(value: float | None) -> float:
    return NAN if value is None else float(value)


def _sum(totals: Totals) -> Values:
    usages = totals.devices.values()
    return sum(u.bytes for u in usages), sum(u.buffers for u in usages)
