"""Addresses of profiler services as users write them: `host:port`, `:9012`, `grpc://…`."""

from __future__ import annotations

import re
from typing import NamedTuple

from tpusmi.text import clean

ADDRESS_MOST = 300
"""Characters. The name of a host has at most 253."""
USUAL_PORT = 9012
"""The port in the examples of JAX, torch_xla and xprof."""

_SCHEMES = ("grpc://", "dns:///", "ipv4:", "ipv6:")
"""As capture_tpu_profile and gRPC write addresses."""
_ADDRESS = re.compile(
    r"(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|((?!-)[\w.-]*))(?::(\d{1,5}))?", re.ASCII
)
BUCKETS = ("gs", "s3")


class Address(NamedTuple):
    """A host and a port to connect to."""

    host: str
    """A name or an IP address, without brackets."""
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse(text: str, usual_port: int = USUAL_PORT) -> Address:
    """The address in a text: without a host it is this one, without a port the usual one.

    Raises ValueError with a sentence that says what is wrong.
    """
    rest = text.strip()[: ADDRESS_MOST + 1]
    scheme = next((scheme for scheme in _SCHEMES if rest.lower().startswith(scheme)), "")
    rest = rest[len(scheme) :].removesuffix("/")
    match = _ADDRESS.fullmatch(f":{rest}" if rest.isascii() and rest.isdigit() else rest)
    if len(rest) > ADDRESS_MOST or match is None or not rest:
        raise ValueError(_advice(clean(rest, 80)))
    port = int(match[3] or usual_port)
    if not 0 < port < 65536:
        raise ValueError(f"{clean(rest, 80)}: {port} is not a port")
    return Address(match[1] or match[2] or "localhost", port)


def _advice(rest: str) -> str:
    scheme, separator, _ = rest.partition("://")
    if separator and scheme in BUCKETS:
        return f"{rest}: tpusmi reads local files; copy the trace here first"
    if separator:
        return f"{rest}: an address is written without {scheme}://"
    if rest.count(":") > 1 and re.fullmatch(r"[0-9A-Fa-f:]+", rest):
        return f"{rest} needs brackets around its IPv6 address: write [::1]:{USUAL_PORT}"
    return f"{rest} is not a pid, an address such as localhost:{USUAL_PORT}, or a path"
