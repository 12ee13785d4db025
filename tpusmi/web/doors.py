"""The connections of the server: how many there may be, for how long, and whose has to go.

One that sends nothing costs a descriptor, and without descriptors no page is served to any user.
When there are too many, the oldest of the peer that has the most is closed.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from tpusmi.web.peers import UNKNOWN, first_of_the_most, peer_of

CONNECTIONS_MOST = 128
"""Besides those of tabs. A browser makes six for a page."""
CONNECTIONS_LEAST = 8
"""However few descriptors there are."""
OTHER_DESCRIPTORS, OF_A_TAB, OF_A_CONNECTION = 40, 8, 2
HEAD_S = 10.0
"""From its beginning to its first whole request."""
REQUEST_S = 60.0
"""From a request to the next, with the answer: a connection that waits for more is closed."""
LOOK_S = 1.0
AGAIN_S = 0.2
BACKLOG = 128


class _Connection(NamedTuple):
    peer: str
    until_s: float


class Doors:
    """Who is connected, but for the tabs."""

    def __init__(self, tabs_most: int) -> None:
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        free = (descriptors - OTHER_DESCRIPTORS - tabs_most * OF_A_TAB) // OF_A_CONNECTION
        self.most = max(CONNECTIONS_LEAST, min(free, CONNECTIONS_MOST))
        self._connections: dict[asyncio.Transport, _Connection] = {}

    def enter(self, transport: asyncio.Transport) -> None:
        """A new one; whoever has too many loses one."""
        theirs, ours = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        peer = peer_of(theirs[:2], ours[:2]) if theirs and ours else UNKNOWN
        self._connections[transport] = _Connection(peer, time.monotonic() + HEAD_S)
        self.close_late()
        while len(self._connections) > self.most:
            self.close_one()

    def peer(self, transport: asyncio.Transport) -> str:
        """Whose it is."""
        known = self._connections.get(transport)
        return UNKNOWN if known is None else known.peer

    def asked(self, transport: asyncio.Transport) -> None:
        """It has sent a whole request."""
        known = self._connections.get(transport)
        if known is not None:
            late_s = time.monotonic() + REQUEST_S
            self._connections[transport] = known._replace(until_s=late_s)

    def leave(self, transport: asyncio.Transport) -> None:
        """It is a tab's from now on, which is counted elsewhere."""
        self._connections.pop(transport, None)

    def close_one(self) -> None:
        """Make room, if there is any connection."""
        if self._connections:
            peers = {transport: known.peer for transport, known in self._connections.items()}
            self._close(first_of_the_most(peers))

    def close_late(self) -> None:
        """Close what has asked for nothing in time; forget what has ended."""
        now_s = time.monotonic()
        for transport, known in list(self._connections.items()):
            if transport.is_closing() and not transport.get_write_buffer_size():
                del self._connections[transport]
            elif now_s > known.until_s:
                self._close(transport)

    def _close(self, transport: asyncio.Transport) -> None:
        del self._connections[transport]
        transport.abort()

    async def keep_closing(self) -> None:
        """Close what is late, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.close_late()


async def bound(host: str, port: int) -> list[socket.socket]:
    """The sockets that listen there. Raises OSError when nothing can be opened."""
    # asyncio knows how; but what it accepts it neither counts nor, without descriptors, closes.
    loop = asyncio.get_running_loop()
    opened = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
    found = [one.dup() for one in opened.sockets]
    opened.close()
    for one in found:
        one.setblocking(False)
        one.listen(BACKLOG)
    return found


async def accept(
    listening: socket.socket,
    doors: Doors,
    protocol: Callable[[], asyncio.Protocol],
    say: Callable[[str], object],
) -> None:
    """Let in whoever connects, until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            connected, _ = await loop.sock_accept(listening)
        except OSError as error:
            say(f"a connection could not be accepted: {error.strerror}")
            doors.close_one()
            await asyncio.sleep(AGAIN_S)
            continue
        with suppress(OSError):  # it has gone already
            transport, _ = await loop.connect_accepted_socket(protocol, connected)
            doors.enter(transport)
