"""A quiet gRPC channel to a port of this machine, and why one failed, in words.

grpc costs six times the start of Python, so a plain connect finds out first whether anybody
listens.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from tpusmi.text import clean

LATE = "DEADLINE_EXCEEDED"
CONNECT_S = 0.1
"""For a connect on this machine, which the kernel answers: only a full backlog takes longer."""
RECEIVE_MOST_BYTES = 4 << 20
OPTIONS = (
    ("grpc.enable_http_proxy", 0),  # http_proxy would take localhost to the proxy
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", RECEIVE_MOST_BYTES),
)

_QUIET = {"GRPC_VERBOSITY": "NONE", "GRPC_TRACE": None, "GRPC_ENABLE_FORK_SUPPORT": "0"}
"""No log, and no handlers that run, and log, when a child is started."""
_IMPORTING = threading.Lock()
"""Several servers are met at once; the environment changes for one import."""


def target(port: int) -> str | None:
    """The gRPC target of whoever listens on that port of this machine; None when nobody does."""
    # The C half of `socket`, which itself imports half as much as bare Python does.
    from _socket import AF_INET, AF_INET6, socket

    loopbacks = ((AF_INET, "127.0.0.1", "ipv4:127.0.0.1"), (AF_INET6, "::1", "ipv6:[::1]"))
    for family, host, name in loopbacks:
        try:
            probe = socket(family)
        except OSError:  # no IPv6 here
            continue
        try:
            probe.settimeout(CONNECT_S)
            probe.connect((host, port))
            # A connect to a free port can meet itself: the kernel gave it that very port.
            if probe.getsockname() != probe.getpeername():
                return f"{name}:{port}"
        except TimeoutError:
            return f"{name}:{port}"
        except (OSError, OverflowError):
            continue
        finally:
            probe.close()
    return None


class AnyChannel(Protocol):
    """What calls go through: grpc's channel, or our plain one."""

    def call(self, method: str, request: Any, timeout_s: float) -> Any: ...

    def close(self) -> None: ...


class Channel:
    """A channel to one target; its calls are futures that fail at their deadline."""

    def __init__(self, target: str) -> None:
        """Raises ImportError where grpcio is not installed."""
        self._channel = _grpc().insecure_channel(target, options=OPTIONS)

    def call(self, method: str, request: Any, timeout_s: float) -> Any:
        """Send the request; result() of the future is the answer's bytes, or raises RpcError."""
        send = self._channel.unary_unary(method)
        return send.future(request.SerializeToString(), timeout=timeout_s)

    def close(self) -> None:
        """Give up every call and the connection."""
        self._channel.close()


def status(call: Any) -> str:
    """The name of the status with which a call ended, once it has: `OK`, `NOT_FOUND`."""
    return str(call.code().name)


def words(call: Any) -> str:
    """Why a call failed, to stand behind "port 8431"."""
    name, details = status(call), call.details() or ""
    if name == LATE:
        return "accepts and does not answer"
    if name == "UNIMPLEMENTED":
        return "is not libtpu's metrics service"
    if name == "UNAVAILABLE":
        is_http = "http1" in details or "HTTP status" in details
        return "answers HTTP/1, not gRPC" if is_http else "accepts but does not speak gRPC"
    if name == "RESOURCE_EXHAUSTED":
        return "answers more than is sane"
    return f"answers {name}: {clean(details, 120)}".rstrip(": ")


def _grpc() -> Any:
    """The grpc module. It reads its environment once, while it is imported: told to be quiet."""
    import sys

    with _IMPORTING:
        is_ours = "grpc" not in sys.modules  # else it is somebody's, who may want its log
        with _environment(_QUIET if is_ours else {}):
            import grpc
        return grpc


@contextmanager
def _environment(wanted: Mapping[str, str | None]) -> Iterator[None]:
    """Those variables for a moment; no child starts in it, and none sees them afterwards."""
    before = {name: os.environ.get(name) for name in wanted}
    _set(wanted)
    try:
        yield
    finally:
        _set(before)


def _set(wanted: Mapping[str, str | None]) -> None:
    for name, value in wanted.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
