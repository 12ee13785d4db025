"""The server: one page, and a dashboard behind every tab that opens it."""

from __future__ import annotations

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
from tpusmi.web.connections import Connections, accept
from tpusmi.web.guard import why_refused
from tpusmi.web.server_log import Log
from tpusmi.web.serving import Serving, serve_until_signal

PAGE = Path(__file__).parent / "page"
STATIC = Path(textual_serve.__file__).parent / "static"
"""The terminal that textual-serve shows in a page, and its font."""

TABS_MOST = 16
"""Each is a process of some 60 MB, and anyone who reaches the server can open one."""
HEARTBEAT_S = 15.0
"""A tab that does not answer for one and a half times this, its laptop closed, is dropped."""
MESSAGE_BYTES = 1 << 20

HEADERS = {
    # Nothing is loaded from elsewhere, and no other page can frame this one.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Service(NamedTuple):
    """What to serve, and at which address."""

    command: str
    """The shell command that starts a dashboard with Textual's web driver."""
    host: str
    port: int
    """0 selects a free one."""
    secret: str = ""
    """Part of the page's address; requests without it get no answer. Empty: no secret is needed."""


async def serve(
    service: Service,
    listens: Callable[[int], object],
    code: Mapping[Signals, int],
    say: Callable[[str], object],
) -> int:
    """Serve until one of the signals in `code` arrives; returns its code.

    Calls `listens` with the port once it is open, and `say` with a sentence for an error that costs
    one request or one tab. Every dashboard has ended when this returns. Raises OSError when the
    address cannot be opened.
    """
    log = Log(say)
    log.take_over()
    connections = Connections(TABS_MOST)
    application = _Pages(service, connections, log).application()
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=tab.GONE_S)

    async def accepting(listening: socket.socket, server: web.Server) -> None:
        await accept(listening, connections, server, log)

    serving = Serving(service.host, service.port, connections, accepting)
    return await serve_until_signal(runner, serving, listens, code)


class _Pages:
    """The answers to all requests."""

    def __init__(self, service: Service, connections: Connections, log: Log) -> None:
        self._service = service
        self._connections = connections
        self._log = log
        self._names = frozenset({service.host.lower(), socket.gethostname().lower()})
        self._seats = tab.Seats()
        self._files = dict(_files())
        # Used only to save files from a dashboard.
        self._downloads = Server(service.command)

    def application(self) -> web.Application:
        """All addresses, below the secret if there is one: addresses in the page are relative."""
        below = f"/{self._service.secret}" if self._service.secret else ""
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
        """Runs before every handler."""
        if request.transport is not None:
            self._connections.extend(request.transport)
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
        except Exception as error:  # noqa: BLE001  # it costs only this request
            self._log(f"a request could not be answered: {type(error).__name__}")
            return web.Response(status=500, text="500: Internal Server Error\n", headers=HEADERS)

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(PAGE / "index.html", headers=HEADERS)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        path = self._files.get(request.match_info["path"])
        if path is None:
            raise web.HTTPNotFound
        return web.FileResponse(path, headers=HEADERS)

    async def _tab(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        if transport is None:  # it is closed already
            raise ConnectionResetError
        seat = tab.Seat(self._connections.peer(transport))
        try:
            if not await self._seats.take(seat, TABS_MOST):
                return web.Response(status=503, text=f"{TABS_MOST} dashboards are open already\n")
            self._connections.leave(transport)
            return await self._show(request, seat)
        finally:
            self._seats.leave(seat)
            self._connections.enter(transport)  # the peer may keep it open

    async def _show(self, request: web.Request, seat: tab.Seat) -> web.StreamResponse:
        websocket = seat.websocket = web.WebSocketResponse(
            heartbeat=HEARTBEAT_S, timeout=tab.CLOSE_S, max_msg_size=MESSAGE_BYTES
        )
        size = tab.size_of(request.query.get("width"), request.query.get("height"))
        await websocket.prepare(request)
        downloads = self._downloads.download_manager
        why = await tab.show(websocket, self._service.command, size, downloads)
        if why:
            self._log(why)
        return websocket

    async def _close(self, app: web.Application) -> None:
        await self._seats.close()


def _files() -> Iterator[tuple[str, Path]]:
    """Every file that a page needs, by its path in an address, so that no path of a request is
    looked up on the disk.
    """
    for name, directory in (("page", PAGE), ("static", STATIC)):
        for path in directory.rglob("*"):
            if path.is_file():
                yield f"{name}/{path.relative_to(directory)}", path
