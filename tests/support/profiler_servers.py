"""Profiler services that do as they are told.

`python profiler_servers.py MIB PORT` is one in a process of its own, whose traces have that size.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import grpc

SERVICE = "tensorflow.ProfilerService"
MIB = 1 << 20


def varint(value: int) -> bytes:
    data = b""
    while value > 0x7F:
        data, value = data + bytes((value & 0x7F | 0x80,)), value >> 7
    return data + bytes((value,))


def field(number: int, value: bytes | int) -> bytes:
    """A field of a message: a number, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(data: bytes) -> dict[int, Any]:
    """The fields of a message: the last of each number."""
    found: dict[int, Any] = {}
    at = 0
    while at < len(data):
        tag, at = _read(data, at)
        value, at = _read(data, at)
        if tag & 7 == 2:
            found[tag >> 3], at = data[at : at + value], at + value
            if at > len(data):
                raise ValueError("cut short")
        elif tag & 7 == 0:
            found[tag >> 3] = value
        else:
            raise ValueError("not a field that is in use here")
    return found


def _read(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, at, shift = value | (byte & 0x7F) << shift, at + 1, shift + 7
        if byte < 0x80:
            return value, at


class ProfileCall(NamedTuple):
    """What a server was asked."""

    duration_ms: int
    repository: str
    session: str
    host_tracer_level: int
    python_tracer_level: int
    emits_xspace: bool
    at_s: float


Answer = Callable[[ProfileCall, Any], bytes]
"""From the call and gRPC's context."""


def trace_of(size: int) -> bytes:
    """An answer with a trace of so many bytes, none of which mean anything."""
    return field(8, b"t" * size)


class ProfilerServer:
    """A profiler service on a free port, strict about what it is asked, which it keeps in `calls`.

    `is_old`: as before jaxlib 0.9. `shares`: other processes may listen on the port as well.
    """

    def __init__(
        self,
        answer: Answer | None = None,
        is_old: bool = False,
        address: str = "127.0.0.1:0",
        shares: bool = False,
    ) -> None:
        self.calls: list[ProfileCall] = []
        self._answer = answer or (lambda call, context: trace_of(1000))
        self._end = threading.Event()
        self.methods: list[str] = []
        """Each call that a handler of ours got: Profile, if we are not told to do harm."""
        handlers = {"Monitor": self._refuse, "Profile": self._profile}
        if not is_old:
            handlers["GetSnapshot"] = self._refuse
        self._server = grpc.server(
            ThreadPoolExecutor(8),
            options=[("grpc.so_reuseport", shares), ("grpc.max_send_message_length", -1)],
        )
        self._server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(
                    SERVICE,
                    {
                        name: grpc.unary_unary_rpc_method_handler(
                            handler, request_deserializer=fields
                        )
                        for name, handler in handlers.items()
                    },
                ),
            )
        )
        self.port = self._server.add_insecure_port(address)
        self._server.start()

    def stop(self) -> None:
        self._end.set()
        self._server.stop(None).wait()

    def wait(self, seconds: float) -> None:
        """Until then, or until the server ends."""
        self._end.wait(seconds)

    def _refuse(self, request: Any, context: Any) -> bytes:
        self.methods.append("another")
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "unimplemented.")
        raise AssertionError

    def _profile(self, request: dict[int, Any], context: Any) -> bytes:
        import time

        self.methods.append("Profile")
        options = fields(request[4])
        call = ProfileCall(
            duration_ms=request[1],
            repository=request[5].decode(),
            session=request[6].decode(),
            host_tracer_level=options[2],
            python_tracer_level=options[4],
            emits_xspace=bool(request[9]),
            at_s=time.monotonic(),
        )
        assert options[9] == call.duration_ms
        self.calls.append(call)
        self._end.wait(call.duration_ms / 1000)
        return self._answer(call, context)


@contextmanager
def profiling(answer: Answer | None = None, **how: Any) -> Iterator[ProfilerServer]:
    """A ProfilerServer for as long as it is needed."""
    server = ProfilerServer(answer, **how)
    try:
        yield server
    finally:
        server.stop()


class OtherServer(NamedTuple):
    """A server in a process of its own."""

    port: int
    pid: int


@contextmanager
def large_traces(mib: int, port: int = 0) -> Iterator[OtherServer]:
    """A server whose traces have that size. It shares a port that is given."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(mib), str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield OtherServer(int(process.stdout.readline()), process.pid)
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":
    size, place = int(sys.argv[1]) * MIB, f"127.0.0.1:{sys.argv[2]}"
    server = ProfilerServer(lambda call, context: trace_of(size), address=place, shares=True)
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    sys.stdin.read()
