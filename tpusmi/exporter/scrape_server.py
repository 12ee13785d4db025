"""The HTTP server that Prometheus scrapes: one text, a page with a link to it, and its health."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from signal import Signals
from typing import NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler

from tpusmi.exporter.accepting import accept_tls
from tpusmi.exporter.exposition import accepts_gzip, negotiated
from tpusmi.exporter.guards import Guards
from tpusmi.exporter.scrapes import Scrapes
from tpusmi.model.series_names import METRICS_PATH
from tpusmi.web.connections import UNKNOWN, Connections, accept
from tpusmi.web.guard import is_loopback, why_refused
from tpusmi.web.server_log import Log
from tpusmi.web.serving import Serving, serve_until_signal

LINE_BYTES = 4096
"""A line of a request's head, and each of its headers."""
READ_BYTES = 16 * 1024
"""The part of a request's body that is read: no page of this server has a use for it."""
LINGER_S, SHUTDOWN_S = 1.0, 2.0
HEADERS = {
    "Server": "tpusmi",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
PAGE = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>tpusmi</title></head>
<body><h1>tpusmi</h1><p><a href="{METRICS_PATH[1:]}">Metrics</a> for Prometheus.</p></body>
</html>
"""


class ListenAt(NamedTuple):
    """Where to listen."""

    bind: str
    port: int
    """0 selects a free one."""


class Answering(NamedTuple):
    """What the server answers with."""

    scrapes: Scrapes
    is_ready: Callable[[], bool]
    """Whether every source has answered at least once."""
    guards: Guards


async def serve(
    address: ListenAt,
    answering: Answering,
    listens: Callable[[int], object],
    code: Mapping[Signals, int],
    say: Callable[[str], object],
) -> int:
    """Serve until one of the signals in `code` arrives; returns its code.

    Calls `listens` with the port once it is open, and `say` with a sentence for an error that costs
    one request. Raises OSError when the address cannot be opened.
    """
    log = Log(say)
    log.take_over()
    connections = Connections(0)
    runner = web.AppRunner(
        _ScrapePages(address, answering, connections, log).application(),
        access_log=None,
        shutdown_timeout=SHUTDOWN_S,
        max_line_size=LINE_BYTES,
        max_field_size=LINE_BYTES,
        read_bufsize=READ_BYTES,
        lingering_time=LINGER_S,
    )
    guards = answering.guards

    async def accepting(listening: socket.socket, server: web.Server) -> None:
        if guards.has_tls:
            await accept_tls(listening, connections, server, log, guards.context)
        else:
            await accept(listening, connections, server, log)

    serving = Serving(
        address.bind, address.port, connections, accepting, ending=connections.close_all
    )
    return await serve_until_signal(runner, serving, listens, code)


class _ScrapePages:
    """The answers to all requests."""

    def __init__(
        self, address: ListenAt, answering: Answering, connections: Connections, log: Log
    ) -> None:
        self._answering = answering
        self._connections = connections
        self._log = log
        self._is_local = is_loopback(address.bind)
        self._names = frozenset({address.bind.lower(), socket.gethostname().lower()})

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=READ_BYTES)
        app.add_routes(
            [
                web.get("/", self._page),
                web.get(METRICS_PATH, self._metrics),
                web.get("/-/healthy", self._healthy),
                web.get("/-/ready", self._ready),
            ]
        )
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Runs before every handler."""
        if request.transport is not None:
            self._connections.extend(request.transport)
        try:
            refused = self._why_foreign(request) or await self._why_unknown(request)
            response = refused or await handler(request)
        except web.HTTPException as error:
            response = _text(error.status, f"{error.status} {error.reason}")
            response.headers.update({k: v for k, v in error.headers.items() if k == "Allow"})
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001  # it costs only this request
            self._log(f"a request could not be answered: {type(error).__name__}")
            response = _text(500, "the metrics could not be collected")
        response.headers.update(HEADERS)
        return response

    def _why_foreign(self, request: web.Request) -> web.Response | None:
        """The answer to a page of another site; None for any other client."""
        host = request.headers.get("Host")
        if host is None:  # HTTP/1.0 of a load balancer or a script: browsers always send one
            return None
        # From elsewhere it is reached by names that it cannot know.
        names = self._names if self._is_local else {host.rpartition(":")[0].lower(), host.lower()}
        why = why_refused(host, request.headers.get("Origin"), names, drives=False)
        return None if why is None else _text(403, why.replace("--host", "--bind"))

    async def _why_unknown(self, request: web.Request) -> web.Response | None:
        """The answer to a client without a password; None where it needs none or has a right one.
        Probes of the server's health need none.
        """
        if request.path in ("/-/healthy", "/-/ready"):
            return None
        status = await self._answering.guards.refusal(
            request.headers.get("Authorization"), self._peer(request)
        )
        if status is None:
            return None
        response = _text(status.value, status.phrase)
        if status.value == web.HTTPUnauthorized.status_code:
            response.headers["WWW-Authenticate"] = 'Basic realm="tpusmi", charset="UTF-8"'
        return response

    def _peer(self, request: web.Request) -> str:
        return UNKNOWN if request.transport is None else self._connections.peer(request.transport)

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=PAGE, content_type="text/html")

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        form = negotiated(request.headers.get("Accept", ""))
        zipped = accepts_gzip(request.headers.get("Accept-Encoding", ""))
        try:
            body = await self._answering.scrapes.body(form, zipped)
        except TimeoutError:
            return _text(503, "the metrics could not be collected in time")
        headers = {"Content-Type": form.value, "Vary": "Accept, Accept-Encoding"}
        if zipped:
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=body, headers=headers)

    async def _healthy(self, request: web.Request) -> web.StreamResponse:
        return _text(200, "tpusmi is healthy")

    async def _ready(self, request: web.Request) -> web.StreamResponse:
        if self._answering.is_ready():
            return _text(200, "tpusmi is ready")
        return _text(503, "not all sources have answered yet")


def _text(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n")
