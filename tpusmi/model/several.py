"""Numbers of several devices as one number: none is made up where a device's is unknown."""

from collections.abc import Sequence

from tpusmi.model.nouns import Device, Number, Subject
from tpusmi.model.snapshot import Snapshot, Value

MEMORY = ("hbm_used_bytes", "live_array_bytes")
"""Metrics of which a whole chip has more than each of its devices."""


def measured(s: Snapshot, name: str, d: Device) -> Value | None:
    """The device's own value, else its whole chip's; None when neither is known."""
    own = s.values.get((d.key, name))
    return s.of_chip(name, d) if own is None else own


def fresh(s: Snapshot, name: str, d: Device) -> Value | None:
    """The same; None when it is old as well."""
    value = measured(s, name, d)
    return None if value is None or value.stale else value


def fresh_own(s: Snapshot, name: str, subject: Subject) -> Number | None:
    """The subject's own value; None when it is unknown or old."""
    value = s.values.get((subject, name))
    return None if value is None or value.stale else value.value


def mean(s: Snapshot, name: str, devices: Sequence[Device], of_some: bool = False) -> float | None:
    """The mean of the fresh values; None unless every device has one, or with `of_some` when none
    of them has.
    """
    values = _fresh(s, name, alike(s, name, devices), of_some)
    return sum(values) / len(values) if values else None


def least(s: Snapshot, name: str, devices: Sequence[Device]) -> float | None:
    """The smallest of the fresh values; None unless every device has one."""
    return min(_fresh(s, name, devices, of_some=False), default=None)


def total(s: Snapshot, name: str, devices: Sequence[Device]) -> Value | None:
    """The sum of the devices' own values, as old as its oldest part; None unless every device has
    one.
    """
    values = [v for d in devices if (v := s.values.get((d.key, name))) is not None]
    if not values or len(values) < len(devices):
        return None
    oldest = max(values, key=lambda v: v.age_s)
    return oldest._replace(value=sum(v.value for v in values), stale=any(v.stale for v in values))


def alike(s: Snapshot, name: str, devices: Sequence[Device]) -> Sequence[Device]:
    """The devices that a mean can be of: no mean is of the memory of devices and of whole chips."""
    if name not in MEMORY or not any((d.key, name) in s.values for d in devices):
        return devices
    return [d for d in devices if (d.key, name) in s.values or s.of_chip(name, d) is None]


def fragmented_percent(
    used: float | None, limit: float | None, largest_free: float | None
) -> float | None:
    """Share of a device's free memory that no single allocation can have; None where that is
    unknown, or where nothing is free.
    """
    if used is None or limit is None or largest_free is None or limit <= used:
        return None
    return 100 * max(0.0, 1 - largest_free / (limit - used))


def _fresh(s: Snapshot, name: str, devices: Sequence[Device], of_some: bool) -> list[float]:
    known = s.values  # measured() in one step: this runs for every device at every tick
    measured = (known.get((d.key, name)) or s.of_chip(name, d) for d in devices)
    values = [v.value for v in measured if v is not None and not v.stale]
    return values if of_some or len(values) == len(devices) else []
