"""The bytes of a pprof profile: samples, labels and stacks, decoded only as far as needed.

By hand, because no protobuf module may be loaded into the job, and the schema is small.
"""

import itertools
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MOST_UNPACKED_BYTES = 8 * 1024 * 1024
MOST_ROWS = 100_000
"""Most samples, locations, functions and strings, each: real jobs have a few thousand."""
WORK_MOST, WORK_LEAST, WORK_PER_BYTE = 1_000_000, 100_000, 8
"""Most fields and frames that are decoded, in proportion to the packed bytes: a few kilobytes may
unpack to so much that decoding it takes seconds. Real profiles have one or two for each byte.
"""
TOO_MUCH = "has more in it than its size allows"
MOST_FRAMES = 1024
MOST_LINES = 64
"""Most lines of one location: more than one are functions inlined into each other."""
MOST_STRING_BYTES = 4096
MOST_LINE = 2**31
MOST_NUMBER = 2**45
"""More bytes or buffers of one sample than any host has."""

_LIBRARIES = frozenset(("jax", "jaxlib", "flax", "optax", "haiku", "equinox", "orbax", "numpy"))
_LIBRARY_FILES = ("/functools.py", "/contextlib.py", "/tpusmi/agent/tracked.py")
"""Files of frames between the user's line and the allocation, which is not who keeps the memory."""
_COMPREHENSIONS = frozenset(("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"))


class ProfileError(Exception):
    """Bytes that are not a memory profile, with the reason in a sentence."""


Frame = tuple[str, str, int]
"""Function, file, line."""


class ProfileSample(NamedTuple):
    """One sample, its stack and its labels still packed."""

    locations: bytes
    buffers: int
    size: int
    labels: bytes


class _Function(NamedTuple):
    name: str
    file: str
    is_library: bool


class Profile:
    """The tables of one profile: samples, locations, functions, strings, still in bytes.

    Everything is decoded once, however often it is referred to. Every method raises ProfileError.
    """

    def __init__(self, profile: bytes) -> None:
        self._left = min(WORK_MOST, WORK_LEAST + WORK_PER_BYTE * len(profile))
        self._data = members(profile)[0]
        self._rows: dict[int, list[tuple[int, int]]] = {2: [], 4: [], 5: [], 6: []}
        for number, start, end in self._fields(self._data, 0, len(self._data)):
            if number in self._rows and end >= 0:
                self._rows[number].append((start, end))
                if len(self._rows[number]) > MOST_ROWS:
                    raise ProfileError(f"has more than {MOST_ROWS} rows of a kind")
        self._labels: dict[bytes, dict[str, str]] = {}
        self._strings: dict[int, str] = {}
        self._frames: dict[int, list[tuple[Frame, bool]]] = {}
        self._sites: dict[bytes, Frame] = {}
        self._places: dict[int, tuple[int, int]] | None = None
        self._function_places: dict[int, tuple[int, int]] = {}
        self._functions: dict[int, _Function] = {}

    def samples(self) -> Iterator[ProfileSample]:
        """Every sample, its stack and labels still packed: most are alike, and are decoded once."""
        data = self._data
        for start, end in self._rows[2]:
            locations = bytearray()
            values: list[int] = []
            labels = end
            for number, a, b in self._fields(data, start, end):
                if number == 1 and b >= 0:
                    locations += data[a:b]
                elif number == 1:
                    locations += packed_varint(a)
                elif number == 2:
                    values += _first_two(data, a, b) if b >= 0 else (a,)
                elif number == 3 and b >= 0:
                    # The field begins with a tag of one byte and the length of its content.
                    labels = min(labels, a - 1 - len(packed_varint(b - a)))
            if len(values) >= 2:
                yield _sample(bytes(locations), values, data[labels:end])

    def labels(self, packed: bytes) -> dict[str, str]:
        """The string labels of a sample."""
        if packed not in self._labels:
            labels = self._labels[packed] = {}
            for number, start, end in self._fields(packed, 0, len(packed)):
                if number == 3 and end >= 0:
                    label = self._numbers(packed, start, end)
                    # Very old jaxlibs gave the device as a number, and 0 is not sent at all.
                    text = self.string(label[2]) if label.get(2) else str(label.get(3, 0))
                    labels[self.string(label.get(1, 0))] = text
        return self._labels[packed]

    def site(self, locations: bytes) -> Frame:
        """The (function, file, line) that a stack is charged to."""
        if locations not in self._sites:  # each device has samples of the same stack
            self._sites[locations] = self._site(locations)
        return self._sites[locations]

    def _site(self, locations: bytes) -> Frame:
        frames = itertools.islice(self._stack(locations), MOST_FRAMES)
        first = None
        for frame, is_library in frames:
            first = first or frame
            if not is_library:
                # Before Python 3.12 a comprehension is a frame: the function around it is named.
                around = next(frames, (frame,))[0] if frame[0] in _COMPREHENSIONS else frame
                return (around[0], *frame[1:]) if around[1] == frame[1] else frame
        return first or ("(unknown)", "", 0)

    def _stack(self, locations: bytes) -> Iterator[tuple[Frame, bool]]:
        """The frames of a stack, innermost first, and whether each is a library's."""
        for location in _varints(locations, 0, len(locations)):
            frames = self._frames_at(location)
            self._left -= 1 + len(frames)
            if self._left < 0:
                raise ProfileError(TOO_MUCH)
            yield from frames

    def string(self, index: int) -> str:
        """The string of that number, up to MOST_STRING_BYTES of it; empty when there is none."""
        if index not in self._strings:
            rows = self._rows[6]
            start, end = rows[index] if 0 <= index < len(rows) else (0, 0)
            data = self._data[start : min(end, start + MOST_STRING_BYTES)]
            self._strings[index] = data.decode("utf-8", "replace")
        return self._strings[index]

    def _frames_at(self, location: int) -> list[tuple[Frame, bool]]:
        """The frames of a location, innermost first; most locations are never needed."""
        if self._places is None:
            self._places = self._by_id(4)
            self._function_places = self._by_id(5)
        if location not in self._frames:
            self._frames[location] = self._decoded(*self._places.get(location, (0, 0)))
        return self._frames[location]

    def _decoded(self, start: int, end: int) -> list[tuple[Frame, bool]]:
        frames = []
        for number, a, b in self._fields(self._data, start, end):
            if number == 4 and b >= 0:
                line = self._numbers(self._data, a, b)
                f = self._function(line.get(1, 0))
                at = line.get(2, 0)
                frames.append(((f.name, f.file, at if at < MOST_LINE else 0), f.is_library))
                if len(frames) > MOST_LINES:
                    raise ProfileError(f"has a location of more than {MOST_LINES} lines")
        return frames

    def _function(self, id: int) -> _Function:
        if id not in self._functions:
            f = self._numbers(self._data, *self._function_places.get(id, (0, 0)))
            file = self.string(f.get(4, 0))
            self._functions[id] = _Function(self.string(f.get(2, 0)), file, _is_library(file))
        return self._functions[id]

    def _by_id(self, kind: int) -> dict[int, tuple[int, int]]:
        """Where each location or function is, by the id that is its first field."""
        places = {}
        for start, end in self._rows[kind]:
            for number, value, last in self._fields(self._data, start, end):
                if number == 1 and last < 0:
                    places[value] = (start, end)
                    break
        return places

    def _numbers(self, data: bytes, start: int, end: int) -> dict[int, int]:
        """The varints of a message by their numbers."""
        return {n: value for n, value, last in self._fields(data, start, end) if last < 0}

    def _fields(self, data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The fields of a message: (number, start, end) of a length-delimited one, (number, value,
        -1) of a varint.

        Raises ProfileError when it is malformed, and for too many in all. Skips fixed-width fields.
        """
        most = self._left
        decoded = 0
        while at < end:
            # Nearly all numbers have one byte, and a call for each would double the time.
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
            else:
                at = _after_fixed(wire_type, at)
            decoded += 1
            if decoded > most:
                raise ProfileError(TOO_MUCH)
        self._left -= decoded


def _after_fixed(wire_type: int, at: int) -> int:
    if wire_type not in (1, 5):
        raise ProfileError("has a field of an unknown wire type")
    return at + (8 if wire_type == 1 else 4)


def _sample(locations: bytes, values: Sequence[int], labels: bytes) -> ProfileSample:
    buffers, size = _signed(values[0]), _signed(values[1])
    if not 0 <= buffers < MOST_NUMBER or abs(size) >= MOST_NUMBER:
        raise ProfileError("has a sample of impossible size")
    return ProfileSample(locations, buffers, size, labels)


def _is_library(file: str) -> bool:
    parts = file.replace("\\", "/").split("/")
    # `<ipython-input-3-…>` is a cell of the user's notebook.
    is_frozen = file.startswith("<frozen ")
    return is_frozen or not _LIBRARIES.isdisjoint(parts[:-1]) or file.endswith(_LIBRARY_FILES)


def members(profile: bytes, most: int = MOST_UNPACKED_BYTES) -> tuple[bytes, bytes]:
    """The first gzip member unpacked, up to `most` bytes, and the bytes that follow it."""
    if profile[:2] != b"\x1f\x8b":
        raise ProfileError("is not a gzip'ed memory profile")
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(profile, most)
    except zlib.error as error:
        raise ProfileError(f"cannot be unpacked: {error}") from None
    if not unpacker.eof:
        raise ProfileError("is cut short or too large")
    return data, unpacker.unused_data


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


def _first_two(data: bytes, at: int, end: int) -> tuple[int, ...]:
    first, at = _varint(data, at, end)
    return (first, _varint(data, at, end)[0]) if at < end else (first,)


def packed_varint(value: int) -> bytes:
    """An int64 as protobuf writes it."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _signed(value: int) -> int:
    """An int64 that was sent as an unsigned varint."""
    return struct.unpack("<q", struct.pack("<Q", value & 0xFFFFFFFFFFFFFFFF))[0]  # type: ignore[no-any-return]
