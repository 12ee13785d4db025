"""The server: one page, and a dashboard behind every tab that shows it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from signal import Signals
from typing import NamedTuple

import textual_serve
from aiohttp import web
from aiohttp.typedefs import Handler
from textual_serve.server import Server

from tpusmi.web import tab
from tpusmi.web.doors import Doors, accept, bound
from tpusmi.web.guard import why_refused
from tpusmi.web.log import Log
from tpusmi.web.seats import GONE_S, Seat, Seats

PAGE = Path(__file__).parent / "page"
STATIC = Path(textual_serve.__file__).parent / "static"
"""The terminal that textual-serve draws in a page, and its font."""

TABS_MOST = 16
"""Each is a process of some 60 MB, and whoever reaches the server can open one. When all are taken,
who has the most of them loses the oldest to who has two fewer.
"""
HEARTBEAT_S = 15.0
"""After one and a half of it a tab that does not answer, its laptop closed, is gone."""
MESSAGE_BYTES = 1 << 20

HEADERS = {
    # Nothing is fetched from elsewhere, and nobody puts this page into one of his.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Plan(NamedTuple):
    """What to serve, and where."""

    command: str
    """Of a shell: starts a dashboard that talks as Textual's web driver does."""
    host: str
    port: int
    """0 takes a free one."""
    secret: str = ""
    """Known to whoever has the page's address; nobody else is answered. Empty: everybody is."""


async def serve(
    plan: Plan,
    listens: Callable[[int], object],
    code: Mapping[Signals, int],
    say: Callable[[str], object],
) -> int:
    """Serve until one of the signals in `code` comes; what it says there.

    listens is told the port once it is open, say a sentence for a fault that costs one request or
    one tab. Every dashboard is gone when this returns. Raises OSError when nothing can be opened
    there.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()
    for number in code:
        loop.add_signal_handler(number, _end, ended, code[number])
    log = Log(say)
    log.take_over()
    doors = Doors(TABS_MOST)
    runner = web.AppRunner(
        _Pages(plan, doors, log).application(), access_log=None, shutdown_timeout=GONE_S
    )
    sockets: list[socket.socket] = []
    tasks = [loop.create_task(doors.keep_closing())]
    try:
        await runner.setup()
        sockets = await bound(plan.host, plan.port)
        assert runner.server is not None
        tasks += [loop.create_task(accept(one, doors, runner.server, log)) for one in sockets]
        listens(sockets[0].getsockname()[1])
        return await ended
    finally:
        for task in tasks:
            task.cancel()
        for one in sockets:
            one.close()
        await runner.cleanup()


def _end(ended: asyncio.Future[int], code: int) -> None:
    if not ended.done():
        ended.set_result(code)


class _Pages:
    """What is answered to whom."""

    def __init__(self, plan: Plan, doors: Doors, log: Log) -> None:
        self._plan = plan
        self._doors = doors
        self._log = log
        self._names = frozenset({plan.host.lower(), socket.gethostname().lower()})
        self._seats = Seats()
        self._files = dict(_files())
        # Nothing but the way to save a file from a dashboard is used of it.
        self._downloads = Server(plan.command)

    def application(self) -> web.Application:
        """Everything below the secret, if there is one: every address in the page is relative."""
        below = f"/{self._plan.secret}" if self._plan.secret else ""
        app = web.Application(middlewares=[self._guard])
        app.add_routes(
            [
                web.get(f"{below}/", self._page),
                web.get(f"{below}/ws", self._tab),
                web.get(f"{below}/download/{{key}}", self._downloads.handle_download),
                web.get(f"{below}/{{path:(?:page|static)/.*}}", self._file),
            ]
        )
        app.on_shutdown.append(self._close)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Stands before every handler."""
        if request.transport is not None:
            self._doors.asked(request.transport)
        why = why_refused(
            request.headers.get("Host", ""),
            request.headers.get("Origin"),
            self._names,
            drives=request.path.endswith("/ws"),
        )
        if why is not None:
            return web.Response(status=403, text=f"{why}\n", headers=HEADERS)
        try:
            return await handler(request)
        except (web.HTTPException, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001  # it costs this request, and no traceback
            self._log(f"a request could not be answered: {type(error).__name__}")
            return web.Response(status=500, text="500: Internal Server Error\n", headers=HEADERS)

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(PAGE / "index.html", headers=HEADERS)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        found = self._files.get(request.match_info["path"])
        if found is None:
            raise web.HTTPNotFound
        return web.FileResponse(found, headers=HEADERS)

    async def _tab(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        if transport is None:  # it has gone
            raise ConnectionResetError
        seat = Seat(self._doors.peer(transport))
        try:
            if not await self._seats.take(seat, TABS_MOST):
                return web.Response(status=503, text=f"{TABS_MOST} dashboards are open already\n")
            self._doors.leave(transport)
            return await self._show(request, seat)
        finally:
            self._seats.leave(seat)
            self._doors.enter(transport)  # it may not want to end

    async def _show(self, request: web.Request, seat: Seat) -> web.StreamResponse:
        websocket = seat.websocket = web.WebSocketResponse(
            heartbeat=HEARTBEAT_S, timeout=tab.CLOSE_S, max_msg_size=MESSAGE_BYTES
        )
        size = tab.size_of(request.query.get("width"), request.query.get("height"))
        await websocket.prepare(request)
        downloads = self._downloads.download_manager
        why = await tab.show(websocket, self._plan.command, size, downloads)
        if why:
            self._log(why)
        return websocket

    async def _close(self, app: web.Application) -> None:
        await self._seats.close()


def _files() -> Iterator[tuple[str, Path]]:
    """Every file that a page needs, by its path in an address. No path of a request is looked up
    on the disk.
    """
    for name, directory in (("page", PAGE), ("static", STATIC)):
        for path in directory.rglob("*"):
            if path.is_file():
                yield f"{name}/{path.relative_to(directory)}", path
