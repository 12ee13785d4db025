"""Sockets of a process: on which it listens, and whether somebody is at the other end.

The tables are those of the process's own network namespace. Each answer is None where the kernel
does not tell, or tells more than is read: nothing follows from that.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from tpusmi.sources.sockets import DESCRIPTORS_MOST
from tpusmi.text import clean

TABLE_MOST_BYTES = 4 << 20
ANSWER_S = 0.2

_LISTEN, _CONNECTED = "0A", ("01", "04", "05")
"""States in /proc/net/tcp. The other end of a connection has closed it in any other."""
_ACCEPTS = 0x10000
"""Flag in /proc/net/unix of a socket that listens."""
_UNIX, _SOCK_DIAG, _BY_FAMILY, _REQUEST, _SHOW_PEER = 1, 4, 20, 1, 4
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBHIIIII")
_ATTRIBUTES, _PEER = 16 + 16, 2
"""Where the attributes of an answer begin, and the number of the one that names the peer."""


def sockets_of(process: str) -> frozenset[int] | None:
    """Inodes of the sockets that a process has open."""
    try:
        names = os.listdir(f"{process}/fd")
    except OSError:
        return None
    return None if len(names) > DESCRIPTORS_MOST else frozenset(_sockets(f"{process}/fd", names))


def tcp_ports(process: str, own: frozenset[int]) -> tuple[int, ...] | None:
    """TCP ports on which it listens, on whichever address."""
    rows = _tcp(process)
    if rows is None:
        return None
    return tuple(sorted({port for inode, state, port in rows if state == _LISTEN and inode in own}))


def unix_names(process: str, own: frozenset[int]) -> tuple[str, ...] | None:
    """Names of the unix sockets on which it listens; `?` for one without a name."""
    lines = _lines(f"{process}/net/unix")
    try:
        rows = None if lines is None else [line.split(None, 7) for line in lines]
        listening = [row for row in rows or () if int(row[3], 16) & _ACCEPTS and int(row[6]) in own]
    except (ValueError, IndexError):
        return None
    names = (clean(row[7], 80) if len(row) > 7 else "?" for row in listening)
    return None if rows is None else tuple(sorted(names))


def is_connected(process: str, inode: int) -> bool | None:
    """Whether a living process is at the other end of a socket."""
    rows = _tcp(process)
    if rows is None:
        return None
    state = next((state for number, state, _ in rows if number == inode), None)
    if state is not None:
        return state in _CONNECTED
    return _has_unix_peer(inode) if _is_near(process) else None


def _sockets(directory: str, names: list[str]) -> Iterator[int]:
    for name in names:
        try:
            link = os.readlink(f"{directory}/{name}")
        except OSError:
            continue
        if link.startswith("socket:[") and link[8:-1].isdecimal():
            yield int(link[8:-1])


def _tcp(process: str) -> list[tuple[int, str, int]] | None:
    """Inode, state and local port of every TCP socket of its network namespace."""
    tables = [_lines(f"{process}/net/{table}") for table in ("tcp", "tcp6")]
    if None in tables:
        return None
    rows = (line.split(None, 10) for lines in tables for line in lines or ())
    try:
        return [(int(r[9]), r[3], int(r[1].rpartition(":")[2], 16)) for r in rows]
    except (ValueError, IndexError):
        return None


def _lines(path: str) -> list[str] | None:
    """The rows of a table; none where the kernel has no such protocol."""
    try:
        with open(path, "rb") as file:
            text = file.read(TABLE_MOST_BYTES + 1)
    except FileNotFoundError:
        return [] if os.path.isdir(os.path.dirname(path)) else None
    except OSError:
        return None
    if len(text) > TABLE_MOST_BYTES:
        return None
    return text.decode("ascii", "replace").splitlines()[1:]


def _is_near(process: str) -> bool:
    """Whether it lives in our own network namespace: the kernel answers for no other."""
    try:
        return os.readlink(f"{process}/ns/net") == os.readlink("/proc/self/ns/net")
    except OSError:
        return False


def _has_unix_peer(inode: int) -> bool | None:
    """Whether a unix socket has another at its other end; None for what is no unix socket."""
    from _socket import AF_NETLINK, SOCK_RAW, socket

    question = _QUESTION.pack(_UNIX, 0, 0, 0xFFFFFFFF, inode, _SHOW_PEER, 0xFFFFFFFF, 0xFFFFFFFF)
    header = _HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 1, 0)
    try:
        kernel = socket(AF_NETLINK, SOCK_RAW, _SOCK_DIAG)
    except OSError:
        return None
    try:
        kernel.settimeout(ANSWER_S)
        kernel.send(header + question)
        return _has_peer(kernel.recv(1 << 16))
    except (OSError, struct.error):
        return None
    finally:
        kernel.close()


def _has_peer(answer: bytes) -> bool | None:
    """Raises struct.error when it is cut."""
    size, kind, *_ = _HEADER.unpack_from(answer)
    if kind != _BY_FAMILY:
        return None
    at = _ATTRIBUTES
    while at < size:
        length, name = struct.unpack_from("=HH", answer, at)
        if name == _PEER:
            return bool(struct.unpack_from("=I", answer, at + 4)[0])
        at += max(4, (length + 3) & ~3)
    return False
