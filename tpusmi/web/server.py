"""The server: one page, and a dashboard behind every tab that shows it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from signal import Signals
from typing import NamedTuple

import textual_serve
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from textual_serve.server import Server

from tpusmi.web import tab
from tpusmi.web.guard import why_refused

PAGE = Path(__file__).parent / "page"
STATIC = Path(textual_serve.__file__).parent / "static"
"""The terminal that textual-serve draws in a page, and its font."""

TABS_MOST = 16
"""Each is a process of some 60 MB, and whoever reaches the server can open one."""
HEARTBEAT_S = 15.0
"""After one and a half of it a tab that does not answer, its laptop closed, is gone."""
MESSAGE_BYTES = 1 << 20
END_S = tab.QUIT_S + tab.KILLED_S + 2 * tab.CLOSE_S

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


async def serve(plan: Plan, listens: Callable[[int], object], code: Mapping[Signals, int]) -> int:
    """Serve until one of the signals in `code` comes; what it says there.

    listens is told the port once it is open. Every dashboard is gone when this returns. Raises
    OSError when nothing can be opened there.
    """
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    for number in code:
        asyncio.get_running_loop().add_signal_handler(number, _end, ended, code[number])
    runner = web.AppRunner(_Pages(plan).application(), access_log=None, shutdown_timeout=END_S)
    try:
        await runner.setup()
        await web.TCPSite(runner, plan.host, plan.port).start()
        listens(runner.addresses[0][1])
        return await ended
    finally:
        await runner.cleanup()


def _end(ended: asyncio.Future[int], code: int) -> None:
    if not ended.done():
        ended.set_result(code)


def _guard(names: Collection[str]) -> Middleware:
    """Stands before every handler of the server of these names."""

    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        why = why_refused(
            request.headers.get("Host", ""),
            request.headers.get("Origin"),
            names,
            drives=request.path.endswith("/ws"),
        )
        if why is not None:
            return web.Response(status=403, text=f"{why}\n", headers=HEADERS)
        return await handler(request)

    return guard


class _Pages:
    """What is answered to whom."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._names = frozenset({plan.host.lower(), socket.gethostname().lower()})
        self._tabs: set[web.WebSocketResponse] = set()
        # Nothing but the way to save a file from a dashboard is used of it.
        self._downloads = Server(plan.command)

    def application(self) -> web.Application:
        """Everything below the secret, if there is one: every address in the page is relative."""
        below = f"/{self._plan.secret}" if self._plan.secret else ""
        app = web.Application(middlewares=[web.middleware(_guard(self._names))])
        app.add_routes(
            [
                web.get(f"{below}/", self._page),
                web.get(f"{below}/ws", self._tab),
                web.get(f"{below}/download/{{key}}", self._downloads.handle_download),
                web.static(f"{below}/page", PAGE),
                web.static(f"{below}/static", STATIC),
            ]
        )
        app.on_shutdown.append(self._close)
        return app

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(PAGE / "index.html", headers=HEADERS)

    async def _tab(self, request: web.Request) -> web.StreamResponse:
        if len(self._tabs) >= TABS_MOST:
            return web.Response(status=503, text=f"{TABS_MOST} dashboards are open already\n")
        websocket = web.WebSocketResponse(
            heartbeat=HEARTBEAT_S, timeout=tab.CLOSE_S, max_msg_size=MESSAGE_BYTES
        )
        size = tab.size_of(request.query.get("width"), request.query.get("height"))
        await websocket.prepare(request)
        self._tabs.add(websocket)
        try:
            await tab.show(websocket, self._plan.command, size, self._downloads.download_manager)
        finally:
            self._tabs.discard(websocket)
        return websocket

    async def _close(self, app: web.Application) -> None:
        closing = [asyncio.ensure_future(tab.close(websocket)) for websocket in self._tabs]
        await asyncio.gather(*closing)
