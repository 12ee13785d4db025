"""The events of a line, decoded many at a time: columns of numbers, no object for each event.

A trace has millions of events, nearly all in the same form: their id, start and duration, then
stats. One pattern finds these numbers, and the numbers of a whole block are decoded together. An
event in any other form is decoded field by field.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from tpusmi.pprof import packed_varint
from tpusmi.trace.limits import MIB
from tpusmi.trace.messages import (
    BYTES,
    VARINT,
    NotATraceError,
    fields,
    length,
    numbers,
    varint,
)
from tpusmi.trace.open_trace import TraceFile
from tpusmi.trace.xspace import XLine, XPlane

BLOCK_BYTES = 256 * 1024
EVENT_MOST = 1 * MIB
PS_PER_NS = 1000
EVENT_TAG = STAT_TAG = 0x22
LATEST_PS = 1 << 62
"""Later than any clock says: 53 days of picoseconds since the start of a capture."""
_NUMBER = rb"([\x80-\xff]{0,9}[\x00-\x7f])"
_EVENT = rb"\x22" + _NUMBER + rb"\x08" + _NUMBER + rb"(?:\x10" + _NUMBER + rb")?(?:\x18" + _NUMBER
_EVENT += rb")?"
_STAT = rb"\x22[\x00-\x7f]\x08%s[\x18\x20]"
_Row = tuple[bytes, ...]


class EventBlock(NamedTuple):
    """Some events of a line, in its order. Times are in picoseconds of the trace's clock."""

    ids: Sequence[int]
    starts: Sequence[int]
    durations: Sequence[int]
    device_starts: Sequence[int]
    """By the clock of the device where the trace has it, else as above."""
    device_durations: Sequence[int]
    tails: Sequence[bytes]
    """The stats of each event, still packed; without a filter they are not there."""


class EventFilter(Protocol):
    """Says which events of a line are needed."""

    def wants(self, id: bytes, rest: bytes) -> bool:
        """True for an event with that id, still packed, and with these further fields."""
        raise NotImplementedError


def event_pattern(start: int | None, duration: int | None) -> bytes:
    """Finds an event in its usual form. The ids are those of the stats with the two times of the
    device's clock, which are the first of an event.
    """
    if start is None or duration is None:
        return _EVENT + b"()()"
    stats = [_STAT % re.escape(packed_varint(id)) + _NUMBER for id in (start, duration)]
    return _EVENT + b"(?:" + b"".join(stats) + b")?"


class EventReader:
    """Reads the lines of one plane."""

    def __init__(self, plane: XPlane) -> None:
        self._file: TraceFile = plane.file
        self._device_ids = plane.stat_ids("device_offset_ps", "device_duration_ps")
        self._plane = plane
        pattern = event_pattern(*self._device_ids)
        self._match = re.compile(pattern, re.DOTALL).match

    @property
    def has_device_clock(self) -> bool:
        """True when events of this plane have times of the device's own clock."""
        return None not in self._device_ids

    def blocks(self, line: XLine, select: EventFilter | None = None) -> Iterator[EventBlock]:
        """The events of a line. With a filter: those it wants, with the bytes of their stats.
        Raises NotATraceError.
        """
        at, size = line.start, BLOCK_BYTES
        while at < line.end:
            data = self._file.part(at, min(line.end, at + size))
            rows, tails, used = self._rows(data, select)
            if not used:
                if at + size >= line.end or size >= EVENT_MOST:
                    raise NotATraceError("a line of it ends inside an event")
                size *= 4
                continue
            at, size = at + used, BLOCK_BYTES
            if rows:
                yield self._block(line, rows, tails)

    def _rows(self, data: bytes, select: EventFilter | None) -> tuple[list[_Row], list[bytes], int]:
        """The events in the data up to the last whole one, their stats, and how far that is."""
        rows: list[_Row] = []
        tails: list[bytes] = []
        at, end = 0, len(data)
        match, clock = self._match, self.has_device_clock
        while at < end:
            event = match(data, at)
            if event is None:
                after = self._unmatched(data, at, rows, tails)
                if after > end:
                    break
                at = after
                continue
            row, tail = event.groups(b""), b""
            size, last = row[0], event.end()
            stop = event.end(1) + (size[0] if len(size) == 1 else varint(size, 0)[0])
            if stop > end:
                break
            at = stop
            is_odd = last < stop and (data[last] != STAT_TAG or (clock and not row[5]))
            if last > stop or is_odd:
                row, tail = self._decoded(data[event.end(1) : stop])
            elif select is not None:
                tail = data[max(event.end(2), event.end(3), event.end(4)) : stop]
            if select is None or select.wants(row[1], tail):
                rows.append(row)
                tails.append(tail)
        return rows, tails, at

    def _unmatched(self, data: bytes, at: int, rows: list[_Row], tails: list[bytes]) -> int:
        """Reads a field that the pattern does not match: the fields of an event can come in any
        order. Returns the position after it; behind the data when the data ends inside it.
        """
        try:
            tag, at = varint(data, at)
            kind = tag & 7
            if kind == VARINT:
                return varint(data, at)[1]
            size, at = varint(data, at) if kind == BYTES else (length(kind), at)
        except NotATraceError:
            return len(data) + 1
        if tag == EVENT_TAG and at + size <= len(data):
            row, tail = self._decoded(data[at : at + size])
            rows.append(row)
            tails.append(tail)
        return at + size

    def _decoded(self, packed: bytes) -> tuple[_Row, bytes]:
        """An event in an unusual form, or one whose stats are needed."""
        values = {1: b"", 2: b"", 3: b""}
        stats: dict[int | None, bytes] = {}
        tail = bytearray()
        for number, kind, value in fields(packed):
            if kind == VARINT and number in values:
                values[number] = packed_varint(int(value))
            elif number == 4 and isinstance(value, bytes):
                tail += b"\x22" + packed_varint(len(value)) + value
                if self.has_device_clock:
                    id, content = self._plane.stat(value)
                    stats[id] = packed_varint(content) if isinstance(content, int) else b""
        device = [stats.get(id, b"") for id in self._device_ids]
        return (b"", values[1], values[2], values[3], *device), bytes(tail)

    def _block(self, line: XLine, rows: list[_Row], tails: list[bytes]) -> EventBlock:
        _, *columns = zip(*rows, strict=True)
        ids, offsets, durations, *device = columns
        zero = line.timestamp_ns * PS_PER_NS
        starts = _times(offsets, zero)
        lengths = _times(durations)
        own_starts, own_lengths = starts, lengths
        if self.has_device_clock:
            has_own = [bool(own) for own in device[1]]
            own_starts = _chosen(has_own, _times(device[0]), starts)
            own_lengths = _chosen(has_own, _times(device[1]), lengths)
        return EventBlock(
            ids=numbers(ids),
            starts=starts,
            durations=lengths,
            device_starts=own_starts,
            device_durations=own_lengths,
            tails=tails,
        )


def _chosen(has_own: Sequence[bool], own: array[int], others: array[int]) -> array[int]:
    if all(has_own):
        return own
    rows = zip(has_own, own, others, strict=True)
    return array("q", [mine if has else other for has, mine, other in rows])


def _times(packed: Sequence[bytes], zero: int = 0) -> array[int]:
    """Times in picoseconds after `zero`."""
    values = numbers(packed)
    latest = max(values) + zero
    if latest >= LATEST_PS or zero < -LATEST_PS:
        raise NotATraceError("an event of it has an impossible time")
    return array("q", [value + zero for value in values] if zero else values.tolist())


def stat_messages(tail: bytes) -> list[bytes]:
    """The stats of an event, each still packed."""
    messages, at, end = [], 0, len(tail)
    while at + 1 < end and tail[at] == STAT_TAG and tail[at + 1] < 0x80:
        stop = at + 2 + tail[at + 1]
        messages.append(tail[at + 2 : stop])
        at = stop
    if at == end:
        return messages
    rest = fields(tail[at:])  # a long stat, or another field
    return messages + [v for number, _, v in rest if number == 4 and isinstance(v, bytes)]


def stat_head(id: int) -> bytes:
    """How the stats of that id begin."""
    return b"\x08" + packed_varint(id)
