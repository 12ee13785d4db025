"""How a gRPC call ended, read from a block of HTTP/2 headers. Pure; not a byte of it is trusted.

Of HPACK only what a server writes that was told to use no table; what is packed otherwise is not
told.
"""

from __future__ import annotations

from collections.abc import Iterator

STATUS, MESSAGE = b"grpc-status", b"grpc-message"
UNIMPLEMENTED = 12
NOT_FOUND = 13
"""The place of `:status: 404` in the table that every HTTP/2 has."""
MESSAGE_MOST = 200


def status_in(block: bytes) -> tuple[int | None, str]:
    """The number of gRPC's status, and its message; None and empty where they are not told."""
    status, message = None, ""
    try:
        for name, value in _headers(block):
            if name == STATUS and value.isdigit() and len(value) < 3:
                status = int(value)
            elif name == MESSAGE:
                message = value[:MESSAGE_MOST].decode("utf-8", "replace")
            elif name == NOT_FOUND:
                status = UNIMPLEMENTED
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
    """A text; empty when it is packed."""
    is_packed = block[at] & 0x80
    size, at = _integer(block, at, 0x7F)
    if at + size > len(block):
        raise IndexError
    return b"" if is_packed else block[at : at + size], at + size


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
