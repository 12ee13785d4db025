"""Bytes into messages. Not a byte is trusted."""

from __future__ import annotations

from typing import Any

from tpusmi.protobuf.fields import (
    BYTES,
    FIXED32,
    FIXED64,
    GROUP,
    GROUP_END,
    SCALARS,
    VARINT,
    Field,
    Scalar,
    is_zero,
)

DEPTH_MOST = 100
VALUES_MOST = 1 << 18
"""In one message that was received, at any depth."""


class DecodeError(ValueError):
    """Bytes that are no message of this kind."""


class Decoder:
    """Reads a message, of which not a byte is trusted."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0
        self._left = VALUES_MOST

    def into(self, message: Any, at: int, end: int, depth: int) -> None:
        """Take over the fields in that part of the bytes."""
        self._at = at
        while self._at < end:
            tag = self._number(end)
            wire, number = tag & 7, tag >> 3
            if not 0 < number < 1 << 29:
                raise DecodeError("a field has no number")
            value = self._value(wire, end, number, depth)
            field = message.NUMBERS.get(number)
            if field is not None:
                self._take(message, field, wire, value, depth)

    def _value(self, wire: int, end: int, number: int, depth: int) -> Any:
        """A number, bytes, or where bytes begin and end."""
        self._count()
        if wire == VARINT:
            return self._number(end)
        if wire == BYTES:
            return self._part(self._number(end), end)
        if wire in (FIXED64, FIXED32):
            return self._part(8 if wire == FIXED64 else 4, end)
        if wire == GROUP:
            return self._skip_group(number, end, depth)
        raise DecodeError(f"wire type {wire}")

    def _take(self, message: Any, field: Field, wire: int, value: Any, depth: int) -> None:
        if field.message is not None:
            if wire == BYTES:
                self._take_message(message, field, value, depth)
            return
        scalar = SCALARS[field.kind]
        if wire == scalar.wire:
            raw = value if wire == VARINT else self._raw[slice(*value)]
            self._keep(message, field, [_decoded(scalar, raw)])
        elif field.is_repeated and wire == BYTES:
            self._keep(message, field, self._packed(scalar, *value))

    def _take_message(self, message: Any, field: Field, part: tuple[int, int], depth: int) -> None:
        assert field.message is not None
        if not depth:
            raise DecodeError("nested without end")
        child = None if field.is_repeated else message.__dict__.get(field.name)
        if child is None:
            child = field.message()
            self._keep(message, field, [child])
        self.into(child, *part, depth - 1)
        self._at = part[1]

    def _keep(self, message: Any, field: Field, values: list[Any]) -> None:
        if field.is_repeated:
            kept = getattr(message, field.name)
            list.extend(kept, values)
            kept._be_there()
            return
        if field.has_presence or field.message is not None or not is_zero(values[0]):
            message._put(field, values[0])
        else:
            message.__dict__.pop(field.name, None)

    def _packed(self, scalar: Scalar, at: int, end: int) -> list[Any]:
        raw = self._raw[at:end]
        if scalar.wire == VARINT:
            found = []
            self._at = at
            while self._at < end:
                self._count()
                found.append(scalar.decoded(self._number(end)))
            return found
        size = 8 if scalar.wire == FIXED64 else 4
        if len(raw) % size:
            raise DecodeError("a number is cut off")
        self._count(len(raw) // size)
        return [scalar.decoded(raw[i : i + size]) for i in range(0, len(raw), size)]

    def _number(self, end: int) -> int:
        """A varint."""
        raw, at, value, shift = self._raw, self._at, 0, 0
        while at < end and shift < 70:
            byte = raw[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self._at = at
                return value & (1 << 64) - 1
            shift += 7
        raise DecodeError("a number has no end")

    def _part(self, size: int, end: int) -> tuple[int, int]:
        at = self._at
        if size > end - at:
            raise DecodeError("cut off")
        self._at = at + size
        return at, self._at

    def _skip_group(self, number: int, end: int, depth: int) -> None:
        if not depth:
            raise DecodeError("nested without end")
        while True:
            tag = self._number(end)
            if tag == number << 3 | GROUP_END:
                return
            self._value(tag & 7, end, tag >> 3, depth - 1)

    def _count(self, more: int = 1) -> None:
        self._left -= more
        if self._left < 0:
            raise DecodeError("more values than are read")


def _decoded(scalar: Scalar, raw: Any) -> Any:
    try:
        return scalar.decoded(raw)
    except ValueError as error:  # of text
        raise DecodeError(str(error)) from None
