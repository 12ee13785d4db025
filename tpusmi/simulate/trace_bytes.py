"""Writes the bytes of a profiler trace (XSpace): planes, lines, events and their metadata.

By hand: the message is small, and protobuf's modules take longer to load than a trace to write.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from tpusmi.pprof import packed_varint


class Unsigned(int):
    """A number that a trace keeps as uint64: a plain int is an int64."""


class Reference(str):
    """A text that a trace keeps once, in its table of names; a plain str is written each time."""


Value = float | int | str | bytes
"""What a stat may be; also `Unsigned` and `Reference`."""
Stats = Mapping[str, Value]


def field(number: int, value: int | bytes) -> bytes:
    """A field of a protobuf message; negative numbers are those of int64."""
    if isinstance(value, int):
        return packed_varint(number << 3) + packed_varint(value)
    return packed_varint(number << 3 | 2) + packed_varint(len(value)) + value


class TracedLine:
    """One line of a plane, such as `XLA Ops`. Its events start at `timestamp_ns` plus an offset."""

    def __init__(self, plane: TracedPlane, name: str, number: int, timestamp_ns: int = 0) -> None:
        self._plane = plane
        self._head = field(1, number) + field(2, name.encode()) + field(3, timestamp_ns)
        self._events = bytearray()

    def event(
        self, kind: int | str, offset_ps: int, duration_ps: int, stats: Stats | None = None
    ) -> None:
        """Add an event: `kind` is the number of its metadata, or a name without more to it."""
        number = self._plane.kind(kind) if isinstance(kind, str) else kind
        body = field(1, number) + field(2, offset_ps) + field(3, duration_ps)
        self._add(body, stats)

    def counted(self, kind: int | str, occurrences: int, stats: Stats | None = None) -> None:
        """Add an event that is a number of occurrences and has no start."""
        number = self._plane.kind(kind) if isinstance(kind, str) else kind
        self._add(field(1, number) + field(5, occurrences), stats)

    def _add(self, body: bytes, stats: Stats | None) -> None:
        self._events += field(4, body + self._plane.packed(4, stats or {}))

    @property
    def message(self) -> bytes:
        """The line as a message."""
        return self._head + self._events


class TracedPlane:
    """One plane of a trace, such as `/device:TPU:0`, with its own tables of names."""

    def __init__(self, name: str, number: int = 0) -> None:
        self._head = field(1, number) + field(2, name.encode())
        self._lines: list[TracedLine] = []
        self._kinds: list[bytes] = []
        self._plain_kinds: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._stats = b""

    def line(self, name: str, timestamp_ns: int = 0, number: int | None = None) -> TracedLine:
        """Add a line; its number is the next one unless given."""
        line = TracedLine(self, name, len(self._lines) if number is None else number, timestamp_ns)
        self._lines.append(line)
        return line

    def kind(self, name: str) -> int:
        """The number of the event metadata that is that name alone, made at first use."""
        if name not in self._plain_kinds:
            self._plain_kinds[name] = self.new_kind(name)
        return self._plain_kinds[name]

    def new_kind(
        self,
        name: str,
        stats: Stats | None = None,
        display_name: str = "",
        children: Iterable[int] = (),
    ) -> int:
        """The number of new event metadata: several may have one name."""
        number = len(self._kinds) + 1
        body = field(1, number) + field(2, name.encode())
        body += field(4, display_name.encode()) if display_name else b""
        body += self.packed(5, stats or {})
        self._kinds.append(body + b"".join(field(6, child) for child in children))
        return number

    def stats(self, stats: Stats) -> None:
        """Add stats of the plane itself."""
        self._stats += self.packed(6, stats)

    def name(self, text: str) -> int:
        """The number of that name in the table of stats, which is also that of texts."""
        return self._names.setdefault(text, len(self._names) + 1)

    def packed(self, number: int, stats: Stats) -> bytes:
        """The stats as fields of that number."""
        return b"".join(
            field(number, field(1, self.name(name)) + self._value(value))
            for name, value in stats.items()
        )

    def _value(self, value: Value) -> bytes:
        if isinstance(value, float):
            return b"\x11" + struct.pack("<d", value)  # field 2, of 64 bits
        if isinstance(value, int):
            return field(3 if isinstance(value, Unsigned) else 4, value)
        if isinstance(value, Reference):
            return field(7, self.name(str(value)))
        return field(5, value.encode()) if isinstance(value, str) else field(6, value)

    @property
    def message(self) -> bytes:
        """The plane as a message, its fields in the order in which protobuf writes them."""
        kinds = (field(1, number) + field(2, body) for number, body in enumerate(self._kinds, 1))
        names = (
            field(1, number) + field(2, field(1, number) + field(2, name.encode()))
            for name, number in self._names.items()
        )
        return b"".join(
            (
                self._head,
                *(field(3, line.message) for line in self._lines),
                *(field(4, kind) for kind in kinds),
                *(field(5, name) for name in names),
                self._stats,
            )
        )


class TraceWriter:
    """A trace that is made up in memory: add planes, then take its `message`."""

    def __init__(self, hostnames: Iterable[str] = ()) -> None:
        self._planes: list[TracedPlane] = []
        self._texts = b"".join(field(4, name.encode()) for name in hostnames)

    def plane(self, name: str) -> TracedPlane:
        """Add a plane."""
        plane = TracedPlane(name, len(self._planes) + 1)
        self._planes.append(plane)
        return plane

    def problem(self, text: str, is_error: bool = False) -> None:
        """Add a warning of the profiler itself, or an error."""
        self._texts = field(2 if is_error else 3, text.encode()) + self._texts

    @property
    def message(self) -> bytes:
        """The whole trace."""
        return b"".join(field(1, plane.message) for plane in self._planes) + self._texts
