"""The fields of messages, and how their values become bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 = range(6)
"""How a value stands in the bytes."""


class Field(NamedTuple):
    """A field of a message."""

    name: str
    number: int
    kind: str
    """`int64`, or the name of a message."""
    is_repeated: bool
    has_presence: bool
    """Zero is told from absent."""
    oneof: str | None
    message: Any
    """Its class; None for a scalar."""


class Scalar(NamedTuple):
    """A kind of field that is no message."""

    default: Any
    wire: int
    checked: Callable[[Any], Any]
    """The value as it is kept. Raises TypeError or ValueError."""
    encoded: Callable[[Any], bytes]
    decoded: Callable[[Any], Any]
    """From the number of a varint, or from bytes. Raises ValueError."""


def is_zero(value: Any) -> bool:
    """True for a value that is not written, where zero is not told from absent."""
    return not value and str(value) != "-0.0"


def _whole(bits: int, is_signed: bool) -> Scalar:
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)

    def checked(value: Any) -> int:
        if not isinstance(value, int):
            raise TypeError(f"{value!r} is not a whole number")
        if not least <= value <= most:
            raise ValueError(f"{value} does not fit into {bits} bits")
        return int(value)

    def decoded(number: int) -> int:
        number &= (1 << bits) - 1
        return number - (1 << bits) if number > most else number

    return Scalar(0, VARINT, checked, lambda value: _varint(value & (1 << 64) - 1), decoded)


def _real(form: struct.Struct, wire: int) -> Scalar:
    def checked(value: Any) -> float:
        return float(form.unpack(form.pack(value))[0])

    return Scalar(0.0, wire, checked, form.pack, lambda raw: form.unpack(raw)[0])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


SCALARS = {
    "double": _real(struct.Struct("<d"), FIXED64),
    "float": _real(struct.Struct("<f"), FIXED32),
    "int64": _whole(64, True),
    "uint64": _whole(64, False),
    "int32": _whole(32, True),
    "bool": Scalar(False, VARINT, bool, lambda value: _varint(int(value)), bool),
    "string": Scalar("", BYTES, _text, str.encode, lambda raw: raw.decode()),
    "bytes": Scalar(b"", BYTES, bytes, bytes, bytes),
}


def encoded(number: int, field: Field, value: Any) -> bytes:
    if field.message is not None:
        several = value if field.is_repeated else (value,)
        return b"".join(_sized(number, one.SerializeToString()) for one in several)
    scalar = SCALARS[field.kind]
    if field.is_repeated:
        return _sized(number, b"".join(map(scalar.encoded, value)))
    if scalar.wire == BYTES:
        return _sized(number, scalar.encoded(value))
    return _varint(number << 3 | scalar.wire) + scalar.encoded(value)


def _sized(number: int, raw: bytes) -> bytes:
    return _varint(number << 3 | BYTES) + _varint(len(raw)) + raw


def _varint(value: int) -> bytes:
    low = b""
    while value > 0x7F:
        low += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return low + bytes((value,))
