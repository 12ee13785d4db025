"""One sample of a segment as readings: sane values, each with how long it may be believed."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tpusmi.model import (
    AGENT,
    DEVICE,
    METRICS,
    PHASE,
    PHASES,
    PROCESS,
    DeviceKey,
    Metric,
    ProcessKey,
    Reading,
    Subject,
    metric,
    within,
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
_ASKED = ("duty_cycle_percent", "idle_s", "hbm_bandwidth_utilization_percent")
"""What the agent asked of libtpu, on a clock of its own."""
_MOST = {
    "duty_cycle_percent": 100.0,
    "hbm_bandwidth_utilization_percent": 100.0,
    # Over 100 is possible: in int8 or fp8 a device does more than its bf16 peak.
    "mfu_percent": 1000.0,
    "flops_per_s": 1e24,
}
MOST = 2.0**62
"""No other quantity is larger than this."""
_SUMMED = {n: metric(PROCESS, n) for n in ("hbm_used_bytes", "live_array_bytes", "live_arrays")}
_GRAPHED = frozenset(
    (
        *("hbm_used_bytes", "live_array_bytes", "duty_cycle_percent"),
        *("hbm_bandwidth_utilization_percent", "steps_per_s", "step_time_s.mean"),
        *("step_time_s.p50", "step_time_s.p95", "mfu_percent", "compilations"),
    )
)


class Wanted(NamedTuple):
    """Which values of a sample become readings, beside the phase."""

    process: dict[str, Metric]
    device: dict[str, Metric]
    summed: dict[str, Metric]

    def most(self, devices: int) -> int:
        """Most readings that a sample of that many devices can give."""
        return 1 + len(self.process) + len(self.summed) + len(self.device) * devices


EVERY = Wanted(_PROCESS, _DEVICE, _SUMMED)
GRAPHED = Wanted(*({n: m for n, m in every.items() if n in _GRAPHED} for every in EVERY))
"""What graphs show."""


def readings(
    sample: Sample, key: ProcessKey, shift: float, interval_s: float, wanted: Wanted = EVERY
) -> list[Reading]:
    """The values of a sample, with how long each may be believed."""
    process = sample.process
    clocks = {
        **dict.fromkeys(_PROFILED, _clock(sample, "profile", shift, interval_s)),
        **dict.fromkeys(_ASKED, _clock(sample, "utilization", shift, interval_s)),
    }
    current = (sample.at_s + shift, fresh_for_s(interval_s))

    def columns(metrics: dict[str, Metric]) -> list[Column]:
        return [
            Column(n, m.is_integer, _MOST.get(n, MOST), *clocks.get(n, current))
            for n, m in metrics.items()
        ]

    found = [*_rows(process, key, columns(wanted.process))]
    phase = phase_of(sample)
    if phase is not None:
        found.append(Reading(PHASE, key, phase, current[0], AGENT, current[1]))
    of_devices = columns(wanted.device)
    for i, fields in enumerate(sample.devices):
        found += _rows(fields, DeviceKey(key, i), of_devices)
    sums = {}
    for name in wanted.summed:
        values = [fields[name] for fields in sample.devices if name in fields]
        if values and len(values) == len(sample.devices):
            sums[name] = sum(values)
    found += _rows(sums, key, columns(wanted.summed))
    return found


class Column(NamedTuple):
    """A metric in one sample: the most it can be, when it was true, for how long it is believed."""

    name: str
    is_integer: bool
    most: float
    at_s: float
    fresh_s: float


def _rows(fields: Fields, subject: Subject, columns: Iterable[Column]) -> Iterator[Reading]:
    """The values that can be true.

    No measured quantity is negative or beyond its most, and a limit of 0 is a backend that has
    none.
    """
    for name, is_integer, most, at_s, fresh_s in columns:
        value = within(fields.get(name), most)
        if value is None or (not value and name == "hbm_limit_bytes"):
            continue
        whole = int(value) if is_integer else value
        yield Reading(name, subject, whole, at_s, AGENT, fresh_s)


def phase_of(sample: Sample) -> int | None:
    """The number in PHASES of what the job was doing; None when it does not say."""
    number = sample.process.get("phase")
    return int(number) if number is not None and 0 <= number < len(PHASES) else None


def _clock(sample: Sample, part: str, shift: float, interval_s: float) -> tuple[float, float]:
    """When that part was measured, if that can be true, and how long it may be believed."""
    at_s = sample.process.get(f"{part}_at_s", sample.at_s)
    if not 0 <= at_s <= sample.at_s:
        at_s = sample.at_s
    period_s = positive(sample.process.get(f"{part}_period_s"), interval_s)
    return at_s + shift, fresh_for_s(max(interval_s, period_s))


def positive(value: float | None, otherwise: float) -> float:
    """A period that can be true: positive and below a day."""
    return value if value is not None and 0 < value < 86400 else otherwise


def fresh_for_s(period_s: float) -> float:
    """How long a value of that period may be believed."""
    return max(FRESH_LEAST_S, FRESH_PERIODS * period_s)
