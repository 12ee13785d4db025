"""Metrics servers that talk without end, each in a process of its own: its work is not ours.

`python flooding_servers.py KIND` prints its port, and floods whoever connects until stdin ends.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

DATA, HEADERS, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 4, 6, 7, 8, 9


def frame(kind: int, payload: bytes = b"", flags: int = 0, stream: int = 0) -> bytes:
    """An HTTP/2 frame."""
    size = len(payload)
    return struct.pack(">BHBBI", size >> 16, size & 0xFFFF, kind, flags, stream) + payload


START = frame(SETTINGS)
KINDS = {
    "ping": frame(PING, bytes(8)),
    "settings": frame(SETTINGS),
    "empty data": frame(DATA, stream=1),
    "small data": frame(DATA, b"x", stream=1),
    "large data": frame(DATA, b"x" * 16384, stream=1),
    "padded data": frame(DATA, b"\xff" + bytes(255), 0x8, stream=1),
    "headers": frame(HEADERS, b"\x82" * 100, stream=1) + frame(CONTINUATION, bytes(1000), stream=1),
    "window": frame(WINDOW_UPDATE, struct.pack(">I", 1)),
    "unknown": frame(200, b"?" * 10, stream=3),
    "nothing": b"",
}


def flood(client: socket.socket, words: bytes) -> None:
    """Say that again and again, and read nothing."""
    many = words * max(1, 65536 // max(1, len(words)))
    try:
        client.sendall(START)
        while many:
            client.sendall(many)
        client.recv(1 << 30)
        threading.Event().wait()
    except OSError:
        client.close()


def main(kind: str) -> None:
    """The server."""
    server = socket.create_server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0))
    sys.stdout.write(f"{server.getsockname()[1]}\n")
    sys.stdout.flush()
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        client, _ = server.accept()
        threading.Thread(target=flood, args=(client, KINDS[kind]), daemon=True).start()


@contextmanager
def flooding(kind: str) -> Iterator[int]:
    """The port of such a server, for as long as it is wanted."""
    process = subprocess.Popen(
        [sys.executable, __file__, kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":
    main(sys.argv[1])
