"""The parts of an XSpace: its planes, with their lines and tables. Reads each only when needed."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from tpusmi.trace.messages import (
    BYTES,
    FIXED64,
    VARINT,
    NotATraceError,
    double,
    fields,
    signed,
    text,
)
from tpusmi.trace.open_trace import TraceFile

PLANES_MOST = 10_000
NAME_MOST = 256
"""Bytes of a name that are kept."""
LINES, KINDS, NAMES, STATS = 3, 4, 5, 6
"""Numbers of the fields of a plane."""
KEY_BYTES = 16
"""Longer than the key of a table's entry."""
MESSAGES_MOST = 100
"""Errors and warnings that are read from a trace."""

StatValue = int | float | str | bytes


class XLine(NamedTuple):
    """One line of a plane: where its fields are."""

    name: str
    timestamp_ns: int
    start: int
    """Where the events begin, if the fields are in their usual order."""
    end: int


class XEventMetadata(NamedTuple):
    """What all events of one kind share."""

    name: str
    """For an operation of a TPU: its text in HLO, cut."""
    display_name: str
    stats: dict[str, StatValue]


class XSpace(NamedTuple):
    """The planes of a trace, and what the profiler complained about."""

    planes: tuple[XPlane, ...]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    hosts: tuple[str, ...]


class _Places:
    """Where the parts of one kind are: two numbers each, since a trace can have a million."""

    def __init__(self) -> None:
        self._bounds = array("q")

    def __len__(self) -> int:
        return len(self._bounds) // 2

    def add(self, start: int, end: int) -> None:
        """Adds one."""
        self._bounds.append(start)
        self._bounds.append(end)

    def __getitem__(self, index: int) -> tuple[int, int]:
        return self._bounds[2 * index], self._bounds[2 * index + 1]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._bounds[::2], self._bounds[1::2], strict=True)


class XPlane:
    """One plane. Its parts are looked up, and its tables read, when they are first needed."""

    def __init__(self, file: TraceFile, start: int, end: int) -> None:
        self.file, self.name = file, ""
        self._start, self._end = start, end
        self._parts: dict[int, _Places] = {}
        self._stat_names: dict[int, str] | None = None
        self._kinds: dict[int, int] | None = None
        for number, first, last in file.fields(start, end):
            if number == 2 and last >= 0:
                self.name = text(file.message(first, min(last, first + NAME_MOST)))
                break

    def forget(self) -> None:
        """Gives back the memory of the tables."""
        self._parts, self._stat_names, self._kinds = {}, None, None

    def _places(self, number: int) -> _Places:
        """Where the fields of that number are: lines, kinds of events, names or stats."""
        if not self._parts:
            self._parts = {number: _Places() for number in (LINES, KINDS, NAMES, STATS)}
            for part, first, last in self.file.fields(self._start, self._end):
                if part in self._parts and last >= 0:
                    self._parts[part].add(first, last)
                    self.file.count_part()
        return self._parts[number]

    def lines(self) -> Iterator[XLine]:
        """The lines, without their events."""
        for start, end in self._places(LINES):
            yield _line(self.file, start, end)

    @property
    def stat_names(self) -> dict[int, str]:
        """Names of stats, and other texts that stats refer to, by id."""
        if self._stat_names is None:
            self._stat_names = {}
            for start, end in self._places(NAMES):
                key, value = _entry(self.file.message(start, end))
                self._stat_names[key] = _first_text(value, 2)
        return self._stat_names

    def stat_ids(self, *names: str) -> tuple[int | None, ...]:
        """The ids of stats by name; None for each that the plane does not have."""
        ids = {name: id for id, name in self.stat_names.items()}
        return tuple(ids.get(name) for name in names)

    def stats(self) -> dict[str, StatValue]:
        """The stats of the plane itself."""
        return self.named([self.file.message(start, end) for start, end in self._places(STATS)])

    def named(self, packed: list[bytes]) -> dict[str, StatValue]:
        """Stats by name, with the text of each reference."""
        stats = {}
        for one in packed:
            id, value = self.stat(one)
            if value is not None:
                stats[self.stat_names.get(id, "")] = value
        return stats

    def stat(self, packed: bytes) -> tuple[int, StatValue | None]:
        """The id and value of one stat; None when it has none."""
        id, value = 0, None
        for number, kind, content in fields(packed):
            if number == 1 and kind == VARINT:
                id = int(content)
            else:
                value = self._value(number, kind, content)
        return id, value

    def _value(self, number: int, kind: int, content: int | bytes) -> StatValue | None:
        if isinstance(content, int):
            if number == 7:
                return self.stat_names.get(content, "")
            return signed(content) if number == 4 else content
        if number == 2 and kind == FIXED64:
            return double(content)
        if number == 5:
            return text(content)
        return content[:4096] if number == 6 and kind == BYTES else None

    def kind_names(self) -> Iterator[tuple[int, str]]:
        """The ids and names of the kinds of events."""
        for start, end in self._places(KINDS):
            key, value = _entry(self.file.message(start, end))
            yield key, _first_text(value, 2)

    def kind(self, id: int) -> XEventMetadata:
        """What the events of that id share. Without names when the plane does not say."""
        places = self._places(KINDS)
        if self._kinds is None:
            self._kinds = {}
            for i, (start, end) in enumerate(places):
                self._kinds[_key(self.file.message(start, min(end, start + KEY_BYTES)))] = i
        if id not in self._kinds:
            return XEventMetadata("", "", {})
        return self._decoded(_entry(self.file.message(*places[self._kinds[id]]))[1])

    def _decoded(self, packed: bytes) -> XEventMetadata:
        name = display_name = ""
        stats = []
        for number, _, value in fields(packed):
            if number == 2:
                name = text(value)
            elif number == 4:
                display_name = text(value, NAME_MOST)
            elif number == 5 and isinstance(value, bytes):
                stats.append(value)
        return XEventMetadata(name, display_name, self.named(stats))


def read_space(file: TraceFile) -> XSpace:
    """The parts of the trace. Raises NotATraceError."""
    planes: list[XPlane] = []
    messages: dict[int, list[str]] = {2: [], 3: [], 4: []}
    for number, start, end in file.fields(0, file.size):
        if number == 1 and end >= 0:
            planes.append(XPlane(file, start, end))
            if len(planes) > PLANES_MOST:
                raise NotATraceError("it has more planes than any real trace")
        elif number in messages and end >= 0:
            if len(messages[number]) < MESSAGES_MOST:
                messages[number].append(text(file.message(start, min(end, start + NAME_MOST))))
        else:
            raise NotATraceError("its bytes do not have the form of one")
    return XSpace(tuple(planes), *(tuple(messages[number]) for number in (2, 3, 4)))


def _line(file: TraceFile, start: int, end: int) -> XLine:
    name, timestamp, events = "", 0, end
    for number, value, last in file.fields(start, end):
        if number == 4 and last >= 0:
            events = min(events, value)
            if name:  # the usual order: all that matters is before the events
                break
        elif number in (2, 11) and last >= 0:
            name = name or text(file.message(value, min(last, value + NAME_MOST)))
        elif number == 3 and last < 0:
            timestamp = signed(value)
    return XLine(name, timestamp, start, end)


def _entry(packed: bytes) -> tuple[int, bytes]:
    """Key and value of an entry of a map."""
    key, content = 0, b""
    for number, _, value in fields(packed):
        if number == 1 and isinstance(value, int):
            key = value
        elif number == 2 and isinstance(value, bytes):
            content = value
    return key, content


def _key(head: bytes) -> int:
    """The key of a map's entry, which is its first field, from its first bytes."""
    return next((int(v) for n, kind, v in _lenient(head) if n == 1 and kind == VARINT), 0)


def _lenient(head: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    try:
        yield from fields(head)
    except NotATraceError:
        return


def _first_text(packed: bytes, wanted_number: int) -> str:
    return next((text(v, NAME_MOST) for n, _, v in fields(packed) if n == wanted_number), "")
