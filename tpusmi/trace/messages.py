"""Protobuf messages as bytes: their fields, one by one. Trusts no tag and no length."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator, Sequence

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types. The two others are groups, which these messages do not have."""
NUMBER_BITS = (1 << 64) - 1


class NotATraceError(Exception):
    """Bytes that are not a profiler trace, with the reason as the rest of a sentence."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at that byte, and the position behind it. Raises NotATraceError."""
    value = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & NUMBER_BITS, at
            shift += 7
            if shift > 63:
                raise NotATraceError("it has a number that is too long")
    except IndexError:
        raise NotATraceError("it ends inside a number") from None


def numbers(packed: Sequence[bytes]) -> array[int]:
    """The values of many varints, each given as its bytes; no bytes are 0.

    All of them are one long integer, so that a few steps join the 7-bit groups of all at once.
    """
    joined = b"".join([one.ljust(8, b"\0") for one in packed])
    count = len(packed)
    if len(joined) != 8 * count:  # one has more than 56 bits
        return array("Q", [varint(one, 0)[0] if one else 0 for one in packed])
    value = int.from_bytes(joined, "little") & _mask(0x7F7F7F7F7F7F7F7F, count)
    low, high = _mask(0x007F007F007F007F, count), _mask(0x7F007F007F007F00, count)
    value = (value & low) | (value & high) >> 1
    low, high = _mask(0x00003FFF00003FFF, count), _mask(0x3FFF00003FFF0000, count)
    value = (value & low) | (value & high) >> 2
    low, high = _mask(0x000000000FFFFFFF, count), _mask(0x0FFFFFFF00000000, count)
    value = (value & low) | (value & high) >> 4
    values = array("Q", value.to_bytes(8 * count, "little"))
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _mask(pattern: int, count: int) -> int:
    return int.from_bytes(pattern.to_bytes(8, "little") * count, "little")


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """The fields of a message: number, wire type, value. A fixed-width value is its bytes.

    Raises NotATraceError when a field is longer than the message, or of no known type.
    """
    at, end = 0, len(data)
    while at < end:
        tag = data[at]
        at += 1
        if tag > 0x7F:
            tag, at = varint(data, at - 1)
        kind = tag & 7
        if kind == VARINT:
            value, at = varint(data, at)
            yield tag >> 3, kind, value
            continue
        size, at = (length(kind), at) if kind != BYTES else varint(data, at)
        if at + size > end:
            raise NotATraceError("it has a field that is longer than its message")
        yield tag >> 3, kind, data[at : at + size]
        at += size


def length(kind: int) -> int:
    """Bytes of a value of that wire type, which has a fixed width. Raises NotATraceError."""
    if kind == FIXED64:
        return 8
    if kind == FIXED32:
        return 4
    raise NotATraceError("it has a field of an unknown type")


def signed(value: int) -> int:
    """An int64 that was sent as an unsigned number."""
    return value - (1 << 64) if value >> 63 else value


def double(packed: bytes) -> float:
    """A double of eight bytes."""
    return struct.unpack("<d", packed)[0]  # type: ignore[no-any-return]


def text(packed: int | bytes, most: int = 4096) -> str:
    """A string field, up to `most` bytes of it; empty when it is not a string."""
    return packed[:most].decode("utf-8", "replace") if isinstance(packed, bytes) else ""
