"""The bytes of a pprof profile: samples, labels and stacks, decoded only as far as they are asked
for.

By hand, because the job must get no protobuf module, and the schema is small.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

MOST_UNPACKED_BYTES = 8 * 1024 * 1024
MOST_ROWS = 100_000
"""Of samples, of locations, of functions, of strings: real jobs have a few thousand."""
MOST_FRAMES = 1024

_LIBRARIES = frozenset(("jax", "jaxlib", "flax", "optax", "haiku", "equinox", "orbax", "numpy"))
_LIBRARY_FILES = ("/functools.py", "/contextlib.py", "/tpusmi/agent/tracked.py")
"""Frames between the user's line and the allocation, which do not tell who keeps the memory."""


_COMPREHENSIONS = frozenset(("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"))


class ProfileError(Exception):
    """Bytes that are not a memory profile, with the reason in a sentence."""


Frame = tuple[str, str, int]
"""Function, file, line."""


class Sample(NamedTuple):
    locations: bytes
    buffers: int
    size: int
    labels: bytes


class Profile:
    """The tables of one profile: samples, locations, functions, strings, still in bytes."""

    def __init__(self, profile: bytes) -> None:
        self._data = members(profile)[0]
        self._rows: dict[int, list[tuple[int, int]]] = {2: [], 4: [], 5: [], 6: []}
        for number, start, end in _fields(self._data, 0, len(self._data)):
            if number in self._rows and end >= 0:
                rows = self._rows[number]
                rows.append((start, end))
                if len(rows) > MOST_ROWS:
                    raise ProfileError(f"has more than {MOST_ROWS} rows of a kind")
        self._labels: dict[bytes, dict[str, str]] = {}
        self._frames: dict[int, list[Frame]] = {}
        self._sites: dict[bytes, Frame] = {}
        self._places: dict[int, tuple[int, int]] = {}
        self._functions: dict[int, tuple[int, int]] = {}

    def samples(self) -> Iterator[Sample]:
        """Every sample, its stack and labels still packed: most are alike, and are decoded once."""
        data = self._data
        for start, end in self._rows[2]:
            locations = bytearray()
            values: list[int] = []
            labels = end
            for number, a, b in _fields(data, start, end):
                if number == 1 and b >= 0:
                    locations += data[a:b]
                elif number == 1:
                    locations += _varint_bytes(a)
                elif number == 2:
                    values.extend(_varints(data, a, b) if b >= 0 else (a,))
                elif number == 3 and b >= 0:
                    labels = min(labels, _label_start(data, a, b))
            if len(values) >= 2:
                yield Sample(
                    bytes(locations), _signed(values[0]), _signed(values[1]), data[labels:end]
                )

    def labels(self, packed: bytes) -> dict[str, str]:
        """The string labels of a sample."""
        if packed not in self._labels:
            found = self._labels[packed] = {}
            for number, start, end in _fields(packed, 0, len(packed)):
                if number == 3 and end >= 0:
                    label = {n: a for n, a, b in _fields(packed, start, end) if b < 0}
                    # Very old jaxlibs gave the device as a number, and 0 is not sent at all.
                    text = self.string(label[2]) if label.get(2) else str(label.get(3, 0))
                    found[self.string(label.get(1, 0))] = text
        return self._labels[packed]

    def site(self, locations: bytes) -> Frame:
        """The (function, file, line) that a stack is charged to."""
        if locations not in self._sites:  # each device has samples of the same stack
            self._sites[locations] = self._site(locations)
        return self._sites[locations]

    def _site(self, locations: bytes) -> Frame:
        ids = _varints(locations, 0, len(locations))
        every = (frame for location in ids for frame in self._frames_at(location))
        frames = itertools.islice(every, MOST_FRAMES)
        first = None
        for frame in frames:
            first = first or frame
            if not _is_library(frame[1]):
                # Before Python 3.12 a comprehension is a frame: the function around it is named.
                around = next(frames, frame) if frame[0] in _COMPREHENSIONS else frame
                return (around[0], *frame[1:]) if around[1] == frame[1] else frame
        return first or ("(unknown)", "", 0)

    def string(self, index: int) -> str:
        """The string of that number; empty when there is none."""
        rows = self._rows[6]
        if not 0 <= index < len(rows):
            return ""
        start, end = rows[index]
        return self._data[start:end].decode("utf-8", "replace")

    def _frames_at(self, location: int) -> list[Frame]:
        """The frames of a location, innermost first; most locations are never asked for."""
        if not self._places:
            self._places = self._by_id(4)
            self._functions = self._by_id(5)
        if location not in self._frames:
            self._frames[location] = self._decoded(location)
        return self._frames[location]

    def _decoded(self, location: int) -> list[Frame]:
        frames = []
        start, end = self._places.get(location, (0, 0))
        for number, a, b in _fields(self._data, start, end):
            if number == 4 and b >= 0:
                line = {n: v for n, v, w in _fields(self._data, a, b) if w < 0}
                first, last = self._functions.get(line.get(1, 0), (0, 0))
                f = {n: v for n, v, w in _fields(self._data, first, last) if w < 0}
                frame = (self.string(f.get(2, 0)), self.string(f.get(4, 0)), line.get(2, 0))
                frames.append(frame)
        return frames

    def _by_id(self, kind: int) -> dict[int, tuple[int, int]]:
        """Where each location or function lies, by the id that is its first field."""
        found = {}
        for start, end in self._rows[kind]:
            for number, value, last in _fields(self._data, start, end):
                if number == 1 and last < 0:
                    found[value] = (start, end)
                    break
        return found


def _is_library(file: str) -> bool:
    parts = file.replace("\\", "/").split("/")
    # A notebook cell is called `<ipython-input-3-…>`, and is the user's.
    frozen = file.startswith("<frozen ")
    return frozen or not _LIBRARIES.isdisjoint(parts[:-1]) or file.endswith(_LIBRARY_FILES)


def members(profile: bytes) -> tuple[bytes, bytes]:
    """The first gzip member unpacked, and what follows it.

    A small one may unpack to a bomb, so there is a limit.
    """
    if profile[:2] != b"\x1f\x8b":
        raise ProfileError("is not a gzip'ed memory profile")
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(profile, MOST_UNPACKED_BYTES)
    except zlib.error as error:
        raise ProfileError(f"cannot be unpacked: {error}") from None
    if not unpacker.eof:
        raise ProfileError("is cut short or too large")
    return data, unpacker.unused_data


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The fields of a message: (number, start, end) of a length-delimited one, (number, value, -1)
    of a varint.

    Raises ProfileError when the message is malformed. Fixed-width fields are skipped.
    """
    while at < end:
        # One-byte numbers are nearly all there are, and a call for each would double the time.
        tag = data[at]
        at += 1
        if tag > 0x7F:
            tag, at = _varint(data, at - 1, end)
        wire_type = tag & 7
        if wire_type == 2:
            size = data[at] if at < end else 0x80
            at += 1
            if size > 0x7F:
                size, at = _varint(data, at - 1, end)
            if at + size > end:
                raise ProfileError("has a field longer than its message")
            yield tag >> 3, at, at + size
            at += size
        elif wire_type == 0:
            value, at = _varint(data, at, end)
            yield tag >> 3, value, -1
        elif wire_type in (1, 5):
            at += 8 if wire_type == 1 else 4
        else:
            raise ProfileError("has a field of an unknown wire type")


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ProfileError("ends inside a number")


def _varints(data: bytes, at: int, end: int) -> Iterator[int]:
    while at < end:
        value, at = _varint(data, at, end)
        yield value


def _varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _label_start(data: bytes, start: int, end: int) -> int:
    """Where a label field's tag stands: one tag byte and its length before the content."""
    return start - 1 - len(_varint_bytes(end - start))


def _signed(value: int) -> int:
    """An int64 that was sent as an unsigned varint."""
    return struct.unpack("<q", struct.pack("<Q", value & 0xFFFFFFFFFFFFFFFF))[0]  # type: ignore[no-any-return]
