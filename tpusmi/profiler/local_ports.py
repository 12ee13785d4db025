"""Which process of this machine listens on a port, on which ports a process listens, and which of
them is that of its profiler service.
"""

from __future__ import annotations

import os
import socket

from tpusmi.model import Process
from tpusmi.sources.libtpu.ports import NEVER, USUAL, SocketOwners
from tpusmi.sources.sockets import Listener, listeners_on, other_end, sockets_of, tcp_ports

PROFILER_PORTS = (9012, 9999)
"""The ports in the documents of JAX, xprof and the servers built on them."""
MAPS_MOST_BYTES = 4 << 20
_LIBRARIES = (b"/jaxlib/", b"/torch_xla/", b"/tensorflow/")
"""Packages with a profiler service, as the names of their libraries show."""


def listener_of(port: int) -> int | None:
    """The pid of the process that listens on that port here; None where that cannot be seen, and
    where several share the port, as gRPC servers can: the kernel chooses one for each connection.
    """
    listening = listeners_on(port)
    return SocketOwners("/proc").pid(listening.pop()) if len(listening) == 1 else None


def is_shared(port: int) -> bool:
    """True when several processes listen on that port here."""
    return len(listeners_on(port)) > 1


def server_of(connection: socket.socket) -> int | None:
    """The pid of the process at the other end of a connection that was answered; None when it is
    not on this machine, or cannot be seen.
    """
    accepted = _accepted(connection)
    return None if accepted is None else SocketOwners("/proc").pid(accepted)


def is_server(pid: int, connection: socket.socket) -> bool:
    """True when the kernel shows that this process is at the other end of a connection that was
    answered.
    """
    accepted = _accepted(connection)
    return accepted is not None and accepted.inode in (sockets_of(f"/proc/{pid}") or ())


def _accepted(connection: socket.socket) -> Listener | None:
    try:
        theirs, ours = connection.getpeername(), connection.getsockname()
    except OSError:
        return None
    if theirs[0] != ours[0]:
        return None
    address = socket.inet_pton(connection.family, theirs[0].partition("%")[0])
    accepted = other_end(connection.family, (address, theirs[1]), (address, ours[1]))
    return accepted if accepted is not None and accepted.inode else None


def ports_of(pid: int) -> tuple[int, ...] | None:
    """TCP ports on which the process listens, in its own network; None where that is not known.

    They are not tried: a connection to the port of a collective or a debugger can end a job.
    """
    process = f"/proc/{pid}"
    own = sockets_of(process)
    return None if own is None else tcp_ports(process, own)


def published_port_of(process: Process) -> int | None:
    """The port of its profiler service, as its agent publishes it; None without one, and where the
    kernel does not confirm whose segment that is.
    """
    port = process.facts.get("profiler_port")
    return port if isinstance(port, int) and process.is_verified and 0 < port < 65536 else None


def usual_port_of(pid: int) -> int | None:
    """The port on which the process most likely serves its profiler: it listens there, and the port
    is one of the documented ones; None when there is none, or it is in another network than we.
    """
    try:
        is_near = os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net")
    except OSError:
        return None
    ports = ports_of(pid) or () if is_near else ()
    return next((port for port in PROFILER_PORTS if port in ports), None)


def other_ports_of(pid: int) -> tuple[int, ...]:
    """The ports on which a process listens and that may be its profiler's: not the ones that
    libtpu has for itself. Empty also where they cannot be seen.
    """
    own = {*NEVER, *USUAL} - set(PROFILER_PORTS)
    return tuple(port for port in ports_of(pid) or () if port not in own)


def can_write_for_us(pid: int, folder: str) -> bool:
    """True when a process has a profiler, and sees the folder at the same path as we do.

    The kernel answers only about processes of the same user, and to root.
    """
    try:
        is_same = os.path.samestat(os.stat(f"/proc/{pid}/root{folder}"), os.stat(folder))
        with open(f"/proc/{pid}/maps", "rb") as maps:
            text = maps.read(MAPS_MOST_BYTES)
    except OSError:
        return False
    return is_same and any(library in text for library in _LIBRARIES)
