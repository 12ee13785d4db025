"""One sample of a segment as readings: sane values, each with how long it may be believed."""

from __future__ import annotations

from tpusmi.model import (
    AGENT,
    DEVICE,
    METRICS,
    PROCESS,
    DeviceKey,
    Metric,
    ProcessKey,
    Reading,
    Subject,
    metric,
)
from tpusmi.wire.layout import DEVICE_FIELDS, PROCESS_FIELDS
from tpusmi.wire.reader import Fields, Sample

FRESH_PERIODS = 3
"""A value may be believed for this many of its own periods."""
FRESH_LEAST_S = 5.0

_NAMES = {(m.scope, m.name) for m in METRICS}
_PROCESS = {f: metric(PROCESS, f) for f in PROCESS_FIELDS if (PROCESS, f) in _NAMES}
_DEVICE = {f: metric(DEVICE, f) for f in DEVICE_FIELDS if (DEVICE, f) in _NAMES}
_PROFILED = ("live_array_bytes", "live_arrays", "executables")
_SUMMED = {n: metric(PROCESS, n) for n in ("hbm_used_bytes", "live_array_bytes", "live_arrays")}


def readings(sample: Sample, key: ProcessKey, shift: float, interval_s: float) -> list[Reading]:
    """Every value of a sample, with how long it may be believed."""
    process = sample.process
    fresh_s = fresh_for_s(interval_s)
    profile_at_s = process.get("profile_at_s", sample.at_s)
    if not 0 <= profile_at_s <= sample.at_s:
        profile_at_s = sample.at_s
    profile_fresh_s = fresh_for_s(
        max(interval_s, positive(process.get("profile_period_s"), interval_s))
    )
    sampled = (profile_at_s + shift, profile_fresh_s)
    current = (sample.at_s + shift, fresh_s)

    def reading(m: Metric, subject: Subject, value: float) -> Reading:
        at_s, fresh = sampled if m.name in _PROFILED else current
        return Reading(m.name, subject, int(value) if m.is_integer else value, at_s, AGENT, fresh)

    found = [reading(m, key, v) for m, v in _sane(process, _PROCESS)]
    for i, fields in enumerate(sample.devices):
        found += [reading(m, DeviceKey(key, i), v) for m, v in _sane(fields, _DEVICE)]
    for name in _SUMMED:
        values = [fields[name] for fields in sample.devices if name in fields]
        if values and len(values) == len(sample.devices):
            sums = _sane({name: sum(values)}, _SUMMED)
            found += [reading(m, key, v) for m, v in sums]
    return found


def positive(value: float | None, otherwise: float) -> float:
    """A period that can be true: positive and below a day."""
    return value if value is not None and 0 < value < 86400 else otherwise


def fresh_for_s(period_s: float) -> float:
    """How long a value of that period may be believed."""
    return max(FRESH_LEAST_S, FRESH_PERIODS * period_s)


def _sane(fields: Fields, metrics: dict[str, Metric]) -> list[tuple[Metric, float]]:
    """The metrics whose value can be true.

    No measured quantity is negative or beyond 2^62, and a limit of 0 is a backend that has none.
    """
    return [
        (metrics[name], v)
        for name, v in fields.items()
        if name in metrics and 0 <= v < 2**62 and (v > 0 or name != "hbm_limit_bytes")
    ]
