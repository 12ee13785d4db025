"""Servers in this process that answer a GET in every way that an exporter, or a stranger, may."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from support.waits import until

BOOT = "11111111-2222-3333-4444-555555555555"
Talk = Callable[[socket.socket, bytes], object]
"""Gets the connection and what was asked."""


class Listening:
    """A server that answers each connection on a thread of its own."""

    def __init__(self, talk: Talk, address: str, port: int, context: ssl.SSLContext | None) -> None:
        self.talk = talk
        self.asked: list[bytes] = []
        """The heads of all requests."""
        self._context = context
        self._ended = threading.Event()
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listening = socket.create_server((address, port), family=family, backlog=256)
        self.address, self.port = self._listening.getsockname()[:2]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._open: set[socket.socket] = set()
        self._threads[0].start()

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"

    @property
    def is_ended(self) -> bool:
        return self._ended.is_set()

    def pause(self, seconds: float) -> None:
        """Wait, but not longer than the server lasts."""
        self._ended.wait(seconds)

    def close(self) -> None:
        self._ended.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._threads[0].join(60)
        for connected in [*self._open]:  # a client may have a long time for its answer
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _accept(self) -> None:
        while True:
            try:
                connected, _ = self._listening.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._answer, args=(connected,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _answer(self, connected: socket.socket) -> None:
        connected.settimeout(5)
        try:
            if self._context is not None:
                connected = self._context.wrap_socket(connected, server_side=True)
            self._open.add(connected)
            if self.is_ended:
                return
            head = b""
            while (
                b"\r\n\r\n" not in head and head[:1] != b"\x16" and (data := connected.recv(65536))
            ):
                head += data
            self.asked.append(head)
            self.talk(connected, head)
        except OSError:
            pass
        finally:
            self._open.discard(connected)
            connected.close()


@contextmanager
def listening(
    talk: Talk,
    address: str = "127.0.0.1",
    port: int = 0,
    context: ssl.SSLContext | None = None,
) -> Iterator[Listening]:
    server = Listening(talk, address, port, context)
    try:
        yield server
    finally:
        server.close()


def answer(
    body: bytes | str, status: str = "200 OK", kind: str = "text/plain; version=0.0.4", **more: str
) -> bytes:
    """A whole answer."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", f"Content-Type: {kind}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
    return "\r\n".join((*lines, "", "")).encode() + data


def says(data: bytes | Callable[[], bytes]) -> Talk:
    """Answers each request with the same bytes, or with what a function gives."""
    return lambda connected, _: connected.sendall(data() if callable(data) else data)


def zipped(text: str) -> bytes:
    return answer(gzip.compress(text.encode()), Content_Encoding="gzip")


def hangs(connected: socket.socket, _: bytes) -> None:
    """Says nothing until the client has had enough."""
    connected.settimeout(30)
    connected.recv(1)


def trickles(data: bytes, every_s: float = 0.05) -> Talk:
    """Sends one byte at a time."""

    def talk(connected: socket.socket, _: bytes) -> None:
        for number in range(len(data)):
            connected.sendall(data[number : number + 1])
            time.sleep(every_s)

    return talk


def exposition(
    host: str = "worker-0",
    at_s: float | None = None,
    labels: Mapping[str, str] | None = None,
    **values: float,
) -> str:
    """The text of a host with one chip and one device."""
    more = {"host": host, **(labels or {})}
    text = "".join(f',{name}="{value}"' for name, value in more.items())
    of_device = f'{{chip="0",device="0"{text}}}'
    lines = [
        f"# HELP tpusmi_{name} A number.\ntpusmi_{name}{of_device} {value}"
        for name, value in values.items()
    ]
    at = time.time() if at_s is None else at_s
    return "\n".join(
        (
            f'tpusmi_host_info{{kernel="6.1"{text}}} 1.0',
            f'tpusmi_chip_info{{chip="0",kind="TPU v5e"{text}}} 1.0',
            f'tpusmi_device_info{{chip="0",device="0",kind="TPU v5e"{text}}} 1.0',
            *lines,
            f"tpusmi_snapshot_timestamp_seconds{{{text[1:]}}} {at:.6f}",
            "",
        )
    )


def wait_for(condition: Callable[[], object], what: str) -> None:
    until(condition, 40.0, what)
