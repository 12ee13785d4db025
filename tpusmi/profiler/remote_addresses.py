"""Addresses of profiler services as users write them: `host:port`, `:9012`, `grpc://…`."""

from __future__ import annotations

import re
from typing import NamedTuple

from tpusmi.text import clean
from tpusmi.trace.troubles import CaptureError, Trouble

ADDRESS_MOST = 300
"""Characters. The name of a host has at most 253."""
USUAL_PORT = 9012
"""The port in the examples of JAX, torch_xla and xprof."""

_SCHEMES = ("grpc://", "dns:///", "ipv4:", "ipv6:")
"""As capture_tpu_profile and gRPC write addresses."""
_HOST = r"(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([\w.-]*)):"


class Address(NamedTuple):
    """A host and a port to connect to."""

    host: str
    """A name or an IP address, without brackets."""
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse(text: str) -> Address:
    """The address in a text. Without a host it is this one.

    Raises CaptureError(FAILED) with a sentence that says what is wrong.
    """
    rest = text.strip()[: ADDRESS_MOST + 1]
    scheme = next((scheme for scheme in _SCHEMES if rest.lower().startswith(scheme)), "")
    rest = rest[len(scheme) :].removesuffix("/")
    if rest.isascii() and rest.isdigit():
        rest = f":{rest}"
    host, _, port = rest.rpartition(":")
    match = re.fullmatch(_HOST, f"{host}:")
    if len(rest) > ADDRESS_MOST or match is None or not _is_port(port):
        raise CaptureError(Trouble.FAILED, _advice(rest))
    return Address(match[1] or match[2] or "localhost", int(port))


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 65536


def _advice(rest: str) -> str:
    shown = clean(rest, 80)
    if "://" in rest:
        return (
            f"{shown} is not the address of a profiler service: write host:port or grpc://host:port"
        )
    if re.fullmatch(r"[\w.-]{1,253}", rest) and not rest.isdigit():
        return f"{shown} has no port: write {shown}:{USUAL_PORT}"
    if rest.count(":") > 1 and re.fullmatch(r"[0-9A-Fa-f:]+", rest):
        return f"{shown} needs brackets around its IPv6 address: write [::1]:{USUAL_PORT}"
    return f"{shown} is not an address: write host:port, such as localhost:{USUAL_PORT}"
