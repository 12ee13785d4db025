"""What a segment says, checked: its facts, its samples and their times as the model's nouns.

All of it is JSON and numbers from a stranger: what cannot be true becomes None, or is left out.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tpusmi.chips import usual_kind
from tpusmi.memprofile import SITES_MOST as ALL_SITES_MOST
from tpusmi.memprofile import HeldMemory
from tpusmi.model import (
    AGENT,
    DEVICE,
    METRICS,
    PHASE,
    PHASES,
    PROCESS,
    PROCESS_FACTS,
    Allocation,
    Device,
    DeviceKey,
    Metric,
    Notice,
    Phase,
    ProcessKey,
    Reading,
    Site,
    State,
    Subject,
    fresh_for_s,
    metric,
    within,
)
from tpusmi.text import clean, command_line
from tpusmi.wire.layout import DEVICE_FIELDS, PROCESS_FIELDS, UTILIZATION_FIELDS, SegmentError
from tpusmi.wire.reader import Fields, Sample

NOTICES_MOST = 8
SITES_MOST = 50
PORT_MOST = 65535
_Place = tuple[str, str, int, str]
"""Function, file, line, kind."""
FUTURE_MOST_S = 5.0
"""Readings of one clock, or of two clocks that agree, differ by less than this."""

_NAMES = {(m.scope, m.name) for m in METRICS}
_PROCESS = {f: metric(PROCESS, f) for f in PROCESS_FIELDS if (PROCESS, f) in _NAMES}
_DEVICE = {f: metric(DEVICE, f) for f in DEVICE_FIELDS if (DEVICE, f) in _NAMES}
_SUMMED = {n: metric(PROCESS, n) for n in ("hbm_used_bytes", "live_array_bytes", "live_arrays")}
_FROM_PROFILE = ("live_array_bytes", "live_arrays", "executables")
"""Fields that the agent takes from memory profiles, which have a clock of their own."""
MOST = 2.0**62
"""No quantity is larger than this, unless _MOST says so."""
_MOST = {
    "duty_cycle_percent": 100.0,
    "hbm_bandwidth_utilization_percent": 100.0,
    # Over 100 is possible: in int8 or fp8 a device does more than its bf16 peak.
    "mfu_percent": 1000.0,
    "flops_per_s": 1e24,
}


class MetricSet(NamedTuple):
    """Which values of a sample become readings, beside the phase. Metrics by their field."""

    process: dict[str, Metric]
    device: dict[str, Metric]
    summed: dict[str, Metric]
    """Metrics of the process that are the sum over its devices."""

    def readings_most(self, devices: int) -> int:
        """Most readings that a sample of that many devices can give."""
        return 1 + len(self.process) + len(self.summed) + len(self.device) * devices


ALL = MetricSet(_PROCESS, _DEVICE, _SUMMED)
_GRAPHED_NAMES = frozenset((
    "hbm_used_bytes", "live_array_bytes", "duty_cycle_percent",
    "hbm_bandwidth_utilization_percent", "steps_per_s", "step_time_s.mean",
    "step_time_s.p50", "step_time_s.p95", "mfu_percent", "compilations",
))  # fmt: skip
GRAPHED = MetricSet._make({n: m for n, m in part.items() if n in _GRAPHED_NAMES} for part in ALL)


class CheckedFacts(NamedTuple):
    """What a job says about itself once."""

    command: str
    by_name: dict[str, Any]
    """PROCESS_FACTS; None for what it does not say."""
    devices: tuple[Device, ...]
    notices: tuple[Notice, ...]


def checked_facts(facts: dict[str, Any], key: ProcessKey, devices: int) -> CheckedFacts:
    """The facts of a job with that many devices. A value of the wrong type is left out."""
    by_name = {name: _word(facts.get(name)) for name in PROCESS_FACTS}
    functions = _list(facts.get("recompiled"))[:NOTICES_MOST]
    names = (clean(name, 80) for name in functions if isinstance(name, str))
    by_name["recompiled"] = ", ".join(names) or None
    port = _number(facts.get("profiler_port"))
    by_name["profiler_port"] = port if port is not None and 0 < port <= PORT_MOST else None
    rows, errors = _list(facts.get("devices")), _list(facts.get("errors"))
    warnings = (_notice(row, key.pid) for row in _list(facts.get("warnings"))[:NOTICES_MOST])
    return CheckedFacts(
        command=command_line(word for word in _list(facts.get("argv")) if isinstance(word, str)),
        by_name=by_name,
        devices=tuple(
            _device(DeviceKey(key, i), _at(rows, i), _at(errors, i), by_name["platform"])
            for i in range(devices)
        ),
        notices=tuple(notice for notice in warnings if notice is not None),
    )


def clean_memory(
    memory: HeldMemory, all_sites: bool
) -> tuple[tuple[Site, ...], tuple[Allocation, ...]]:
    """The largest sites, or all of them, and the allocations, with text that is safe to show."""
    listed = memory.sites[: ALL_SITES_MOST if all_sites else SITES_MOST]
    places: dict[_Place, _Place] = {}  # most allocations share a place with others
    for row in (*listed, *memory.allocations):
        if row[:4] not in places:
            function, file, line, kind = row[:4]
            places[row[:4]] = clean(function, 200), clean(file, 400), line, clean(kind, 40)
    sites = (Site._make((*places[s[:4]], *s[4:])) for s in listed)
    allocations = (Allocation._make((*places[a[:4]], *a[4:])) for a in memory.allocations)
    return tuple(sites), tuple(allocations)


def _device(key: DeviceKey, row: Any, error: Any, platform: Any) -> Device:
    row = row if isinstance(row, dict) else {}
    coords = row.get("coords")
    is_sound = isinstance(coords, list) and len(coords) <= 8 and None not in map(_number, coords)
    return Device(
        key=key,
        index=key.index,
        id=_number(row.get("id")),
        platform=platform if isinstance(platform, str) else None,
        kind=usual_kind(clean(row["kind"], 80)) if isinstance(row.get("kind"), str) else None,
        coords=tuple(coords) if is_sound and coords is not None else None,
        core_on_chip=_number(row.get("core_on_chip")),
        error=clean(error, 200) if isinstance(error, str) else None,
    )


def _notice(row: Any, pid: int) -> Notice | None:
    if not isinstance(row, dict):
        return None
    code, message = row.get("code"), row.get("message")
    if not isinstance(code, str) or not isinstance(message, str):
        return None
    return Notice(clean(code, 40), clean(message, 300), pid)


def _word(value: Any) -> str | int | None:
    return clean(value, 120) if isinstance(value, str) else _number(value)


def _number(value: Any) -> int | None:
    is_sane = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53
    return value if is_sane else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _at(rows: list[Any], index: int) -> Any:
    return rows[index] if index < len(rows) else None


def readings(
    sample: Sample, key: ProcessKey, shift_s: float, interval_s: float, metrics: MetricSet = ALL
) -> list[Reading]:
    """The values of a sample, with how long each may be believed.

    `shift_s` is added to the sample's times, which are then ours.
    """
    clocks = {
        **dict.fromkeys(_FROM_PROFILE, _clock(sample, "profile", shift_s, interval_s)),
        **dict.fromkeys(UTILIZATION_FIELDS, _clock(sample, "utilization", shift_s, interval_s)),
    }
    current = (sample.at_s + shift_s, fresh_for_s(interval_s))

    def rules(part: dict[str, Metric]) -> list[_Rule]:
        return [
            _Rule(n, m.is_integer, _MOST.get(n, MOST), clocks.get(n, current))
            for n, m in part.items()
        ]

    values = [*_values(sample.process, key, rules(metrics.process))]
    phase = phase_of(sample)
    if phase is not None:
        at_s, fresh_s = current
        number = PHASES.index(phase)
        values.append(Reading(PHASE, key, number, at_s, source=AGENT, fresh_s=fresh_s))
    device_rules = rules(metrics.device)
    for i, fields in enumerate(sample.devices):
        values += _values(fields, DeviceKey(key, i), device_rules)
    values += _values(_sums(sample.devices, metrics.summed), key, rules(metrics.summed))
    return values


class _Rule(NamedTuple):
    """How one field of one sample becomes a reading."""

    name: str
    is_integer: bool
    most: float
    clock: tuple[float, float]
    """When it was measured, and how long it may be believed."""


def _values(fields: Fields, subject: Subject, rules: Iterable[_Rule]) -> Iterator[Reading]:
    """The values that can be true.

    No measured quantity is negative or beyond its most, and a limit of 0 means that the backend has
    none.
    """
    for name, is_integer, most, (at_s, fresh_s) in rules:
        value = within(fields.get(name), most)
        if value is None or (not value and name == "hbm_limit_bytes"):
            continue
        # Without keywords, which take as long again: there are thousands at each look.
        yield Reading(name, subject, int(value) if is_integer else value, at_s, AGENT, fresh_s)


def _sums(devices: tuple[Fields, ...], names: Iterable[str]) -> Fields:
    """The sums over all devices, of the fields that every device has."""
    columns = {name: [f[name] for f in devices if name in f] for name in names}
    return {n: sum(column) for n, column in columns.items() if 0 < len(column) == len(devices)}


def phase_of(sample: Sample) -> Phase | None:
    """What the job was doing; None when it does not say."""
    number = sample.process.get("phase")
    return PHASES[int(number)] if number is not None and 0 <= number < len(PHASES) else None


def phase_in(sample: Sample | None, state: State) -> Phase | None:
    """The phase that is shown of a job in that state."""
    if state == State.DEAD:
        return Phase.ENDED
    return None if sample is None or state == State.UNCERTAIN else phase_of(sample)


def _clock(sample: Sample, part: str, shift_s: float, interval_s: float) -> tuple[float, float]:
    """When that part was measured, if that can be true, and how long it may be believed."""
    at_s = sample.process.get(f"{part}_at_s", sample.at_s)
    if not 0 <= at_s <= sample.at_s:
        at_s = sample.at_s
    period_s = sane_period_s(sample.process.get(f"{part}_period_s"), interval_s)
    return at_s + shift_s, fresh_for_s(max(interval_s, period_s))


def sane_period_s(value: float | None, otherwise: float) -> float:
    """A period that can be true: positive and below a day."""
    return value if value is not None and 0 < value < 86400 else otherwise


def clock_shift_s(sample: Sample, now_s: float, is_other_boot: bool) -> float:
    """What to add to the monotonic times of that segment to compare them with ours. Raises
    SegmentError for a sample that is from the future by both of its clocks.

    After a boot they mean nothing, and in another time namespace they are shifted: then the wall
    clock is used, which every process shares. It may be set by hand, so it counts only where the
    two clocks disagree and the sample is younger by it.
    """
    skew_s = sample.wall_s - sample.at_s - (time.time() - time.monotonic())
    age_s = now_s - sample.at_s
    by_wall_s = min(skew_s, age_s)
    if is_other_boot:
        return by_wall_s
    if abs(skew_s) <= FUTURE_MOST_S and age_s >= -FUTURE_MOST_S:
        return 0.0
    ages_s = [age for age in (age_s, age_s - skew_s) if age >= -FUTURE_MOST_S]
    if not ages_s:
        raise SegmentError("has a sample from the future")
    return 0.0 if min(ages_s) == age_s else by_wall_s
