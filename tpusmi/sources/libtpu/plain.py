"""gRPC calls over a plain socket: no thread, no fork handler, no library that a forked child could
hang in, and no more work than was allowed for, whatever a server sends.

It speaks as much HTTP/2 as a call without streams to a server of this machine needs. grpc itself
has no such limit: a server that floods it takes seconds of CPU time and hundreds of megabytes.
"""

from __future__ import annotations

import struct
import time

# The C half of `socket`, which itself imports half as much as bare Python does.
from _socket import AF_INET, AF_INET6, IPPROTO_TCP, MSG_NOSIGNAL, TCP_NODELAY, socket
from typing import Any

from tpusmi.sources.libtpu.grpc_status import ENDLESS, HTTP1, Code, status_in

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS, PADDED = 0x1, 0x1, 0x4, 0x8
TABLE_SETTING, PUSH_SETTING, WINDOW_SETTING, CANCEL = 1, 2, 4, 8
RECEIVE_MOST_BYTES = 1 << 19
"""The largest message. Real ones, the buckets of 256 devices, need at most a fifth. Decoded, it may
take a hundred times as much.
"""
ROUND_MOST_BYTES = 4 << 20
"""The most that a server may send to all calls that are under way together."""
FRAMES_MOST = 512
"""The most frames for each call under way: real servers send about five."""
FRAME_MOST_BYTES = 16384
"""The largest frame that HTTP/2 allows unless told otherwise: a larger one is not HTTP/2."""
CONNECT_S = 0.5
LATE_S = 0.5
"""A process that comes later to its own deadline stood still, or had no processor, and so perhaps
had the server.
"""
CHUNK_BYTES = 65536

_TEXT_MOST = 127 + 127
"""The name of a host has at most 253 characters. Longer lengths take more bytes."""
_FRAME = struct.Struct(">BHBBI")
_MESSAGE = struct.Struct(">BI")


class PlainChannel:
    """A channel to one target of this machine; its calls fail at their deadline."""

    def __init__(self, target: str) -> None:
        family, _, address = target.partition(":")
        host, _, port = address.rpartition(":")
        self._host = host
        self._calls: dict[int, PlainCall] = {}
        self._next_stream = 1
        self._received = bytearray()
        self._frames_left = self._bytes_left = 0
        self.failure: str | None = None
        """Why this connection cannot be used; None while it works."""
        self.was_late = False
        """True when this process itself came late to a deadline."""
        # Sent with the first calls: a server that does not speak HTTP/2 then answers, and does not
        # reset the connection.
        self._unsent = _hello()
        self._socket = socket(AF_INET6 if family == "ipv6" else AF_INET)
        try:
            # Otherwise the second of several requests waits 40 ms for the server's delayed ACK.
            self._socket.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            self._socket.settimeout(CONNECT_S)
            self._socket.connect((host.strip("[]"), int(port)))
        except OSError as error:
            self._fail(str(error))

    def call(self, method: str, request: Any, timeout_s: float) -> PlainCall:
        """Make a call. It is sent, with all others made before, when one is asked how it ended;
        that waits for the answer.
        """
        if not self._calls:
            self._frames_left, self._bytes_left = 0, ROUND_MOST_BYTES
        self._frames_left += FRAMES_MOST
        call = PlainCall(self, time.monotonic() + timeout_s)
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        self._calls[stream] = call
        body = request.SerializeToString()
        self._unsent += frame(HEADERS, END_HEADERS, stream, headers(method, self._host))
        self._unsent += frame(DATA, END_STREAM, stream, _MESSAGE.pack(0, len(body)) + body)
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
            if self._unsent:
                self._send(b"")
            self._read(left_s)

    def _give_up(self, call: PlainCall) -> None:
        self.was_late = self.was_late or time.monotonic() > call.until_s + LATE_S
        call.end(Code.DEADLINE_EXCEEDED, "")
        for stream, other in list(self._calls.items()):
            if other is call:
                del self._calls[stream]
                self._cancel(stream)

    def _read(self, limit_s: float) -> None:
        """Wait for some bytes, and take the frames that are whole."""
        try:
            self._socket.settimeout(limit_s)
            chunk = self._socket.recv(CHUNK_BYTES)
        except TimeoutError:
            return
        except OSError as error:
            self._fail(str(error))
            return
        if not chunk:
            self._fail("the server has closed the connection")
            return
        self._bytes_left -= len(chunk)
        if self._bytes_left < 0:
            self._fail(ENDLESS)
        self._received += chunk
        at = 0
        while self.failure is None and (end := self._end_of_frame(at)) is not None:
            _, _, kind, flags, stream = _FRAME.unpack_from(self._received, at)
            self._take(
                kind, flags, stream & 0x7FFFFFFF, bytes(self._received[at + _FRAME.size : end])
            )
            at = end
        del self._received[:at]

    def _end_of_frame(self, at: int) -> int | None:
        """Where the frame that begins there ends; None when it is not whole, or not a frame."""
        if len(self._received) - at < _FRAME.size:
            return None
        high, low, *_ = _FRAME.unpack_from(self._received, at)
        size = high << 16 | low
        if size > FRAME_MOST_BYTES:
            is_http = self._received.startswith(b"HTTP/", at)
            self._fail(HTTP1 if is_http else "not HTTP/2")
            return None
        end = at + _FRAME.size + size
        return end if end <= len(self._received) else None

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        self._frames_left -= 1
        if self._frames_left < 0:
            self._fail(ENDLESS)
            return
        if kind == DATA and payload:
            self._send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload))))
        if kind in (SETTINGS, PING) and not flags & ACK:
            self._send(frame(kind, ACK, 0, payload if kind == PING else b""))
        if kind == GOAWAY:
            self._fail("the server goes away")
        call = self._calls.get(stream)
        if call is not None and call.take(kind, flags, payload):
            del self._calls[stream]
            if call.ended == Code.RESOURCE_EXHAUSTED:
                self._cancel(stream)

    def _cancel(self, stream: int) -> None:
        self._send(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))

    def _send(self, data: bytes) -> None:
        data, self._unsent = self._unsent + data, b""
        if self.failure is None:
            try:
                self._socket.sendall(data, MSG_NOSIGNAL)  # SIGPIPE would end a job that takes it
            except (BrokenPipeError, ConnectionResetError):
                pass  # its earlier frames tell why
            except OSError as error:
                self._fail(str(error))

    def _fail(self, why: str) -> None:
        self.failure = self.failure or why
        self._socket.close()


class PlainCall:
    """A call under way, asked like one of grpc's futures."""

    def __init__(self, channel: PlainChannel, until_s: float) -> None:
        self.until_s = until_s
        self.ended: Code | None = None
        self._body = bytearray()
        self._channel = channel
        self._details = ""
        self._status: int | None = None

    def code(self) -> Code:
        """How it ended. Waits for that, until its deadline."""
        self._channel.wait_for(self)
        return self.ended or Code.UNKNOWN

    def details(self) -> str:
        """Why it failed; empty when the server gave no reason."""
        return self._details

    def result(self) -> bytes:
        """The message that it brought."""
        return bytes(self._body[_MESSAGE.size :])

    def end(self, code: Code, details: str) -> None:
        """It has ended, in this way."""
        self.ended, self._details = code, details
        if code != Code.OK:
            self._body.clear()

    def take(self, kind: int, flags: int, payload: bytes) -> bool:
        """A frame of the answer; True when it is the last."""
        if kind not in (DATA, HEADERS, RST_STREAM):
            return False
        if kind != RST_STREAM and flags & PADDED:
            payload = payload[1 : len(payload) - payload[0]] if payload else b""
        if kind == DATA:
            self._body += payload
        elif kind == HEADERS:
            status, self._details = status_in(payload)
            self._status = self._status if status is None else status
        if self._is_too_large():
            self.end(Code.RESOURCE_EXHAUSTED, "")
        elif kind == RST_STREAM or flags & END_STREAM:
            self._answer()
        return self.ended is not None

    def _is_too_large(self) -> bool:
        """True as soon as its announced size is too large."""
        if len(self._body) < _MESSAGE.size:
            return False
        _, size = _MESSAGE.unpack_from(self._body)
        return int(size) > RECEIVE_MOST_BYTES or len(self._body) > RECEIVE_MOST_BYTES

    def _answer(self) -> None:
        """The server has finished: it sent one message, not compressed, or it has failed."""
        whole = len(self._body) >= _MESSAGE.size
        is_compressed, size = _MESSAGE.unpack_from(self._body) if whole else (1, 0)
        is_ok = not is_compressed and len(self._body) == _MESSAGE.size + size
        if self._status in (None, 0):
            self.end(Code.OK if is_ok else Code.UNKNOWN, self._details)
        else:
            is_known = self._status in Code._value2member_map_
            self.end(Code(self._status) if is_known else Code.UNKNOWN, self._details)


def _hello() -> bytes:
    """The first frames. Without a table, an answer spells out every header where it is used."""
    settings = (TABLE_SETTING, 0, PUSH_SETTING, 0, WINDOW_SETTING, RECEIVE_MOST_BYTES)
    window = frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", RECEIVE_MOST_BYTES))
    return PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HIHIHI", *settings)) + window


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A frame of HTTP/2."""
    size = len(payload)
    return _FRAME.pack(size >> 16, size & 0xFFFF, kind, flags, stream) + payload


def headers(method: str, host: str) -> bytes:
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
    data = text.encode("ascii")[:_TEXT_MOST]
    size = len(data)
    return (bytes((size,)) if size < 127 else bytes((127, size - 127))) + data
