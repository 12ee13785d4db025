"""Real traces with fewer events: as small as a fuzzer likes them, and sound all the same."""

from __future__ import annotations

from collections.abc import Iterator

from tpusmi.simulate.trace_bytes import field
from tpusmi.trace.messages import fields

PLANES_MOST, LINES_MOST, KINDS_MOST = 4, 6, 200
NAME_MOST = 400
"""Of a program that is packed into a stat, the beginning will do."""


def shortened(trace: bytes, events_most: int) -> bytes:
    """The trace with so many events of each line, of a few lines of a few planes."""
    planes = [
        _plane(bytes(value), events_most) for number, _, value in _parts(trace) if number == 1
    ]
    return b"".join(field(1, plane) for plane in (*planes[:PLANES_MOST], *planes[-3:]))


def _plane(plane: bytes, events_most: int) -> bytes:
    parts, lines, kinds = [], 0, 0
    for number, packed, value in _parts(plane):
        if number == 3 and isinstance(value, bytes):
            lines += 1
            if lines <= LINES_MOST:
                parts.append(field(3, _line(value, events_most)))
        elif number == 4:
            kinds += 1
            if kinds <= KINDS_MOST and len(packed) < 4 * NAME_MOST:
                parts.append(packed)
        else:
            parts.append(packed)
    return b"".join(parts)


def _line(line: bytes, events_most: int) -> bytes:
    parts, events = [], 0
    for number, packed, _ in _parts(line):
        events += number == 4
        if number != 4 or events <= events_most:
            parts.append(packed)
    return b"".join(parts)


def _parts(message: bytes) -> Iterator[tuple[int, bytes, int | bytes]]:
    """The fields of a message: number, the field as it is packed, value."""
    for number, kind, value in fields(message):
        if kind == 1:  # eight bytes
            assert isinstance(value, bytes)
            yield number, bytes((number << 3 | kind,)) + value, value
        else:
            yield number, field(number, value), value
