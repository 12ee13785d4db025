"""Serves an application until a signal ends it: its sockets, connections and tasks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Mapping
from signal import Signals
from typing import Any, NamedTuple

from aiohttp import web

from tpusmi.web.connections import Connections, bound


class Serving(NamedTuple):
    """Where to listen, and what to do with connections."""

    host: str
    port: int
    """0 selects a free one."""
    connections: Connections
    accepting: Callable[[socket.socket, web.Server], Coroutine[Any, Any, None]]
    """Accepts the connections of one listening socket, until cancelled."""
    ending: Callable[[], object] | None = None
    """Called once no more connections are accepted, before those that are open end."""


async def serve_until_signal(
    runner: web.AppRunner,
    serving: Serving,
    listens: Callable[[int], object],
    code: Mapping[Signals, int],
) -> int:
    """Serve until one of the signals in `code` arrives; returns its code.

    Calls `listens` with the port once it is open. Raises OSError when the address cannot be opened.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()
    for number in code:
        loop.add_signal_handler(number, _end, ended, code[number])
    sockets: list[socket.socket] = []
    tasks = [loop.create_task(serving.connections.keep_closing())]
    try:
        await runner.setup()
        sockets = await bound(serving.host, serving.port)
        server = runner.server
        assert server is not None
        tasks += [loop.create_task(serving.accepting(one, server)) for one in sockets]
        listens(sockets[0].getsockname()[1])
        return await ended
    finally:
        for task in tasks:
            task.cancel()
        for one in sockets:
            one.close()
        if serving.ending is not None:
            serving.ending()
        await runner.cleanup()


def _end(ended: asyncio.Future[int], code: int) -> None:
    if not ended.done():
        ended.set_result(code)
