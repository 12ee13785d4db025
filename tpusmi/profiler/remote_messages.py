"""The request of a capture as bytes, and the trace cut out of the answer while it arrives.

The answer can be as long as the trace: its bytes go to a file as they come, and nothing of the
trace is decoded. Trusts none of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from tpusmi.pprof import packed_varint
from tpusmi.profiler.requests import CaptureRequest

SERVICE = "/tensorflow.ProfilerService/"
PROFILE, MONITOR, GET_SNAPSHOT = SERVICE + "Profile", SERVICE + "Monitor", SERVICE + "GetSnapshot"
MALFORMED = b"\x0b"
"""A group that does not end: a server that has the method answers INTERNAL, and does nothing."""

FIELDS_MOST = 4096
"""Fields of the outer message: there are two, and ten for each tool of an old server."""
ENVELOPE_MOST = 1 << 16
"""How much longer an answer may be than its trace."""
FIELD_HEADER_MOST = 20
"""Bytes of two varints: the number of a field, and its length."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_EMPTY_TRACE, _XSPACE = 7, 8
_PREFIX = struct.Struct(">BI")
"""In front of each message of gRPC: whether it is compressed, and its size."""
_OPTIONS_VERSION = 1
_DEVICE_TRACER_LEVEL = 1


class AnswerError(Exception):
    """The answer is not one: `str()` says what it does, to follow the address."""


def profile_request(
    request: CaptureRequest, session: str, repository: str, host_tracer_level: int
) -> bytes:
    """A ProfileRequest that asks for the trace in the answer.

    Servers before jaxlib 0.7 write it to `repository` instead, on their own host: without one
    into the working directory of the job.
    """
    options = (
        _number(2, host_tracer_level)
        + _number(3, _DEVICE_TRACER_LEVEL)
        + _number(4, request.python_tracer_level)
        + _number(5, _OPTIONS_VERSION)
        + _number(7, 1)  # with the programs: xprof finds in them the work of each operation
        + _number(9, request.duration_ms)
    )
    return (
        _number(1, request.duration_ms)
        + _bytes(4, options)
        + _bytes(5, repository.encode())
        + _bytes(6, session.encode())
        + _bytes(7, session.encode())
        + _number(9, 1)
    )


class TraceCutter:
    """Takes a ProfileResponse in pieces and hands on the bytes of its trace."""

    def __init__(self, claim: Callable[[int], None], write: Callable[[memoryview], object]) -> None:
        """`claim` is called with the size of the answer before its first byte is written, and may
        raise what it likes.
        """
        self.size: int | None = None
        """Size of the answer, as announced; None until then."""
        self.trace_bytes = 0
        self.is_empty = False
        """The server says that nothing happened during the capture."""
        self._claim = claim
        self._write = write
        self._pending = bytearray()
        self._unread = 0
        """Bytes of the answer that have not been taken yet."""
        self._field_left = 0
        self._is_trace = False
        self._fields_left = FIELDS_MOST

    def take(self, piece: bytes) -> None:
        """The next bytes. Raises AnswerError."""
        view = memoryview(piece)
        while view:
            if self._field_left:
                view = self._take_field(view)
            else:
                self._pending.append(view[0])
                view = view[1:]
                self._take_header()

    def finish(self) -> None:
        """Raises AnswerError when the answer is not whole."""
        if self.size is None or self._unread or self._field_left or self._pending:
            raise AnswerError("ends its answer in the middle")

    def _take_field(self, view: memoryview) -> memoryview:
        part = view[: self._field_left]
        self._field_left -= len(part)
        self._unread -= len(part)
        if self._is_trace:
            self._write(part)
            self.trace_bytes += len(part)
        return view[len(part) :]

    def _take_header(self) -> None:
        if self.size is None:
            if len(self._pending) == _PREFIX.size:
                self._begin()
            return
        self._unread -= 1
        if self._unread < 0:
            raise AnswerError("sends more than it announces")
        field = _field(self._pending)
        if field is None:
            if len(self._pending) > FIELD_HEADER_MOST:
                raise AnswerError("sends an answer that makes no sense")
            return
        self._pending.clear()
        self._fields_left -= 1
        if self._fields_left < 0:
            raise AnswerError("sends an answer with too many fields")
        self._begin_field(*field)

    def _begin(self) -> None:
        is_compressed, size = _PREFIX.unpack(self._pending)
        self._pending.clear()
        if is_compressed:
            raise AnswerError("sends a compressed answer, which it was not asked for")
        self._claim(size)
        self.size = self._unread = size

    def _begin_field(self, number: int, kind: int, value: int) -> None:
        if kind == _VARINT:
            self.is_empty = bool(value) if number == _EMPTY_TRACE else self.is_empty
            return
        if value > self._unread:
            raise AnswerError("sends an answer that makes no sense")
        self._field_left = value
        self._is_trace = number == _XSPACE and kind == _LENGTH


def _field(data: bytearray) -> tuple[int, int, int] | None:
    """Number and kind of a field, and its value or length; None when the bytes end before it.

    Raises AnswerError.
    """
    tag, at = _read_varint(data, 0)
    if tag is None:
        return None
    number, kind = tag >> 3, tag & 7
    sizes = {_FIXED64: 8, _FIXED32: 4}
    if kind in sizes and number:
        return number, kind, sizes[kind]
    if kind not in (_VARINT, _LENGTH) or not number:
        raise AnswerError("sends an answer that makes no sense")
    value, _ = _read_varint(data, at)
    return None if value is None else (number, kind, value)


def _read_varint(data: bytearray, at: int) -> tuple[int | None, int]:
    value = 0
    for place, byte in enumerate(data[at:]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    return None, at


def _number(field: int, value: int) -> bytes:
    return packed_varint(field << 3 | _VARINT) + packed_varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return packed_varint(field << 3 | _LENGTH) + packed_varint(len(value)) + value
