"""Accepts connections that begin with a TLS handshake: none of them delays the others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from tpusmi.web.connections import (
    UNKNOWN,
    Connections,
    next_accepted,
    oldest_of_the_largest,
    peer_of,
)

if TYPE_CHECKING:
    import ssl

HANDSHAKES_MOST = 64
HANDSHAKE_S = 5.0


async def accept_tls(
    listening: socket.socket,
    connections: Connections,
    protocol: Callable[[], asyncio.Protocol],
    say: Callable[[str], object],
    context: Callable[[], ssl.SSLContext],
) -> None:
    """Accept connections, until cancelled. Of too many handshakes, the peer with the most loses its
    oldest.
    """
    loop = asyncio.get_running_loop()
    begun: dict[asyncio.Task[None], str] = {}

    async def shake(connected: socket.socket) -> None:
        with suppress(OSError):  # the other end has gone, speaks no TLS, or is slow
            transport, _ = await loop.connect_accepted_socket(
                protocol, connected, ssl=context(), ssl_handshake_timeout=HANDSHAKE_S
            )
            connections.enter(transport)

    try:
        while True:
            connected = await next_accepted(listening, connections, say)
            task = loop.create_task(shake(connected))
            begun[task] = _peer(connected)
            task.add_done_callback(lambda done: begun.pop(done, None))
            if len(begun) > HANDSHAKES_MOST:
                oldest = oldest_of_the_largest(begun)
                del begun[oldest]
                oldest.cancel()
    finally:
        for task in [*begun]:
            task.cancel()


def _peer(connected: socket.socket) -> str:
    try:
        return peer_of(connected.getpeername()[:2], connected.getsockname()[:2])
    except OSError:  # the other end has gone
        return UNKNOWN
