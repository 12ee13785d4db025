"""The proxy for a server, from the environment as curl reads it: `http_proxy` (only in lower case),
`https_proxy`, `all_proxy` and `no_proxy`.
"""

from __future__ import annotations

import base64
import os
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from tpusmi.fleet.http_address import Server, is_host

USUAL_PORT = 1080
"""Of a proxy without a port, for curl."""


class Proxy(NamedTuple):
    """A proxy that speaks HTTP without TLS."""

    server: Server
    authorization: str | None
    """Value of `Proxy-Authorization`."""


def proxy_for(server: Server) -> Proxy | None:
    """None where the server is asked directly. Raises OSError with a sentence."""
    names = ("https_proxy", "HTTPS_PROXY") if server.is_tls else ("http_proxy",)
    name = next((n for n in (*names, "all_proxy", "ALL_PROXY") if os.environ.get(n)), None)
    if name is None or _is_left_out(server):
        return None
    return parsed(os.environ[name], name)


def parsed(text: str, name: str) -> Proxy:
    """The proxy in a setting with that name. Raises OSError with a sentence without the text, which
    may have a password in it.
    """
    text = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(text)
        port = parts.port or USUAL_PORT
    except ValueError:
        raise OSError(f"{name} is not the address of a proxy") from None
    if parts.scheme != "http":
        raise OSError(f"{name}: only proxies of the kind http:// can be used")
    if not is_host(parts.hostname or ""):
        raise OSError(f"{name} is not the address of a proxy")
    authorization = None
    if parts.username is not None:
        both = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {base64.b64encode(both.encode()).decode()}"
    return Proxy(Server(parts.hostname or "", port), authorization)


def _is_left_out(server: Server) -> bool:
    """True if `no_proxy` names the server, a domain that it is in, or its network."""
    text = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    return any(_covers(part.strip(" []"), server.host) for part in text[:20_000].split(","))


def _covers(part: str, host: str) -> bool:
    import ipaddress

    if part == "*":
        return True
    try:
        if "/" in part:
            return ipaddress.ip_address(host) in ipaddress.ip_network(part, strict=False)
    except ValueError:
        return False
    domain, name = part.strip(".").lower(), host.strip(".").lower()
    return bool(domain) and (name == domain or name.endswith(f".{domain}"))
