"""How a gRPC call ended: its status code, read from a block of HTTP/2 headers, and the reason in
words. Pure; the headers are not trusted.

Of HPACK, only what a server writes that was told to use no table: anything compressed reads as
empty.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from tpusmi.text import clean


class Code(enum.Enum):
    """How a call ended, by gRPC's names and numbers."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


ENDLESS, HTTP1 = "more than is allowed for", "HTTP/1"
"""Why a connection was given up, besides the kernel's reasons."""
NOT_THE_SERVICE = "is not libtpu's metrics service"
MESSAGE_MOST = 200
_STATUS, _MESSAGE = b"grpc-status", b"grpc-message"
_NOT_FOUND = 13
"""The place of `:status: 404` in the table that every HTTP/2 has."""


def reason(code: Code, details: str) -> str:
    """Why a call failed, to follow "port 8431"."""
    if code == Code.UNAVAILABLE:
        reasons = {HTTP1: "answers HTTP/1, not gRPC", ENDLESS: "sends without end"}
        return reasons.get(details, "accepts connections but does not speak gRPC")
    if code == Code.DEADLINE_EXCEEDED:
        return "accepts connections but does not respond"
    if code == Code.UNIMPLEMENTED:
        return NOT_THE_SERVICE
    if code == Code.RESOURCE_EXHAUSTED:
        return "sends a response that is too large"
    return f"answers {code.name}: {clean(details, 120)}".rstrip(": ")


def status_in(block: bytes) -> tuple[int | None, str]:
    """The number of gRPC's status, and its message; None and empty where the block has none."""
    status, message = None, ""
    try:
        for name, value in _headers(block):
            if name == _STATUS and value.isdigit() and len(value) < 3:
                status = int(value)
            elif name == _MESSAGE:
                message = value[:MESSAGE_MOST].decode("utf-8", "replace")
            elif name == _NOT_FOUND:
                status = Code.UNIMPLEMENTED.value
    except IndexError:
        pass  # cut short
    return status, message


def _headers(block: bytes) -> Iterator[tuple[bytes | int, bytes]]:
    """Names, or their numbers in the table, and values. Raises IndexError where it is cut short."""
    at = 0
    while at < len(block):
        first = block[at]
        if first & 0x80:
            name, at = _integer(block, at, 0x7F)
            yield name, b""
        elif first & 0xE0 == 0x20:
            _, at = _integer(block, at, 0x1F)  # the size of the table
        else:
            name, at = _integer(block, at, 0x3F if first & 0x40 else 0x0F)
            text, at = (b"", at) if name else _text(block, at)
            value, at = _text(block, at)
            yield name or text, value


def _text(block: bytes, at: int) -> tuple[bytes, int]:
    """A text and where it ends; empty when it is compressed."""
    is_compressed = block[at] & 0x80
    size, at = _integer(block, at, 0x7F)
    if at + size > len(block):
        raise IndexError
    return b"" if is_compressed else block[at : at + size], at + size


def _integer(block: bytes, at: int, most: int) -> tuple[int, int]:
    value = block[at] & most
    at += 1
    if value < most:
        return value, at
    for shift in range(0, 28, 7):
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise IndexError
