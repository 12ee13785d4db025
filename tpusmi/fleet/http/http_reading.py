"""One GET with a limit on the time of the whole exchange and on the bytes of the answer. It follows
no redirect, and its errors are sentences without credentials.
"""

from __future__ import annotations

import errno
import http.client
import io
import socket
import time
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tpusmi.configuration_file import ConfigurationError
from tpusmi.fleet.http.http_address import HttpServer
from tpusmi.fleet.http.http_config import HttpConfig
from tpusmi.fleet.http.http_proxies import Proxy
from tpusmi.fleet.http.http_secrets import without_secrets
from tpusmi.fleet.http.http_sentences import refusal, sentence
from tpusmi.fleet.http.name_lookup import LOOKUP, IpAddress, LookupStartError
from tpusmi.text import clean

HEAD_BYTES = 64 * 1024
"""The most that is read of headers, and of the body of a refusal."""
READ_BYTES = 64 * 1024
PLACES_MOST = 4
"""Addresses of one name that are tried."""
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)
"""Numbers of errors that say nothing about the server."""


class HttpError(Exception):
    """No answer that can be used. Its text is a sentence for the user, without credentials."""


class HttpRoomError(HttpError):
    """The server was not asked: there are no files, memory or threads left for that here."""


class HttpLengthError(HttpError):
    """The answer is longer than it may be."""


class HttpStatusError(HttpError):
    """The server answered with another status than 200."""

    def __init__(self, text: str, status: int, body: bytes) -> None:
        super().__init__(text)
        self.status = status
        self.body = body
        """At most HEAD_BYTES of it."""


class HttpAnswer(NamedTuple):
    """The answer of a server."""

    body: bytes
    """Decompressed."""
    content_type: str
    """In lower case, without parameters; empty where there is none."""


def get(
    server: HttpServer,
    path: str,
    config: HttpConfig,
    until_s: float,
    most_bytes: int,
    accept: str = "*/*",
) -> HttpAnswer:
    """The answer to a GET. `until_s` is of time.monotonic(): it returns or raises by then, even if
    the server sends a byte now and then. Raises HttpStatusError for a status other than 200, and
    HttpError. `path` is ASCII without spaces; it may have a query.
    """
    try:
        scheme = "https" if server.is_tls else "http"
        proxy = config.proxies(scheme, server.host, server.port)
        with _Exchange(server, proxy, until_s, most_bytes) as connection:
            connection.open(config)
            connection.ask(path, config.headers(), accept)
            return connection.answer(most_bytes, config)
    except ConfigurationError as error:
        kind = HttpRoomError if _is_without_room(error.__context__) else HttpError
        raise kind(clean(str(error), 300)) from None
    except (OSError, http.client.HTTPException, ValueError, zlib.error) as error:
        kind = HttpRoomError if _is_without_room(error) else HttpError
        raise kind(sentence(error, server.is_tls)) from None


class _Deadline(io.RawIOBase):
    """What a socket receives, until a point in time and up to a number of bytes."""

    def __init__(self, connected: socket.socket, until_s: float, most_bytes: int) -> None:
        self._socket, self._until_s, self._left = connected, until_s, most_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._socket.settimeout(_left_s(self._until_s))
        count = self._socket.recv_into(buffer)
        self._left -= count
        if self._left < 0:
            raise HttpLengthError("its answer is too long")
        return count


class _Received:
    """What http.client takes for a socket."""

    def __init__(self, raw: _Deadline) -> None:
        self._raw = raw

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._raw, READ_BYTES)


class _Exchange:
    """A connection for one request."""

    def __init__(
        self, server: HttpServer, proxy: Proxy | None, until_s: float, most_bytes: int
    ) -> None:
        self._server, self._proxy = server, proxy
        self._until_s = until_s
        # Some is read ahead.
        self._most_bytes = HEAD_BYTES + most_bytes + 2 * READ_BYTES
        self._socket: socket.socket | None = None
        self._responses: list[http.client.HTTPResponse] = []

    def __enter__(self) -> _Exchange:
        return self

    def __exit__(self, *error: object) -> None:
        for response in self._responses:
            response.close()
        if self._socket is not None:
            self._socket.close()

    def open(self, config: HttpConfig) -> None:
        """Connect, through the proxy if there is one, and begin TLS."""
        proxy = self._proxy
        if proxy is None:
            self._socket = _connected(self._server, self._until_s)
        else:
            self._socket = _connected_to_proxy(proxy, self._until_s)
        if not self._server.is_tls:
            return
        if proxy is not None:
            self._tunnel(proxy)
        name = config.server_name or self._server.host.partition("%")[0]
        context = config.context()
        self._socket.settimeout(_left_s(self._until_s))
        self._socket = context.wrap_socket(self._socket, server_hostname=name)

    def _tunnel(self, proxy: Proxy) -> None:
        to = self._server.netloc
        self._send(f"CONNECT {to} HTTP/1.1", [("Host", to), *_proxy_headers(proxy).items()])
        answer = self._response("CONNECT", HEAD_BYTES)
        if answer.status != 200:
            raise HttpError(f"the proxy {proxy.server} answers with status {answer.status}")

    def ask(self, path: str, more: Sequence[tuple[str, str]], accept: str) -> None:
        """Send the request."""
        target = path or "/"
        headers = {
            "Host": self._server.netloc,
            "User-Agent": "tpusmi",
            "Accept": accept,
            "Accept-Encoding": "gzip",
            "Connection": "close",
        }
        if self._proxy is not None and not self._server.is_tls:
            target = f"http://{self._server.netloc}{target}"
            headers |= _proxy_headers(self._proxy)
        self._send(f"GET {target} HTTP/1.1", [*headers.items(), *more])

    def answer(self, most_bytes: int, config: HttpConfig) -> HttpAnswer:
        """Read the answer to a request with that configuration."""

        def hide(text: str) -> str:
            return without_secrets(text, self._server, config)

        response = self._response("GET", self._most_bytes)
        if response.status != 200:
            why = refusal(response, config.has_secrets, hide)
            raise HttpStatusError(why, response.status, _body_of_refusal(response))
        kind = (response.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        _check_coding(response, hide)
        return HttpAnswer(_body(response, most_bytes), kind[:100])

    def _send(self, line: str, headers: Sequence[tuple[str, str]]) -> None:
        assert self._socket is not None
        lines = [line, *(f"{name}: {value}" for name, value in headers)]
        if any("\r" in one or "\n" in one for one in lines):
            raise HttpError("the request has a line break in it")
        self._socket.settimeout(_left_s(self._until_s))
        self._socket.sendall("\r\n".join((*lines, "", "")).encode())

    def _response(self, method: str, most_bytes: int) -> http.client.HTTPResponse:
        assert self._socket is not None
        raw = _Deadline(self._socket, self._until_s, most_bytes)
        response = http.client.HTTPResponse(_Received(raw), method=method)  # type: ignore[arg-type]
        # Python 3.13 writes to stderr about one that is never closed.
        self._responses.append(response)
        response.begin()
        return response


def _connected(server: HttpServer, until_s: float) -> socket.socket:
    """Tries its addresses one after the other, each with its share of the time left."""
    places = LOOKUP.places(server.host, until_s)[:PLACES_MOST]
    for number, place in enumerate(places, 1):
        share_s = _left_s(until_s) / (len(places) - number + 1)
        try:
            return _connected_to(place, server.port, share_s)
        except OSError:
            if number == len(places):
                raise
    raise AssertionError("a name has at least one address")


def _connected_to_proxy(proxy: Proxy, until_s: float) -> socket.socket:
    try:
        return _connected(proxy.server, until_s)
    except OSError as error:
        if _is_without_room(error):
            raise
        raise HttpError(f"the proxy {proxy.server}: {sentence(error, is_tls=True)}") from None


def _connected_to(place: IpAddress, port: int, within_s: float) -> socket.socket:
    connected = socket.socket(place.family, socket.SOCK_STREAM)
    try:
        connected.settimeout(within_s)
        connected.connect(place.with_port(port))
    except BaseException:
        connected.close()
        raise
    return connected


def _is_without_room(error: BaseException | None) -> bool:
    return isinstance(error, LookupStartError) or getattr(error, "errno", None) in NO_ROOM


def _left_s(until_s: float) -> float:
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _proxy_headers(proxy: Proxy) -> dict[str, str]:
    return {"Proxy-Authorization": proxy.secret[0]} if proxy.secret else {}


def _body_of_refusal(response: http.client.HTTPResponse) -> bytes:
    """The beginning of it, as far as it can be read."""
    try:
        return _body(response, HEAD_BYTES, is_cut=True)
    except (HttpError, OSError, http.client.HTTPException, ValueError, zlib.error):
        return b""


def _coding(response: http.client.HTTPResponse) -> str:
    return (response.getheader("Content-Encoding") or "identity").strip()


def _check_coding(response: http.client.HTTPResponse, hide: Callable[[str], str]) -> None:
    coding = _coding(response)
    if coding.lower() not in ("gzip", "identity"):
        raise HttpError(f"its answer is compressed with {clean(hide(coding), 40)}")


def _body(response: http.client.HTTPResponse, most_bytes: int, is_cut: bool = False) -> bytes:
    """Decompressed. Raises HttpError when it is longer, unless it is cut then."""
    unzip = zlib.decompressobj(wbits=31) if _coding(response).lower() == "gzip" else None
    parts, size = [], 0
    while size <= most_bytes and (data := response.read1(READ_BYTES)):
        if unzip is not None:
            data = unzip.decompress(data, most_bytes + 1 - size)
        parts.append(data)
        size += len(data)
    if size > most_bytes and not is_cut:
        raise HttpLengthError(f"its answer is longer than {most_bytes >> 10} KiB")
    is_short = response.length or (unzip is not None and not unzip.eof)
    if is_short and not is_cut:
        raise HttpError("its answer ends too early")
    return b"".join(parts)[:most_bytes]
