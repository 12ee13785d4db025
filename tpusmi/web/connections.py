"""The connections of the server: how many there may be, for how long, and which one is closed.

An idle connection costs a descriptor, and without descriptors the server serves no page to any
user. When there are too many, the peer with the most connections loses its oldest.
"""

from __future__ import annotations

import asyncio
import asyncio.trsock
import ipaddress
import resource
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple, TypeVar

from tpusmi.sources.sockets import user_of_connection

T = TypeVar("T")

UNKNOWN = "this machine"
NETWORK_BITS = 64
"""The part of an IPv6 address that is one peer: it controls all addresses below."""

CONNECTIONS_MOST = 128
"""The limit, not counting tabs. A browser opens six for a page."""
CONNECTIONS_LEAST = 8
"""The limit is never lower, even if there are few descriptors."""
OTHER_DESCRIPTORS, OF_A_TAB, OF_A_CONNECTION = 40, 8, 2
HEAD_S = 10.0
"""The time for its first whole request."""
REQUEST_S = 60.0
"""The time from one request to the next, response included; then the connection is closed."""
CHECK_EVERY_S = 1.0
ACCEPT_AGAIN_S = 0.2
BACKLOG = 128


class _Connection(NamedTuple):
    peer: str
    until_s: float
    socket: asyncio.trsock.TransportSocket | None
    """With TLS, a transport that was closed twice no longer answers for its socket."""

    @property
    def has_ended(self) -> bool:
        """Whether its socket is closed: a transport that is closing may still have text to send."""
        return self.socket is None or self.socket.fileno() < 0


class Connections:
    """All connections except the tabs."""

    def __init__(self, tabs_most: int) -> None:
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        free = (descriptors - OTHER_DESCRIPTORS - tabs_most * OF_A_TAB) // OF_A_CONNECTION
        self.most = max(CONNECTIONS_LEAST, min(free, CONNECTIONS_MOST))
        self._connections: dict[asyncio.Transport, _Connection] = {}

    def enter(self, transport: asyncio.Transport) -> None:
        """Add a new connection. Closes others if there are too many."""
        theirs, ours = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        peer = peer_of(theirs[:2], ours[:2]) if theirs and ours else UNKNOWN
        self._connections[transport] = _Connection(
            peer=peer,
            until_s=time.monotonic() + HEAD_S,
            socket=transport.get_extra_info("socket"),
        )
        self.close_late()
        while len(self._connections) > self.most:
            self.close_one()

    def peer(self, transport: asyncio.Transport) -> str:
        """The user or address at its other end."""
        connection = self._connections.get(transport)
        return UNKNOWN if connection is None else connection.peer

    def extend(self, transport: asyncio.Transport) -> None:
        """Give it time for the next request: it has sent a whole one."""
        connection = self._connections.get(transport)
        if connection is not None:
            late_s = time.monotonic() + REQUEST_S
            self._connections[transport] = connection._replace(until_s=late_s)

    def leave(self, transport: asyncio.Transport) -> None:
        """Stop counting it: it belongs to a tab now, and tabs are counted elsewhere."""
        self._connections.pop(transport, None)

    def close_one(self) -> None:
        """Make room, if there is any connection."""
        if self._connections:
            peers = {transport: one.peer for transport, one in self._connections.items()}
            self._close(oldest_of_the_largest(peers))

    def close_late(self) -> None:
        """Close connections without a request in time; forget those that have ended."""
        now_s = time.monotonic()
        for transport, connection in list(self._connections.items()):
            if connection.has_ended:
                del self._connections[transport]
            elif now_s > connection.until_s:
                self._close(transport)

    def close_all(self) -> None:
        """Close every connection, whatever its peer still reads."""
        for transport in [*self._connections]:
            self._close(transport)

    def _close(self, transport: asyncio.Transport) -> None:
        connection = self._connections.pop(transport)
        transport.abort()
        if connection.socket is not None:
            with suppress(OSError):  # it has ended
                connection.socket.shutdown(socket.SHUT_RDWR)

    async def keep_closing(self) -> None:
        """Close late connections, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_EVERY_S)
            self.close_late()


async def bound(host: str, port: int) -> list[socket.socket]:
    """The sockets that listen there. Raises OSError when none can be opened."""
    # asyncio opens them; but it does not count what it accepts, nor close any of it when there are
    # no descriptors.
    loop = asyncio.get_running_loop()
    opened = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
    sockets = [one.dup() for one in opened.sockets]
    opened.close()
    for one in sockets:
        one.setblocking(False)
        one.listen(BACKLOG)
    return sockets


async def accept(
    listening: socket.socket,
    connections: Connections,
    protocol: Callable[[], asyncio.Protocol],
    say: Callable[[str], object],
) -> None:
    """Accept connections, until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        connected = await next_accepted(listening, connections, say)
        with suppress(OSError):  # the other end is already closed
            transport, _ = await loop.connect_accepted_socket(protocol, connected)
            connections.enter(transport)


async def next_accepted(
    listening: socket.socket, connections: Connections, say: Callable[[str], object]
) -> socket.socket:
    """The next connection. Where none can be accepted, one is closed to make room for it."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            connected, _ = await loop.sock_accept(listening)
        except OSError as error:
            say(f"a connection could not be accepted: {error.strerror}")
            connections.close_one()
            await asyncio.sleep(ACCEPT_AGAIN_S)
        else:
            return connected


def peer_of(theirs: tuple[str, int], ours: tuple[str, int]) -> str:
    """The peer of a connection, from the addresses and ports of both ends: `user 1000` of this
    machine, according to the kernel; else its address, `192.0.2.7`.
    """
    address, own = _plain(theirs[0]), _plain(ours[0])
    if address.is_loopback or address == own:
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        user = user_of_connection(family, (address.packed, theirs[1]), (own.packed, ours[1]))
        return UNKNOWN if user is None else f"user {user}"
    if address.version == 6:
        return str(ipaddress.ip_network((address.packed, NETWORK_BITS), strict=False))
    return str(address)


def oldest_of_the_largest(peers: Mapping[T, str]) -> T:
    """The oldest entry of the peer with the most entries."""
    (most, _), *_ = Counter(peers.values()).most_common(1)
    return next(entry for entry, peer in peers.items() if peer == most)


def _plain(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address; the IPv4 address if it is written as IPv6."""
    parsed = ipaddress.ip_address(address)
    return getattr(parsed, "ipv4_mapped", None) or parsed
