"""A metrics server's messages as readings, latencies and cores. Pure; trusts nothing in them."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tpusmi.metricproto import CORE_TYPES, messages
from tpusmi.model import LIBTPU, Core, Latency, Number, Percentiles, ProcessKey, Reading, RowKey
from tpusmi.sources.libtpu.grpc_status import Code
from tpusmi.sources.libtpu.names import EXECUTION, LATENCY, Name, sane
from tpusmi.sources.libtpu.percentiles import percentiles, summed
from tpusmi.text import clean, counted, noun

ROWS_MOST = 4096
DEVICES_MOST = 1024
"""The most rows of one metric that are about devices."""
LABELS_MOST = 256
PAIRS_MOST = 32
ID_TEXT_MOST = TEXT_MOST = 64
"""The longest id of a device, and the longest label of a distribution, in characters."""
CORES_MOST = 4096
LOCATION_MOST = 400
FINGERPRINT_MOST_BYTES = 64
FIRST_WALL_S = 1577836800.0
"""2020: libtpu did not have this service before, so an older timestamp is ignored."""

_ID_TEXT = r"(?:(?:[0-9]+|tensor_?core)[-_])?([0-9]{1,9})"
"""`3`; `4804027566140109423-0` is device 0 of a long accelerator id; `tensorcore_3`."""
_EXECUTION = tuple(f"hlo_execution_time_us.{part}" for part in Percentiles._fields[1:])
_DEVICE_KEYS = ("device_ordinal", "device_id", "ordinal")
_SIZE_KEYS = ("buffer_size",)


Values = Sequence[tuple[str, Number]]
"""The values in one row, by the names of our metrics."""


class Origin(NamedTuple):
    """Which server a metric was asked of, and when."""

    server: str
    process: ProcessKey | None
    now_s: float
    """The time of the request, of CLOCK_MONOTONIC."""
    wall_s: float


class MetricValues(NamedTuple):
    """The values of one metric."""

    readings: tuple[Reading, ...] = ()
    latencies: tuple[Latency, ...] = ()
    notes: tuple[str, ...] = ()


def message(call: Any, name: str) -> Any | None:
    """The message that a call brought; None when the call failed or brought nonsense."""
    if call.code() != Code.OK:
        return None
    from google.protobuf.message import DecodeError

    try:
        return messages()[name].FromString(call.result())
    except (DecodeError, ValueError, RecursionError):  # the last two from Python's implementation
        return None


def metric_values(name: Name, response: Any, origin: Origin) -> MetricValues:
    """The readings or latencies in a MetricResponse; none when no program is loaded."""
    answered = response.metric.name
    if answered and answered != name.grpc:
        return MetricValues(notes=(f"asked for {name.grpc}, answered {clean(answered, 80)}",))
    rows = response.metric.metrics
    notes = []
    most = ROWS_MOST if name.shape == LATENCY else DEVICES_MOST
    if len(rows) > most:
        notes.append(f"{name.metric}: only the first {most} of {len(rows)} rows are read")
    if name.shape == LATENCY:
        return MetricValues((), _latencies(name, rows[:most], origin), tuple(notes))
    readings, senseless = _rows(name, rows[:most], origin)
    if senseless:
        of = f"{senseless} of {counted(len(rows), 'row')}"
        notes.append(f"{name.metric}: {of} {noun(senseless, 'makes', 'make')} no sense")
    return MetricValues(readings, (), tuple(notes))


def cores(response: Any, server: str) -> tuple[Core, ...]:
    """Every core in a GetTpuRuntimeStatusResponse, sorted by global id."""
    states = response.core_states[:CORES_MOST]
    return tuple(sorted((_core(state, server) for state in states), key=lambda core: core.id))


def _rows(name: Name, rows: Any, origin: Origin) -> tuple[tuple[Reading, ...], int]:
    """The readings of every device, the first of each, and how many rows make no sense."""
    readings: list[Reading] = []
    ids: set[int] = set()
    senseless = 0
    fresh_s = name.fresh_s
    values_of = _execution if name.shape == EXECUTION else _gauge(name)
    for row in rows:
        attribute = row.attribute.value
        kind = attribute.WhichOneof("attr")
        if kind == "kvlist_attr" and _is_of_other_core(attribute.kvlist_attr):
            continue
        id = _device_id(attribute, kind)
        values = None if id is None else values_of(row)
        if id is None or values is None:
            senseless += 1
            continue
        if id not in ids:
            ids.add(id)
            key, at_s = RowKey(origin.server, id), _at_s(row, origin)
            for metric, value in values:
                readings.append(Reading(metric, key, value, at_s, LIBTPU, fresh_s))
    return tuple(readings), senseless


def _device_id(value: Any, kind: str | None) -> int | None:
    """The device that the value of an attribute names, whatever its key; None when it names none.

    One without a value is 0: JSON recordings lose it, as protobuf does not write a zero.
    """
    if kind is None:
        return 0
    if kind == "int_attr":
        return int(value.int_attr) if 0 <= value.int_attr < 10**9 else None
    if kind == "kvlist_attr":
        return _ordinal(value.kvlist_attr.attributes)
    if kind == "string_attr":
        text = value.string_attr
        if len(text) > ID_TEXT_MOST:
            return None
        match = re.fullmatch(_ID_TEXT, text.strip(), re.IGNORECASE)
        return int(match[1]) if match else None
    return None


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
    values = {_key(pair): pair.value for pair in pairs[:PAIRS_MOST]}
    for key in _DEVICE_KEYS:
        if key in values:
            kind = values[key].WhichOneof("attr")
            return None if kind == "kvlist_attr" else _device_id(values[key], kind)
    return None


def _is_of_other_core(kvlist: Any) -> bool:
    """True for a row about a SparseCore, say: not ours to read, and not a mistake."""
    pairs = kvlist.attributes[:PAIRS_MOST]
    cores = [_text(pair.value).lower() for pair in pairs if _key(pair) == "core_type"]
    return any(core and not core.replace("_", "").startswith("tensorcore") for core in cores)


def _key(pair: Any) -> str:
    return str(pair.key)[:TEXT_MOST].lower().replace("-", "_")


def _text(value: Any) -> str:
    kind = value.WhichOneof("attr")
    return str(getattr(value, kind))[:TEXT_MOST] if kind in ("string_attr", "int_attr") else ""


def _execution(row: Any) -> Values | None:
    """The numbers of a distribution of execution times; None when the row has no distribution."""
    if row.WhichOneof("measure") != "distribution":
        return None
    parts = percentiles(row.distribution)
    return [(n, v) for n, v in zip(_EXECUTION, parts[1:], strict=True) if v is not None]


def _gauge(name: Name) -> Callable[[Any], Values | None]:
    """How to read the rows of a gauge: to nothing when the value is not known yet, to None when it
    makes no sense.
    """
    is_limit = name.metric == "hbm_limit_bytes"

    def values(row: Any) -> Values | None:
        value = sane(name.metric, _number(row))
        if value is None:
            return None
        # A limit of 0: the runtime still starts.
        return () if is_limit and not value else ((name.metric, value),)

    return values


def _number(row: Any) -> Number | None:
    """The number of a gauge or counter, in whichever of its fields it is."""
    measure = row.WhichOneof("measure")
    if measure not in ("gauge", "counter"):
        return None
    holder = getattr(row, measure)
    kind = holder.WhichOneof("value")
    return getattr(holder, kind) if kind in ("as_double", "as_int") else None


def _at_s(row: Any, origin: Origin) -> float:
    """When the row was measured, on our clock: now, unless it says since when it is old."""
    seconds, nanos = row.timestamp.seconds, row.timestamp.nanos
    wall_s = float(seconds + nanos / 1e9)
    if wall_s < FIRST_WALL_S or not 0 <= nanos < 10**9:
        return origin.now_s
    return origin.now_s - max(0.0, origin.wall_s - wall_s)


def _latencies(name: Name, rows: Any, origin: Origin) -> tuple[Latency, ...]:
    """One for each label: the rows of one label are added up, as far as their buckets agree."""
    groups: dict[str, list[Any]] = {}
    for row in rows:
        if row.WhichOneof("measure") == "distribution":
            text = label(row.attribute)
            if text in groups or len(groups) < LABELS_MOST:
                groups.setdefault(text, []).append(row)
    return tuple(
        Latency(
            name=name.metric,
            label=text,
            percentiles=_percentiles([row.distribution for row in group]),
            at_s=max(_at_s(row, origin) for row in group),
            source=LIBTPU,
            process=origin.process,
            server=origin.server,
        )
        for text, group in groups.items()
    )


def _percentiles(distributions: list[Any]) -> Percentiles:
    """Percentiles of all together; where they cannot be added up, of the one that counts most."""
    whole = summed(distributions)
    return percentiles(max(distributions, key=lambda d: d.count) if whole is None else whole)


def _core(state: Any, server: str) -> Core:
    summary = state.value
    identity = summary.core_id
    place = identity.core_on_chip
    locations = (s.hlo_location for s in summary.sequencer_info if s.hlo_location)
    error = clean(summary.error_message, 200) or None
    fingerprint = summary.program_fingerprint[:FINGERPRINT_MOST_BYTES].hex()
    return Core(
        server=server,
        id=state.key,
        chip_id=identity.chip_id if identity.HasField("chip_id") else None,
        type=_core_type(place.type) if place.HasField("type") else None,
        index=place.index if place.HasField("index") else None,
        hlo_location=clean(next(locations, ""), LOCATION_MOST) or None,
        program_fingerprint=fingerprint or None,
        queued_programs=None if error else len(summary.queued_program_info),
        error=error,
    )


def _core_type(number: int) -> str:
    """The type's name; its number where libtpu has not published a name."""
    return CORE_TYPES[number] if 0 <= number < len(CORE_TYPES) else str(number)
