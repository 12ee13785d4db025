"""Sockets: which processes listen in our network namespace, which sockets a process has open, and
whether another process is at the other end of one.

The kernel is asked by netlink, which walks the listening sockets only: reading /proc/net/tcp walks
a table of all connections, 10 ms on a large host even when it is empty.
"""

import os
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tpusmi.text import clean

DESCRIPTORS_MOST = 65536
TABLE_MOST_BYTES = 16 << 20
SUSPECT_TABLE_MOST_BYTES = 4 << 20
"""For a table of the network namespace of another process."""
ANSWER_S = 0.2
MESSAGES_MOST = 1024

_SOCK_DIAG, _BY_FAMILY = 4, 20
_REQUEST, _REQUEST_DUMP = 0x1, 0x301
_ERROR, _DONE = 2, 3
_HEADER = struct.Struct("=IHHII")

_TCP, _LISTEN, _ESTABLISHED, _FIN_WAITS = 6, 10, 1, (4, 5)
_CONNECTED = (_ESTABLISHED, *_FIN_WAITS)
"""States of TCP sockets. In any other one the other end has closed the connection."""
_TCP_QUESTION = struct.Struct("=BBBBI48x")
_END_QUESTION, _ANY = struct.Struct("=BBBBI2s2s16s16sIII"), 0xFFFFFFFF
_PORT, _ADDRESS, _USER = 16 + 4, 16 + 8, 16 + 64
"""Where they are in an answer of 88 bytes; the inode comes after the user."""
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
"""Any and loopback addresses: of IPv4 (in 16 bytes), of IPv6, and IPv4 written as IPv6."""

_ACCEPTS = 0x10000
"""Flag in /proc/net/unix of a socket that listens."""
_UNIX, _SHOW_PEER = 1, 4
_UNIX_QUESTION = struct.Struct("=BBHIIIII")
_ATTRIBUTES, _PEER = 16 + 16, 2
"""Where the attributes of an answer begin, and the number of the one that names the peer."""


class Listener(NamedTuple):
    """A listening socket, and the user to whom the kernel says it belongs."""

    inode: int
    uid: int


def listeners() -> dict[int, Listener] | None:
    """The listening socket on each port where we could reach it; None where that is unknown."""
    try:
        # IPv4 last: where both listen on a port, that is the one we connect to.
        return {port: socket for family in (10, 2) for port, socket in _by_netlink(family)}
    except (OSError, struct.error):
        return _by_tables()


def listeners_on(port: int) -> set[Listener]:
    """All sockets that listen on one port, of any process; empty where that is unknown."""
    try:
        return {it for family in (10, 2) for number, it in _by_netlink(family) if number == port}
    except (OSError, struct.error):
        listener = (_by_tables() or {}).get(port)
        return set() if listener is None else {listener}


def listening_sockets() -> dict[int, int]:
    """Inodes of the listening sockets, by port. Empty where they are unknown."""
    return {port: listener.inode for port, listener in (listeners() or {}).items()}


def visible_sockets(fds: str) -> set[int] | None:
    """Inodes of the sockets in a directory of descriptors; None when we may not read it."""
    try:
        return _inodes(fds, os.listdir(fds)[:DESCRIPTORS_MOST])
    except OSError:
        return None


# -- one process, in its own network namespace. None where the kernel does not say, or where there
#    is more than is read: then nothing follows.


def sockets_of(process: str) -> frozenset[int] | None:
    """Inodes of all sockets that a process, /proc/PID, has open."""
    try:
        names = os.listdir(f"{process}/fd")
    except OSError:
        return None
    return None if len(names) > DESCRIPTORS_MOST else frozenset(_inodes(f"{process}/fd", names))


def tcp_ports(process: str, own: frozenset[int]) -> tuple[int, ...] | None:
    """TCP ports on which it listens, on any address."""
    rows = _tcp_rows(process)
    if rows is None:
        return None
    return tuple(sorted({port for inode, state, port in rows if state == _LISTEN and inode in own}))


def unix_names(process: str, own: frozenset[int]) -> tuple[str, ...] | None:
    """Names of the unix sockets on which it listens; `?` for one without a name."""
    lines = _table(f"{process}/net/unix")
    try:
        rows = None if lines is None else [line.split(None, 7) for line in lines]
        listening = [row for row in rows or () if int(row[3], 16) & _ACCEPTS and int(row[6]) in own]
    except (ValueError, IndexError):
        return None
    names = (clean(row[7], 80) if len(row) > 7 else "?" for row in listening)
    return None if rows is None else tuple(sorted(names))


def is_connected(process: str, inode: int) -> bool | None:
    """True if a living process is at the other end of a socket."""
    rows = _tcp_rows(process)
    if rows is None:
        return None
    state = next((state for number, state, _ in rows if number == inode), None)
    if state is not None:
        return state in _CONNECTED
    return _has_unix_peer(inode) if _is_near(process) else None


def user_of_connection(
    family: int, theirs: tuple[bytes, int], ours: tuple[bytes, int]
) -> int | None:
    """The uid of the socket at the other end of a TCP connection, from the packed addresses and the
    ports of both ends; None when it is not on this machine, or the kernel does not report it.
    """
    socket = other_end(family, theirs, ours)
    return None if socket is None else socket.uid


def other_end(family: int, theirs: tuple[bytes, int], ours: tuple[bytes, int]) -> Listener | None:
    """The socket at the other end, accepted by one that listens. Its inode is 0 before that."""
    question = _END_QUESTION.pack(
        family, _TCP, 0, 0, _ANY,
        theirs[1].to_bytes(2, "big"), ours[1].to_bytes(2, "big"), theirs[0], ours[0],
        0, _ANY, _ANY,
    )  # fmt: skip
    try:
        answer = next(_netlink(_REQUEST, question))
    except OSError:
        return None
    if _HEADER.unpack_from(answer)[1] != _BY_FAMILY or len(answer) < _USER + 8:
        return None
    uid, inode = struct.unpack_from("=II", answer, _USER)
    return Listener(inode, uid)


def _inodes(fds: str, names: Iterable[str]) -> set[int]:
    inodes = set()
    for name in names:
        try:
            link = os.readlink(f"{fds}/{name}")
        except OSError:
            continue
        if link.startswith("socket:[") and link[8:-1].isdecimal():
            inodes.add(int(link[8:-1]))
    return inodes


def _netlink(flags: int, question: bytes) -> Iterator[memoryview]:
    """The kernel's answers to a question about sockets. Raises OSError where it does not answer."""
    from _socket import AF_NETLINK, SOCK_RAW, socket

    header = _HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, flags, 1, 0)
    kernel = socket(AF_NETLINK, SOCK_RAW, _SOCK_DIAG)
    try:
        kernel.settimeout(ANSWER_S)
        kernel.send(header + question)
        for _ in range(MESSAGES_MOST):
            yield memoryview(kernel.recv(1 << 16))
    finally:
        kernel.close()


def _by_netlink(family: int) -> Iterator[tuple[int, Listener]]:
    """Port of each socket, and the socket. Raises OSError where the kernel does not answer."""
    for data in _netlink(_REQUEST_DUMP, _TCP_QUESTION.pack(family, _TCP, 0, 0, 1 << _LISTEN)):
        while data:
            size, kind, *_ = _HEADER.unpack_from(data)
            if kind == _DONE:
                return
            if kind == _ERROR or size < _ANSWER_BYTES:
                raise OSError("the kernel does not list listening sockets")
            if data[_ADDRESS : _ADDRESS + 16] in _NEAR:
                (port,) = struct.unpack_from(">H", data, _PORT)
                uid, inode = struct.unpack_from("=II", data, _USER)
                yield port, Listener(inode, uid)
            data = data[(size + 3) & ~3 :]


def _by_tables() -> dict[int, Listener] | None:
    """The same from /proc, where a sandbox refuses netlink. None where /proc has no tables."""
    # Four words in the byte order of the machine; the addresses of IPv4 are one.
    words = (struct.unpack("=4I", address) for address in _NEAR)
    near = {"".join(f"{word:08X}" for word in four) for four in words} | {"00000000", "0100007F"}
    by_port: dict[int, Listener] | None = None
    for table in ("tcp6", "tcp"):
        try:
            with open(f"/proc/self/net/{table}", encoding="ascii", errors="replace") as file:
                lines = file.read(TABLE_MOST_BYTES).splitlines()[1:]
        except OSError:
            continue
        by_port = {} if by_port is None else by_port
        for line in lines:
            if f" {_LISTEN:02X} " not in line:
                continue
            fields = line.split(None, 10)
            address, _, port = fields[1].partition(":")
            if len(fields) > 9 and address in near and fields[9].isdigit():
                by_port[int(port, 16)] = Listener(int(fields[9]), int(fields[7]))
    return by_port


def _tcp_rows(process: str) -> list[tuple[int, int, int]] | None:
    """Inode, state and local port of every TCP socket in the network namespace of a process."""
    tables = [_table(f"{process}/net/{table}") for table in ("tcp", "tcp6")]
    if None in tables:
        return None
    rows = (line.split(None, 10) for lines in tables for line in lines or ())
    try:
        return [(int(r[9]), int(r[3], 16), int(r[1].rpartition(":")[2], 16)) for r in rows]
    except (ValueError, IndexError):
        return None


def _table(path: str) -> list[str] | None:
    """The rows of a table; empty where the kernel has no such protocol."""
    try:
        with open(path, "rb") as file:
            text = file.read(SUSPECT_TABLE_MOST_BYTES + 1)
    except FileNotFoundError:
        return [] if os.path.isdir(os.path.dirname(path)) else None
    except OSError:
        return None
    if len(text) > SUSPECT_TABLE_MOST_BYTES:
        return None
    return text.decode("ascii", "replace").splitlines()[1:]


def _is_near(process: str) -> bool:
    """True if it is in our own network namespace: the kernel answers for no other."""
    try:
        return os.readlink(f"{process}/ns/net") == os.readlink("/proc/self/ns/net")
    except OSError:
        return False


def _has_unix_peer(inode: int) -> bool | None:
    """True if a unix socket has a peer; None for a socket that is not a unix socket."""
    wildcard = 0xFFFFFFFF
    question = (_UNIX, 0, 0, wildcard, inode, _SHOW_PEER, wildcard, wildcard)
    try:
        for answer in _netlink(_REQUEST, _UNIX_QUESTION.pack(*question)):
            return _has_peer(answer)
    except (OSError, struct.error):
        pass
    return None


def _has_peer(answer: memoryview) -> bool | None:
    """Raises struct.error when the answer is cut short."""
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
