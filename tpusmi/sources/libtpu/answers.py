"""What a metrics server answered, as readings and latencies. Pure; not a byte of it is trusted."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tpusmi.model import (
    DEVICE,
    LIBTPU,
    Latency,
    Metric,
    Number,
    Percentiles,
    ProcessKey,
    Reading,
    RowKey,
    metric,
    within,
)
from tpusmi.sources.libtpu.names import EXECUTION, LATENCY, Name
from tpusmi.sources.libtpu.percentiles import percentiles, summed
from tpusmi.text import clean, counted, noun

ROWS_MOST = 4096
DEVICES_MOST = 1024
"""Rows of one metric that are about devices."""
LABELS_MOST = 256
PAIRS_MOST = 32
ID_TEXT_MOST = TEXT_MOST = 64
"""Characters of what names a device, and of what a distribution is about."""
FRESH_LEAST_S = 5.0
FRESH_PERIODS = 3
VALUE_MOST = 2**62 - 1
IDLE_MOST_S = 10 * 365.25 * 86400.0
"""Ten years: no machine has been up for longer."""
PERCENT_MOST = 100.5
"""A little over 100 is rounding; more is not a share of anything."""
FIRST_WALL_S = 1577836800.0
"""2020: a timestamp before libtpu had this service is none."""

_ID_TEXT = r"(?:(?:[0-9]+|tensor_?core)[-_])?([0-9]{1,9})"
"""`3`; `4804027566140109423-0` is device 0 of a long accelerator id; `tensorcore_3`."""
_EXECUTION = tuple(f"hlo_execution_time_us.{part}" for part in Percentiles._fields[1:])
_DEVICE_KEYS = ("device_ordinal", "device_id", "ordinal")
_SIZE_KEYS = ("buffer_size",)


Values = Sequence[tuple[str, Number]]
"""What one row measured, by the names of our metrics."""


class Asked(NamedTuple):
    """Whom a metric was asked of, and when."""

    server: str
    process: ProcessKey | None
    now_s: float
    """CLOCK_MONOTONIC."""
    wall_s: float


class Answer(NamedTuple):
    """What one metric gave."""

    readings: tuple[Reading, ...] = ()
    latencies: tuple[Latency, ...] = ()
    notes: tuple[str, ...] = ()


def answer(name: Name, response: Any, asked: Asked) -> Answer:
    """The readings or latencies in a MetricResponse; none when no program is loaded."""
    told = response.metric.name
    if told and told != name.grpc:
        return Answer(notes=(f"asked for {name.grpc}, answered {clean(told, 80)}",))
    rows = response.metric.metrics
    notes = []
    most = ROWS_MOST if name.shape == LATENCY else DEVICES_MOST
    if len(rows) > most:
        notes.append(f"{name.metric}: only the first {most} of {len(rows)} rows are read")
    if name.shape == LATENCY:
        return Answer((), _latencies(name, rows[:most], asked), tuple(notes))
    readings, senseless = _rows(name, rows[:most], asked)
    if senseless:
        of = f"{senseless} of {counted(len(rows), 'row')}"
        notes.append(f"{name.metric}: {of} {noun(senseless, 'makes', 'make')} no sense")
    return Answer(readings, (), tuple(notes))


def _rows(name: Name, rows: Any, asked: Asked) -> tuple[tuple[Reading, ...], int]:
    """The readings of every device, the first of each, and how many rows make no sense."""
    found: dict[RowKey, list[Reading]] = {}
    senseless = 0
    fresh_s = fresh_for_s(name)
    values_of = _execution if name.shape == EXECUTION else _gauge(name)
    for row in rows:
        if _is_of_other_core(row.attribute):
            continue
        id = device_id(row.attribute)
        values = None if id is None else values_of(row)
        if id is None or values is None:
            senseless += 1
            continue
        key = RowKey(asked.server, id)
        if key not in found:
            at_s = _at_s(row, asked)
            found[key] = [Reading(n, key, v, at_s, LIBTPU, fresh_s) for n, v in values]
    return tuple(r for readings in found.values() for r in readings), senseless


def fresh_for_s(name: Name) -> float:
    """How long a value of that name may be believed."""
    return max(FRESH_LEAST_S, FRESH_PERIODS * name.every_s)


def device_id(attribute: Any) -> int | None:
    """The device that an attribute names, whatever its key; None when it names none.

    One without a value is 0: JSON recordings lose it, as protobuf does not write a zero.
    """
    value = attribute.value
    kind = value.WhichOneof("attr")
    if kind is None:
        return 0
    if kind == "kvlist_attr":
        return _ordinal(value.kvlist_attr.attributes)
    return _id(value)


def label(attribute: Any) -> str:
    """What a distribution is about: `8MB+`, `2MB+-ALL_REDUCE`; empty when it does not say."""
    value = attribute.value
    if value.WhichOneof("attr") != "kvlist_attr":
        return clean(value.string_attr, TEXT_MOST)
    parts: list[str] = []
    for pair in value.kvlist_attr.attributes[:PAIRS_MOST]:
        text = _text(pair.value)
        if not text or (pair.key == "type" and text.lower() == "grpc"):
            continue
        parts.insert(0 if _key(pair) in _SIZE_KEYS else len(parts), text)
    return clean("-".join(parts), TEXT_MOST)


def _ordinal(pairs: Any) -> int | None:
    told = {_key(pair): pair.value for pair in pairs[:PAIRS_MOST]}
    for key in _DEVICE_KEYS:
        if key in told:
            return 0 if told[key].WhichOneof("attr") is None else _id(told[key])
    return None


def _is_of_other_core(attribute: Any) -> bool:
    """True for a row about a SparseCore, say: not ours to read, and not a mistake."""
    if attribute.value.WhichOneof("attr") != "kvlist_attr":
        return False
    pairs = attribute.value.kvlist_attr.attributes[:PAIRS_MOST]
    cores = [_text(pair.value).lower() for pair in pairs if _key(pair) == "core_type"]
    return any(core and not core.replace("_", "").startswith("tensorcore") for core in cores)


def _id(value: Any) -> int | None:
    kind = value.WhichOneof("attr")
    if kind == "int_attr":
        return int(value.int_attr) if 0 <= value.int_attr < 10**9 else None
    if kind == "string_attr":
        text = value.string_attr
        if len(text) > ID_TEXT_MOST:
            return None
        found = re.fullmatch(_ID_TEXT, text.strip(), re.IGNORECASE)
        return int(found[1]) if found else None
    return None


def _key(pair: Any) -> str:
    return str(pair.key)[:TEXT_MOST].lower().replace("-", "_")


def _text(value: Any) -> str:
    kind = value.WhichOneof("attr")
    return str(getattr(value, kind))[:TEXT_MOST] if kind in ("string_attr", "int_attr") else ""


def _execution(row: Any) -> Values | None:
    """The numbers of a distribution of execution times; None when the row is none."""
    if row.WhichOneof("measure") != "distribution":
        return None
    parts = percentiles(row.distribution)
    return [(n, v) for n, v in zip(_EXECUTION, parts[1:], strict=True) if v is not None]


def _gauge(name: Name) -> Callable[[Any], Values | None]:
    """How to read the rows of a gauge: to nothing when the value is not known yet, to None when it
    makes no sense.
    """
    told = metric(DEVICE, name.metric)
    is_limit = name.metric == "hbm_limit_bytes"

    def values(row: Any) -> Values | None:
        value = _sane(told, _number(row))
        if value is None:
            return None
        # A limit of 0: the runtime still starts.
        return () if is_limit and not value else ((name.metric, value),)

    return values


def _number(row: Any) -> Number | None:
    """The number of a gauge or counter, in whichever of its fields it stands."""
    measure = row.WhichOneof("measure")
    if measure not in ("gauge", "counter"):
        return None
    holder = getattr(row, measure)
    kind = holder.WhichOneof("value")
    return getattr(holder, kind) if kind in ("as_double", "as_int") else None


def _sane(told: Metric, value: Number | None) -> Number | None:
    """The value when it can be true; None otherwise."""
    value = within(value, VALUE_MOST)
    if value is None:
        return None
    if told.unit == "percent":
        return None if value > PERCENT_MOST else min(float(value), 100.0)
    if told.name == "idle_s" and value > IDLE_MOST_S:
        return None
    return int(value) if told.is_integer else float(value)


def _at_s(row: Any, asked: Asked) -> float:
    """When the row was measured, on our clock: now, unless it says since when it is old."""
    if not row.HasField("timestamp"):
        return asked.now_s
    stamp = row.timestamp
    wall_s = float(stamp.seconds + stamp.nanos / 1e9)
    if wall_s < FIRST_WALL_S or not 0 <= stamp.nanos < 10**9:
        return asked.now_s
    return asked.now_s - max(0.0, asked.wall_s - wall_s)


def _latencies(name: Name, rows: Any, asked: Asked) -> tuple[Latency, ...]:
    """One for each label: the rows of one label are added up, as far as their buckets agree."""
    groups: dict[str, list[Any]] = {}
    for row in rows:
        if row.WhichOneof("measure") == "distribution":
            told = label(row.attribute)
            if told in groups or len(groups) < LABELS_MOST:
                groups.setdefault(told, []).append(row)
    found = []
    for text, group in groups.items():
        whole = summed([row.distribution for row in group])
        numbers = _largest(group) if whole is None else percentiles(whole)
        at_s = max(_at_s(row, asked) for row in group)
        whose = (asked.process, asked.server)
        found.append(Latency(name.metric, text, numbers, at_s, LIBTPU, *whose))
    return tuple(found)


def _largest(group: list[Any]) -> Percentiles:
    """Of distributions that cannot be added up the one that counts most."""
    return percentiles(max((row.distribution for row in group), key=lambda d: d.count))
