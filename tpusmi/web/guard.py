"""Which requests get an answer: none that come from a page of another site."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection

_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")


def why_refused(
    host: str, origin: str | None, names: Collection[str], *, drives: bool
) -> str | None:
    """Why a request gets no answer, in a sentence; None when it gets one.

    host is its Host header, origin its Origin; names are those of this server, in lower case.
    drives is True for the request that opens the connection to the dashboard's keys.
    """
    # A site can make its own name resolve to this address, and then has this origin: its name
    # reveals that. A numeric address cannot be faked that way.
    match = _AUTHORITY.fullmatch(host)
    if match is None or not _is_ours(match[1].lower(), names):
        return (
            "tpusmi does not answer to this name: open localhost, the numeric address, "
            "or the name given with --host"
        )
    # Browsers let any page open a WebSocket anywhere, but send the origin of the page.
    if origin is None:
        return "tpusmi accepts keys from its own page only" if drives else None
    if origin.lower() not in {f"{scheme}://{host.lower()}" for scheme in ("http", "https")}:
        return "tpusmi answers its own page only"
    return None


def is_loopback(host: str) -> bool:
    """True for an address or name that only this machine can reach."""
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
