"""The parts of an XSpace: its planes, with their lines and tables. Reads each only when needed."""

from __future__ import annotations

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
from tpusmi.trace.trace_file import TraceFile

PLANES_MOST, LINES_MOST = 10_000, 100_000
NAMES_MOST = 1_000_000
"""Entries of one table of a plane."""
NAME_MOST = 1024
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


class XPlane:
    """One plane. Its tables are read when they are first needed."""

    def __init__(self, file: TraceFile, start: int, end: int) -> None:
        self.file, self.name = file, ""
        self._lines: list[tuple[int, int]] = []
        self._kinds: list[tuple[int, int]] = []
        self._names: list[tuple[int, int]] = []
        self._stats: list[tuple[int, int]] = []
        self._stat_names: dict[int, str] | None = None
        self._places: dict[int, tuple[int, int]] | None = None
        self._index(start, end)

    def _index(self, start: int, end: int) -> None:
        tables = {3: self._lines, 4: self._kinds, 5: self._names, 6: self._stats}
        left = NAMES_MOST
        for number, first, last in self.file.fields(start, end):
            if last < 0:
                continue
            if number == 2:
                self.name = text(self.file.message(first, min(last, first + NAME_MOST)))
            elif number in tables:
                tables[number].append((first, last))
                left -= 1
                if left < 0 or len(self._lines) > LINES_MOST:
                    raise NotATraceError("it has more parts than any real trace")

    def lines(self) -> Iterator[XLine]:
        """The lines, without their events."""
        for start, end in self._lines:
            yield _line(self.file, start, end)

    @property
    def stat_names(self) -> dict[int, str]:
        """Names of stats, and other texts that stats refer to, by id."""
        if self._stat_names is None:
            self._stat_names = {}
            for start, end in self._names:
                key, value = _entry(self.file.message(start, end))
                self._stat_names[key] = _first_text(value, 2)
        return self._stat_names

    def stat_ids(self, *names: str) -> tuple[int | None, ...]:
        """The ids of stats by name; None for each that the plane does not have."""
        ids = {name: id for id, name in self.stat_names.items()}
        return tuple(ids.get(name) for name in names)

    def stats(self) -> dict[str, StatValue]:
        """The stats of the plane itself."""
        return self.named([self.file.message(start, end) for start, end in self._stats])

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
        for start, end in self._kinds:
            key, value = _entry(self.file.message(start, end))
            yield key, _first_text(value, 2)

    def kind(self, id: int) -> XEventMetadata:
        """What the events of that id share. Without names when the plane does not say."""
        if self._places is None:
            self._places = {}
            for start, end in self._kinds:
                head = self.file.message(start, min(end, start + 16))
                self._places[_key(head)] = (start, end)
        start, end = self._places.get(id, (0, 0))
        return self._decoded(_entry(self.file.message(start, end))[1])

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
