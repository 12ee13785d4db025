"""Who sees our secrets. They are taken out of texts of servers and proxies, of which some repeat
what they were sent, and there is a sentence where they leave this machine unencrypted.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator

from tpusmi.configuration_file import ConfigurationError
from tpusmi.fleet.http.http_address import HttpServer
from tpusmi.fleet.http.http_config import HttpConfig
from tpusmi.fleet.http.http_proxies import is_this_machine
from tpusmi.text import HIDDEN

SECRET_LEAST = 4
"""Characters of a secret that is looked for."""


def without_secrets(text: str, server: HttpServer, config: HttpConfig) -> str:
    """The text, of any length, without what only the server and its proxy may know."""
    secrets = {part for value in _values(server, config) for part in _parts(value)}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SECRET_LEAST:
            text = text.replace(secret, HIDDEN)
    return text


def unencrypted(servers: Iterable[HttpServer], config: HttpConfig) -> tuple[str, ...]:
    """A sentence about servers that get the credentials over a network without TLS, if any does."""
    plain = [s for s in servers if not s.is_tls and not is_this_machine(s.host)]
    if not config.has_secrets or not plain:
        return ()
    more = f" and {len(plain) - 1} more" if len(plain) > 1 else ""
    return (f"the credentials of --http-config are sent to {plain[0]}{more} unencrypted",)


def _values(server: HttpServer, config: HttpConfig) -> Iterator[str]:
    try:
        yield from config.secrets()
        proxy = config.proxies("https" if server.is_tls else "http", server.host, server.port)
    except ConfigurationError:
        return
    if proxy is not None:
        yield from proxy.secret


def _parts(value: str) -> Iterator[str]:
    """The secrets in the value of a header, and all of it."""
    yield value
    scheme, _, rest = value.partition(" ")
    yield rest
    if scheme != "Basic":
        return
    try:
        both = base64.b64decode(rest, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return
    yield from (both, both.partition(":")[2])
