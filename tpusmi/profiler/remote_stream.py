"""One connection to a server that may be anything: gRPC calls one after the other, whose answers
are handed on while they arrive.

The client of the metrics servers keeps an answer in memory, and is for this machine only. As with
that one, nothing that a server sends takes more work than was allowed for.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

from tpusmi.profiler.remote_addresses import Address
from tpusmi.profiler.remote_connection import Fault, StreamError
from tpusmi.sources.libtpu.grpc_status import status_in
from tpusmi.sources.libtpu.plain import (
    ACK,
    CANCEL,
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_MOST_BYTES,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PUSH_SETTING,
    RST_STREAM,
    SETTINGS,
    TABLE_SETTING,
    WINDOW_SETTING,
    WINDOW_UPDATE,
    frame,
    headers,
)

WINDOW_BYTES = 8 << 20
"""How much a server may send before it hears that we have taken it."""
CREDIT_BYTES = 1 << 20
"""We say so each time that we have taken this much."""
CHUNK_BYTES = 1 << 18
FRAMES_MOST = 2048
"""Frames of one call that bring nothing. Real servers send about ten."""
FRAME_USEFUL_BYTES = 256
"""A frame with this much of an answer does not count as one of these."""

_FRAME = struct.Struct(">BHBBI")
_MESSAGE = struct.Struct(">BI")


class CallEnd(NamedTuple):
    """How a call ended."""

    status: int | None
    """The number of gRPC's status; None when the server did not send one."""
    details: str


class CallStream:
    """HTTP/2 on a connection, as much as one call at a time needs."""

    def __init__(self, connection: socket.socket, address: Address) -> None:
        self._socket = connection
        self._authority = str(address)
        self._next = 1
        self._received = bytearray()
        self._at = 0
        self._frames_left = 0
        self._owed = 0
        self._has_answered = False
        settings = (TABLE_SETTING, 0, PUSH_SETTING, 0, WINDOW_SETTING, WINDOW_BYTES)
        self._unsent = (
            PREFACE
            + frame(SETTINGS, 0, 0, struct.pack(">HIHIHI", *settings))
            + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW_BYTES))
        )

    def call(
        self, method: str, request: bytes, until_s: float, take: Callable[[bytes], object]
    ) -> CallEnd:
        """Make a call and wait for its end. `take` gets the bytes of the answer as they come; what
        it raises cancels the call. Raises StreamError.
        """
        stream, self._next = self._next, self._next + 2
        self._frames_left = FRAMES_MOST
        self._unsent += frame(HEADERS, END_HEADERS, stream, headers(method, self._authority))
        self._send(
            frame(DATA, END_STREAM, stream, _MESSAGE.pack(0, len(request)) + request), until_s
        )
        status, details = None, ""
        while True:
            kind, flags, number, payload = self._frame(until_s)
            if number != stream:
                self._serve(kind, flags, payload, until_s)
                continue
            content = _content(kind, flags, payload)
            if kind == DATA:
                self._frames_left += len(content) >= FRAME_USEFUL_BYTES
                self._credit(stream, len(payload), until_s)
                try:
                    take(content)
                except BaseException:
                    self._cancel(stream)
                    raise
            elif kind == HEADERS:
                new, details = status_in(content)
                status = status if new is None else new
            if kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
                return CallEnd(status, details)

    def close(self) -> None:
        """Let go of the connection. The server notices, and stops a capture that still runs."""
        self._socket.close()

    def stop(self) -> None:
        """End the call that runs in another thread."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended already

    def _serve(self, kind: int, flags: int, payload: bytes, until_s: float) -> None:
        """A frame that is not about the call."""
        if kind in (SETTINGS, PING) and not flags & ACK:
            self._send(frame(kind, ACK, 0, payload if kind == PING else b""), until_s)
        elif kind == GOAWAY and not payload[4:8].rstrip(b"\0"):
            pass  # it ends in an orderly way, after the call
        elif kind == GOAWAY:
            raise StreamError(Fault.CLOSED)

    def _credit(self, stream: int, size: int, until_s: float) -> None:
        self._owed += size
        if self._owed >= CREDIT_BYTES:
            credit = struct.pack(">I", self._owed)
            self._owed = 0
            self._send(
                frame(WINDOW_UPDATE, 0, 0, credit) + frame(WINDOW_UPDATE, 0, stream, credit),
                until_s,
            )

    def _cancel(self, stream: int) -> None:
        try:
            self._send(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)), time.monotonic())
        except StreamError:
            pass  # then the end of the connection cancels it

    def _frame(self, until_s: float) -> tuple[int, int, int, bytes]:
        """Kind, flags, stream and payload of the next frame."""
        self._frames_left -= 1
        if self._frames_left < 0:
            raise StreamError(Fault.ENDLESS)
        self._fill(_FRAME.size, until_s)
        high, low, kind, flags, stream = _FRAME.unpack_from(self._received, self._at)
        size = high << 16 | low
        if size > FRAME_MOST_BYTES or not (self._has_answered or kind == SETTINGS):
            raise StreamError(_foreign(bytes(self._received[self._at :][:16])))
        self._has_answered = True
        self._fill(_FRAME.size + size, until_s)
        begin = self._at + _FRAME.size
        self._at = begin + size
        return kind, flags, stream & 0x7FFFFFFF, bytes(self._received[begin : self._at])

    def _fill(self, size: int, until_s: float) -> None:
        """Read until that many bytes wait to be taken."""
        while len(self._received) - self._at < size:
            del self._received[: self._at]
            self._at = 0
            self._received += self._read(until_s)

    def _read(self, until_s: float) -> bytes:
        left_s = until_s - time.monotonic()
        try:
            if left_s <= 0:
                raise TimeoutError
            self._socket.settimeout(left_s)
            chunk = self._socket.recv(CHUNK_BYTES)
        except TimeoutError:
            raise StreamError(Fault.LATE if self._has_answered else Fault.SILENT) from None
        except OSError as error:
            raise StreamError(Fault.CLOSED, error.strerror or "") from None
        if not chunk:
            beginning = bytes(self._received[self._at :][:16])
            raise StreamError(_foreign(beginning) if beginning else Fault.CLOSED)
        return chunk

    def _send(self, data: bytes, until_s: float) -> None:
        data, self._unsent = self._unsent + data, b""
        try:
            self._socket.settimeout(max(0.001, until_s - time.monotonic()))
            # SIGPIPE would end a command that takes it
            self._socket.sendall(data, socket.MSG_NOSIGNAL)
        except TimeoutError:
            raise StreamError(Fault.LATE) from None
        except (BrokenPipeError, ConnectionResetError):
            pass  # its earlier frames tell why
        except OSError as error:
            raise StreamError(Fault.CLOSED, error.strerror or "") from None


def _content(kind: int, flags: int, payload: bytes) -> bytes:
    """The payload without its padding."""
    if kind in (DATA, HEADERS) and flags & PADDED:
        return payload[1 : max(1, len(payload) - payload[0])] if payload else b""
    return payload


def _foreign(beginning: bytes) -> Fault:
    """The protocol of a server that does not speak HTTP/2."""
    if beginning.startswith(b"HTTP/"):
        return Fault.HTTP1
    # An alert of TLS 1.0 to 1.3: it could not read our greeting.
    return Fault.TLS if beginning.startswith(b"\x15\x03") else Fault.NOT_GRPC
