"""A TCP connection to a host that may be anywhere, or down; and why there is none."""

from __future__ import annotations

import errno
import socket
import time
from enum import Enum
from typing import Any

from tpusmi.profiler.remote_addresses import Address

TRIES_MOST = 8
"""Addresses of one host that are tried."""
_NO_ROUTE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class Fault(Enum):
    """Why there is no gRPC with a server."""

    UNKNOWN_HOST = "unknown host"
    REFUSED = "refused"
    """A machine is there, and no process listens on the port."""
    NO_ROUTE = "no route"
    SILENT = "silent"
    """Nothing came back at all."""
    LATE = "late"
    CLOSED = "closed"
    HTTP1 = "HTTP/1"
    TLS = "TLS"
    NOT_GRPC = "not gRPC"
    ENDLESS = "endless"
    SYSTEM = "system"
    """Our own machine has no socket left, or the like: `details` says it."""


class StreamError(Exception):
    """A connection that cannot be used, or not anymore."""

    def __init__(self, fault: Fault, details: str = "") -> None:
        super().__init__(f"{fault.value} {details}".strip())
        self.fault = fault
        self.details = details


def connect(address: Address, until_s: float) -> socket.socket:
    """A connection to the first address of the host that answers. Raises StreamError."""
    places = _places(address)
    errors = []
    for place, (family, target) in enumerate(places):
        left_s = (until_s - time.monotonic()) / (len(places) - place)
        if left_s <= 0:
            break
        try:
            return _connected(family, target, left_s)
        except TimeoutError:
            errors.append(StreamError(Fault.SILENT))
        except OSError as error:
            errors.append(_refusal(error))
    raise min(errors, key=_rank, default=StreamError(Fault.SILENT))


def _rank(error: StreamError) -> int:
    """How much an error says about the host, lowest first: it may lack IPv6, or we may."""
    order = (Fault.REFUSED, Fault.SILENT, Fault.NO_ROUTE)
    return order.index(error.fault) if error.fault in order else len(order)


def _places(address: Address) -> list[tuple[int, Any]]:
    """Families and addresses of a host."""
    if address.host == "localhost":  # by name it may lack the one on which the server listens
        loopbacks = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
        return [(family, (host, address.port)) for family, host in loopbacks]
    try:
        places = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise StreamError(Fault.UNKNOWN_HOST) from None
    return [(family, target) for family, _, _, _, target in places[:TRIES_MOST]]


def _connected(family: int, target: Any, limit_s: float) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(limit_s)
        connection.connect(target)
        # A connect to a free port can meet itself: the kernel gave it that very port.
        if connection.getsockname() == connection.getpeername():
            raise ConnectionRefusedError(errno.ECONNREFUSED, "")
    except BaseException:
        connection.close()
        raise
    return connection


def _refusal(error: OSError) -> StreamError:
    if isinstance(error, ConnectionRefusedError):
        return StreamError(Fault.REFUSED)
    is_unreachable = error.errno in _NO_ROUTE
    return StreamError(
        Fault.NO_ROUTE if is_unreachable else Fault.SYSTEM, error.strerror or str(error)
    )
