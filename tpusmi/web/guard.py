"""Which requests are answered: none that a page of somebody else's has made."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection

_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")


def why_refused(
    asked: str, origin: str | None, names: Collection[str], *, drives: bool
) -> str | None:
    """Why a request is not answered, in a sentence; None when it is.

    asked is its Host header, origin its Origin; names are those of this server, in lower case.
    drives is said of the request that opens the way to the dashboard's keys.
    """
    # A page can give its own name our address, and is then of our origin: the name gives it away.
    # An address cannot be made to mean another one.
    match = _AUTHORITY.fullmatch(asked)
    if match is None or not _is_ours(match[1].lower(), names):
        return (
            "tpusmi does not answer to this name: open it as localhost, by the address, "
            "or by the name given with --host"
        )
    # Browsers keep no page from opening a WebSocket elsewhere. They say whose page it is.
    if origin is None:
        return "tpusmi is driven by its own page only" if drives else None
    if origin.lower() not in {f"{scheme}://{asked.lower()}" for scheme in ("http", "https")}:
        return "tpusmi answers to its own page only"
    return None


def is_loopback(host: str) -> bool:
    """True for an address, or the name of one, that only this machine reaches."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_ours(name: str, names: Collection[str]) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name == "localhost" or name in names
    return True
