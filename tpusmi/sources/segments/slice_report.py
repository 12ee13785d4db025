"""What a segment says of the other hosts of its job, checked: it is JSON from a stranger, about
still other strangers.
"""

from collections.abc import Iterator
from typing import Any

from tpusmi.chips import usual_kind
from tpusmi.model import PHASES, ProcessKey, within
from tpusmi.model.slice_hosts import Slice, SliceDevice, SliceProcess
from tpusmi.text import clean
from tpusmi.wire.layout import SLICE_JSON
from tpusmi.wire.reader import BlobContent, SegmentReader
from tpusmi.wire.slice_summary import (
    BLOB,
    CODE_MOST,
    DEVICE,
    DEVICES_MOST,
    KIND_MOST,
    LINE,
    MORE,
    NAME_MOST,
    PROCESSES_MOST,
    REST,
    VERSION,
    WARNINGS_MOST,
    Head,
    head_of,
    unpacked,
)

MOST = 2.0**62
DAY_S = 86400.0
COORDINATES_MOST = 8
CLOCKS_MOST_S = 1e9
"""A clock may be set to any time since 1970."""


class SliceOfJob:
    """The slice in one segment between reads: decoded only when it is new."""

    def __init__(self, reader: SegmentReader) -> None:
        self._reader = reader
        self._hint = 0
        self._newest: Slice | None = None

    def read(self, key: ProcessKey, shift_s: float, now_s: float) -> Slice | None:
        """The slice now; None when its agent reads none. Raises SegmentError."""
        hint = self._reader.slice_sequence()
        if hint != self._hint:
            self._hint = hint
            self._newest = slice_of(self._reader.slice_blob(), key, shift_s, now_s)
        newest = self._newest
        return newest if newest is None or newest.process == key else newest._replace(process=key)


def slice_of(
    blob: BlobContent | None, key: ProcessKey, shift_s: float, now_s: float
) -> Slice | None:
    """The slice that the agent of that process has read; None when it reads none, and for bytes
    that cannot be believed.
    """
    content = unpacked(blob.payload) if blob is not None and blob.kind == SLICE_JSON else None
    if blob is None or content is None:
        return None
    first = dict(zip(BLOB, content[0], strict=False))
    count = _whole(first["process_count"], PROCESSES_MOST)
    period_s = _number(first["period_s"], DAY_S)
    if first["version"] != VERSION or count is None or count < 2 or not period_s:
        return None
    hosts: dict[int, SliceProcess] = {}
    for line in content[1]:
        host = _host(dict(zip(LINE, line, strict=False)))
        if host is not None and host.process_index < count:
            hosts[host.process_index] = host
    return Slice(
        process=key,
        process_index=_whole(first["process_index"], PROCESSES_MOST) or 0,
        process_count=count,
        job=_whole(first["job"], MOST) or 0,
        period_s=period_s,
        at_s=min(blob.at_s + shift_s, now_s),
        hosts=tuple(hosts[index] for index in sorted(hosts)),
    )


def _host(line: dict[str, Any]) -> SliceProcess | None:
    """One line; None where it does not even say which process it is about, and when."""
    index = _whole(line["process_index"], PROCESSES_MOST)
    age_s, row = _number(line["age_s"], MOST), line["summary"]
    head = head_of(row) if isinstance(row, list) else None
    if index is None or age_s is None or head is None or head.version != VERSION:
        return None
    period_s = _number(head.period_s, DAY_S)
    rest, devices = row[len(Head._fields) :], []
    if len(rest) > len(REST) and isinstance(rest[len(REST)], list):
        devices = rest[len(REST)][:DEVICES_MOST]
    of_process = dict(zip(REST, rest, strict=False))
    more = dict(zip(MORE, rest[len(REST) + 1 :], strict=False))
    phase = _whole(of_process.get("phase"), len(PHASES) - 1)
    limits = of_process.get("hbm_limit_bytes")
    kind = _text(of_process.get("kind"), KIND_MOST)
    return SliceProcess(
        process_index=index,
        name=_text(of_process.get("name"), NAME_MOST) or "",
        kind=None if kind is None else usual_kind(kind),
        age_s=age_s,
        period_s=period_s or DAY_S,
        phase=None if phase is None else PHASES[phase],
        steps=_whole(of_process.get("steps"), MOST),
        step_time_s=_number(of_process.get("step_time_s"), MOST),
        since_last_step_s=_number(of_process.get("since_last_step_s"), MOST),
        mfu_percent=_number(of_process.get("mfu_percent"), 1000.0),
        sample_age_s=_number(of_process.get("sample_age_s"), MOST) or 0.0,
        clock_difference_s=_signed(line["clock_difference_s"], CLOCKS_MOST_S),
        warnings=tuple(_codes(of_process.get("warnings"))),
        devices=tuple(
            _device(d, limits[i : i + 1] if isinstance(limits, list) else [limits])
            for i, d in enumerate(devices)
            if isinstance(d, list)
        ),
        slice_index=_whole(more.get("slice_index"), PROCESSES_MOST),
        counted_devices=_whole(more.get("device_count"), MOST) or 0,
    )


def _device(row: list[Any], limit: list[Any]) -> SliceDevice:
    values = dict(zip(DEVICE, row, strict=False))
    coords = values.get("coords")
    places = coords[:COORDINATES_MOST] if isinstance(coords, list) else []
    checked = tuple(place for c in places if (place := _whole(c, 2**31)) is not None)
    is_sound = bool(places) and len(checked) == len(places)

    def percent(name: str) -> float | None:
        return _number(values.get(name), 100.0)

    return SliceDevice(
        id=_whole(values.get("id"), 2**53),
        coords=checked if is_sound else None,
        core_on_chip=_whole(values.get("core_on_chip"), 2**31),
        hbm_used_bytes=_whole(values.get("hbm_used_bytes"), MOST),
        hbm_limit_bytes=_whole(limit[0] if limit else None, MOST) or None,
        tensorcore_utilization_percent=percent("tensorcore_utilization_percent"),
        duty_cycle_percent=percent("duty_cycle_percent"),
        idle_s=_number(values.get("idle_s"), MOST),
    )


def _codes(value: Any) -> Iterator[str]:
    listed = value[:WARNINGS_MOST] if isinstance(value, list) else []
    yield from (clean(code, CODE_MOST) for code in listed if isinstance(code, str))


def _text(value: Any, most: int) -> str | None:
    return clean(value, most) if isinstance(value, str) else None


def _whole(value: Any, most: float) -> int | None:
    return value if type(value) is int and 0 <= value <= most else None


def _number(value: Any, most: float) -> float | None:
    """The number if it is finite, not negative, and at most that."""
    return within(value, most) if type(value) in (int, float) else None


def _signed(value: Any, most: float) -> float | None:
    is_sound = type(value) in (int, float) and -most <= value <= most
    return float(value) if is_sound else None
