"""What is known of the devices of one process, to judge it by and not to show. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tpusmi.model import Device, Snapshot, Value


def fresh(s: Snapshot, name: str, d: Device) -> Value | None:
    """The device's own value, else its chip's; None when unknown or old."""
    found = s.values.get((d.key, name)) or s.of_chip(name, d)
    return None if found is None or found.stale else found


def fresh_mean(s: Snapshot, name: str, devices: Sequence[Device]) -> float | None:
    """Of the devices' values; None unless every one is known and fresh."""
    known = _known(s, name, devices)
    return sum(known) / len(known) if known else None


def least(s: Snapshot, name: str, devices: Sequence[Device]) -> float | None:
    """The smallest of the devices' values; None unless every one is known and fresh."""
    return min(_known(s, name, devices), default=None)


def _known(s: Snapshot, name: str, devices: Sequence[Device]) -> list[float]:
    values = [fresh(s, name, d) for d in devices]
    known = [v.value for v in values if v is not None]
    return known if len(known) == len(values) else []
