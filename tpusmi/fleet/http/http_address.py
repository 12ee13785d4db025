"""Servers to ask over HTTP, as users write them."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from tpusmi.text import clean

URL_MOST = 2000
"""Characters."""
PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[A-Za-z0-9_](?:[\w.-]{0,253})|[0-9A-Fa-f:.]{2,45}(?:%[\w.-]{1,40})?", re.ASCII)
_PATH = re.compile(r"(?:/[\x21-\x7e]*)?")


class HttpServer(NamedTuple):
    """A host and a port that speaks HTTP, or HTTP over TLS."""

    host: str
    """A name or an IP address, without brackets."""
    port: int
    is_tls: bool = False

    @property
    def netloc(self) -> str:
        """`host:port`, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"https://{self.netloc}" if self.is_tls else self.netloc


def server_and_path(url: str, usual_port: int | None = None) -> tuple[HttpServer, str]:
    """The server of an `http://` or `https://` URL, and its path with the query, as it is sent.
    `usual_port` is for a URL without a port; None for the one of its scheme.

    Raises ValueError with a sentence that has no password in it.
    """
    name = clean(url.rpartition("@")[2].partition("?")[0], 80)
    try:
        parts = urlsplit(url.strip()[: URL_MOST + 1])
        port = parts.port
    except ValueError:
        raise ValueError(f"{name} is not a URL") from None
    if "@" in parts.netloc:
        raise ValueError(f"{name}: put the user and the password in a file for --http-config")
    if len(url) > URL_MOST or parts.scheme not in PORTS:
        raise ValueError(f"{name} is not a URL such as http://host:9090")
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    if not is_host(parts.hostname or "") or not _PATH.fullmatch(path):
        raise ValueError(f"{name} is not a URL such as http://host:9090")
    if port is None:
        port = PORTS[parts.scheme] if usual_port is None else usual_port
    if not 0 < port < 65536:
        raise ValueError(f"{name}: {port} is not a port")
    return HttpServer(parts.hostname or "", port, parts.scheme == "https"), path


def is_host(text: str) -> bool:
    """True for a name of a host, or an IP address without brackets."""
    return _HOST.fullmatch(text) is not None
