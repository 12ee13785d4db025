"""Who listens where in our network namespace, and which sockets a process has open.

The kernel is asked by netlink, which walks the listening sockets only: reading /proc/net/tcp walks
a table of all connections, 10 ms on a large host even when it is empty.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

DESCRIPTORS_MOST = 65536
TABLE_MOST_BYTES = 16 << 20
ANSWER_S = 0.2
MESSAGES_MOST = 1024

_SOCK_DIAG, _BY_FAMILY, _REQUEST_DUMP = 4, 20, 0x301
_ERROR, _DONE = 2, 3
_TCP, _LISTEN = 6, 10
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBBI48x")
_PORT, _ADDRESS, _USER = 16 + 4, 16 + 8, 16 + 64
"""Where they stand in an answer, of 88 bytes; the inode comes after the user."""
_ANSWER_BYTES = 88
_NEAR = tuple(
    bytes.fromhex(text)
    for text in (
        "0" * 32,
        "7f000001" + "0" * 24,
        "0" * 31 + "1",
        "0" * 20 + "ffff00000000",
        "0" * 20 + "ffff7f000001",
    )
)
"""Any and loopback addresses: of IPv4 (in 16 bytes, too), of IPv6, and IPv4 written as IPv6."""


class Listener(NamedTuple):
    """A socket that listens, and whose it is by the kernel."""

    inode: int
    uid: int


def listeners() -> dict[int, Listener] | None:
    """The socket that listens on each port where we could reach it; None where nobody tells."""
    try:
        # IPv4 last: where both listen on a port, that is whom we ask.
        return {port: found for family in (10, 2) for port, found in _by_netlink(family)}
    except (OSError, struct.error):
        return _by_tables()


def listening_sockets() -> dict[int, int]:
    """Inodes of those sockets, by port. Empty where nobody tells."""
    return {port: found.inode for port, found in (listeners() or {}).items()}


def open_sockets(fds: str) -> set[int]:
    """Inodes of the sockets in a directory of descriptors; none when we may not know."""
    return visible_sockets(fds) or set()


def visible_sockets(fds: str) -> set[int] | None:
    """The same; None when we may not know."""
    found = set()
    try:
        names = os.listdir(fds)[:DESCRIPTORS_MOST]
    except OSError:
        return None
    for name in names:
        try:
            link = os.readlink(f"{fds}/{name}")
        except OSError:
            continue
        if link.startswith("socket:[") and link[8:-1].isdigit():
            found.add(int(link[8:-1]))
    return found


def _by_netlink(family: int) -> Iterator[tuple[int, Listener]]:
    """Port of each socket, and the socket. Raises OSError where the kernel does not answer."""
    from _socket import AF_NETLINK, SOCK_RAW, socket

    question = _QUESTION.pack(family, _TCP, 0, 0, 1 << _LISTEN)
    header = _HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST_DUMP, 1, 0)
    kernel = socket(AF_NETLINK, SOCK_RAW, _SOCK_DIAG)
    try:
        kernel.settimeout(ANSWER_S)
        kernel.send(header + question)
        for _ in range(MESSAGES_MOST):
            data = memoryview(kernel.recv(1 << 16))
            while data:
                size, kind, *_ = _HEADER.unpack_from(data)
                if kind == _DONE:
                    return
                if kind == _ERROR or size < _ANSWER_BYTES:
                    raise OSError("the kernel does not tell who listens")
                if data[_ADDRESS : _ADDRESS + 16] in _NEAR:
                    (port,) = struct.unpack_from(">H", data, _PORT)
                    uid, inode = struct.unpack_from("=II", data, _USER)
                    yield port, Listener(inode, uid)
                data = data[(size + 3) & ~3 :]
    finally:
        kernel.close()


def _by_tables() -> dict[int, Listener] | None:
    """The same from /proc, where netlink is refused: in a sandbox. None where there are none."""
    near = {_as_in_table(address) for address in _NEAR} | {"00000000", "0100007F"}
    found: dict[int, Listener] | None = None
    for table in ("tcp6", "tcp"):
        try:
            with open(f"/proc/self/net/{table}", encoding="ascii", errors="replace") as file:
                lines = file.read(TABLE_MOST_BYTES).splitlines()[1:]
        except OSError:
            continue
        found = {} if found is None else found
        for line in lines:
            if f" {_LISTEN:02X} " not in line:
                continue
            fields = line.split(None, 10)
            address, _, port = fields[1].partition(":")
            if len(fields) > 9 and address in near and fields[9].isdigit():
                found[int(port, 16)] = Listener(int(fields[9]), int(fields[7]))
    return found


def _as_in_table(address: bytes) -> str:
    """Four words in the byte order of the machine, in hexadecimal."""
    return "".join(f"{word:08X}" for word in struct.unpack("=4I", address))
