"""Which proxy a request goes through: the HTTP configuration's, or that of the environment as curl
and promtool read it (`http_proxy`, `https_proxy`, `no_proxy`).
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

from tpusmi.configuration_file import ConfigurationError, flag, text
from tpusmi.fleet.http.http_address import HttpServer

Proxies = Callable[[str, str, int], "Proxy | None"]
"""By scheme, host and port of the server: its proxy; None for none. Raises ConfigurationError."""


class Proxy(NamedTuple):
    """An HTTP proxy."""

    host: str
    port: int
    secret: tuple[str, ...] = ()
    """The value of Proxy-Authorization, where it needs one."""

    @property
    def server(self) -> HttpServer:
        """What is connected to."""
        return HttpServer(self.host, self.port)

    def __repr__(self) -> str:
        return f"Proxy({self.host}:{self.port})"


def proxies_of(whole: Mapping[str, Any]) -> Proxies:
    """What the configuration says. Raises ConfigurationError."""
    url, no_proxy = text(whole, "proxy_url"), text(whole, "no_proxy")
    if url is None:
        if no_proxy is not None:
            raise ConfigurationError("no_proxy needs proxy_url")
        is_used = flag(whole, "proxy_from_environment", True)
        return _of_environment() if is_used else lambda scheme, host, port: None
    if flag(whole, "proxy_from_environment", False):
        raise ConfigurationError("only one of proxy_url and proxy_from_environment can be used")
    proxy = _parsed("proxy_url", url)
    return lambda scheme, host, port: None if _is_left_out(host, port, no_proxy or "") else proxy


def _of_environment() -> Proxies:
    # Loaded once: a hundred threads that load it at once need memory for all of them.
    from urllib.request import getproxies_environment

    def proxy_of(scheme: str, host: str, port: int) -> Proxy | None:
        names = getproxies_environment()
        url = names.get(scheme)
        if not url or _is_left_out(host, port, names.get("no", "")):
            return None
        return _parsed(f"{scheme}_proxy", url)

    return proxy_of


def _parsed(name: str, url: str) -> Proxy:
    """The proxy of a URL, whose password is not in the error."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port or 80
    except ValueError:
        raise ConfigurationError(f"{name} is not the URL of a proxy") from None
    if parts.scheme != "http" or not parts.hostname or not parts.hostname.isprintable():
        raise ConfigurationError(f"{name} must be http://HOST:PORT: tpusmi supports no other proxy")
    return Proxy(parts.hostname, port, _authorization(parts))


def _authorization(parts: SplitResult) -> tuple[str, ...]:
    if parts.username is None:
        return ()
    both = b":".join(map(_bytes_of, (parts.username, parts.password or "")))
    return (f"Basic {base64.b64encode(both).decode('ascii')}",)


def _bytes_of(text: str) -> bytes:
    """What is quoted in it; the environment may have bytes that are not UTF-8."""
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape"))


def is_this_machine(host: str) -> bool:
    """True for names and addresses that no other machine has."""
    name = host.lower().rstrip(".")
    address = _address(name)
    address = getattr(address, "ipv4_mapped", None) or address  # `::ffff:127.0.0.1`
    return name == "localhost" or (address is not None and address.is_loopback)


def _is_left_out(host: str, port: int, no_proxy: str) -> bool:
    """Whether it is asked directly: this machine is, and what `no_proxy` has."""
    if is_this_machine(host):
        return True
    name = host.lower().rstrip(".")
    address = _address(name)
    return any(_fits(name, address, port, one.strip().lower()) for one in no_proxy.split(","))


def _fits(name: str, address: object, port: int, entry: str) -> bool:
    """`*`, an address, a network, a domain with what is below it, each with a port or without."""
    if not entry:
        return False
    if entry == "*":
        return True
    if "/" in entry:
        return address is not None and _is_in(address, entry)
    stem, colon, number = entry.rpartition(":")
    if colon and number.isdigit() and (stem.endswith("]") or ":" not in stem):
        if number != str(port):
            return False
        entry = stem
    entry = entry.strip("[]").lstrip("*")
    if address is not None:
        return _address(entry) == address
    return name == entry.lstrip(".") or name.endswith(f".{entry.lstrip('.')}")


def _is_in(address: Any, network: str) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
