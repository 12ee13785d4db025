"""gRPC calls over a plain socket, for use inside a training process: no thread, no fork handler, no
library that a forked child could hang in.

Only what a call without streams to a server of this machine needs of HTTP/2. Headers of the
answers are not read: a call that brings a message has succeeded.
"""

from __future__ import annotations

import enum
import socket
import struct
import time
from typing import Any

from tpusmi.sources.libtpu.channel import RECEIVE_MOST_BYTES

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS, PADDED = 0x1, 0x1, 0x4, 0x8
WINDOW_SETTING, PUSH_SETTING, CANCEL = 4, 2, 8
FRAME_MOST_BYTES = 16384
"""No server sends more without being allowed to: more is not HTTP/2."""

_FRAME = struct.Struct(">BHBBI")
_MESSAGE = struct.Struct(">BI")


class Code(enum.Enum):
    """How a call ended, by gRPC's names."""

    OK = 0
    UNKNOWN = 2
    DEADLINE_EXCEEDED = 4
    UNAVAILABLE = 14


class PlainChannel:
    """The same as Channel, to a target of this machine."""

    def __init__(self, target: str) -> None:
        family, _, address = target.partition(":")
        host, _, port = address.rpartition(":")
        version = socket.AF_INET6 if family == "ipv6" else socket.AF_INET
        self._host = host
        self._calls: dict[int, PlainCall] = {}
        self._next_stream = 1
        self._received = b""
        self.failure: str | None = None
        """Why nothing more can be asked on this connection."""
        self._socket = socket.socket(version)
        try:
            self._socket.settimeout(0.5)
            self._socket.connect((host.strip("[]"), int(port)))
            settings = struct.pack(">HIHI", PUSH_SETTING, 0, WINDOW_SETTING, RECEIVE_MOST_BYTES)
            window = struct.pack(">I", RECEIVE_MOST_BYTES)
            self._socket.sendall(PREFACE + _frame(SETTINGS, 0, 0, settings))
            self._socket.sendall(_frame(WINDOW_UPDATE, 0, 0, window))
        except OSError as error:
            self._fail(str(error))

    def call(self, method: str, request: Any, timeout_s: float) -> PlainCall:
        """Send the request. The call waits for its answer when it is asked how it ended."""
        call = PlainCall(self, time.monotonic() + timeout_s)
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        self._calls[stream] = call
        body = request.SerializeToString()
        self._send(
            _frame(HEADERS, END_HEADERS, stream, _headers(method, self._host))
            + _frame(DATA, END_STREAM, stream, _MESSAGE.pack(0, len(body)) + body)
        )
        return call

    def close(self) -> None:
        """Give up every call and the connection."""
        self._fail("closed")

    def wait_for(self, call: PlainCall) -> None:
        """Read until the call has ended; its deadline, or a broken connection, ends it too."""
        while call.ended is None:
            if self.failure is not None:
                call.end(Code.UNAVAILABLE, self.failure)
                return
            left_s = call.until_s - time.monotonic()
            if left_s <= 0:
                self._give_up(call)
                return
            self._read(left_s)

    def _give_up(self, call: PlainCall) -> None:
        call.end(Code.DEADLINE_EXCEEDED, "")
        for stream, known in list(self._calls.items()):
            if known is call:
                del self._calls[stream]
                self._send(_frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))

    def _read(self, limit_s: float) -> None:
        """Wait for some bytes, and take the frames that are whole."""
        try:
            self._socket.settimeout(limit_s)
            chunk = self._socket.recv(65536)
        except TimeoutError:
            return
        except OSError as error:
            self._fail(str(error))
            return
        if not chunk:
            self._fail("the server has closed the connection")
            return
        self._received += chunk
        while self.failure is None and len(self._received) >= _FRAME.size:
            high, low, kind, flags, stream = _FRAME.unpack_from(self._received)
            end = _FRAME.size + (high << 16 | low)
            if end > _FRAME.size + FRAME_MOST_BYTES:
                self._fail("http1" if self._received.startswith(b"HTTP/") else "not HTTP/2")
            elif end > len(self._received):
                return
            else:
                payload = self._received[_FRAME.size : end]
                self._received = self._received[end:]
                self._take(kind, flags, stream & 0x7FFFFFFF, payload)

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == DATA and payload:
            self._send(_frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload))))
        if kind in (SETTINGS, PING) and not flags & ACK:
            self._send(_frame(kind, ACK, 0, payload if kind == PING else b""))
        if kind == GOAWAY:
            self._fail("the server goes away")
        call = self._calls.get(stream)
        if call is None:
            return
        if kind == DATA:
            call.body += payload[1 : len(payload) - payload[0]] if flags & PADDED else payload
        is_over = kind in (DATA, HEADERS) and flags & END_STREAM
        if is_over or kind == RST_STREAM or len(call.body) > RECEIVE_MOST_BYTES:
            del self._calls[stream]
            call.answer()

    def _send(self, data: bytes) -> None:
        if self.failure is None:
            try:
                self._socket.sendall(data)
            except OSError as error:
                self._fail(str(error))

    def _fail(self, why: str) -> None:
        self.failure = self.failure or why
        self._socket.close()


class PlainCall:
    """A call under way, asked like one of grpc's futures."""

    def __init__(self, channel: PlainChannel, until_s: float) -> None:
        self.until_s = until_s
        self.body = b""
        self.ended: Code | None = None
        self._channel = channel
        self._details = ""

    def code(self) -> Code:
        """How it ended. Waits for that, until its deadline."""
        self._channel.wait_for(self)
        return self.ended or Code.UNKNOWN

    def details(self) -> str:
        """Why it failed; empty when nobody said."""
        return self._details

    def result(self) -> bytes:
        """The message that it brought."""
        return self.body[_MESSAGE.size :]

    def end(self, code: Code, details: str) -> None:
        """It has ended, in this way."""
        self.ended, self._details = code, details

    def answer(self) -> None:
        """The server has said all: one message, not compressed, or it has failed."""
        whole = len(self.body) >= _MESSAGE.size
        is_packed, size = _MESSAGE.unpack_from(self.body) if whole else (1, 0)
        is_ok = not is_packed and len(self.body) == _MESSAGE.size + size
        self.end(Code.OK if is_ok else Code.UNKNOWN, "")


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    size = len(payload)
    return _FRAME.pack(size >> 16, size & 0xFFFF, kind, flags, stream) + payload


def _headers(method: str, host: str) -> bytes:
    """A header block of literals, which need no table."""
    pairs = (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", method),
        (":authority", host),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    )
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in pairs)


def _text(text: str) -> bytes:
    data = text.encode("ascii")
    assert len(data) < 127  # longer lengths take more bytes, and ours are shorter
    return bytes((len(data),)) + data
