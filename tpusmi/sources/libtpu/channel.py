"""Who listens on a port of this machine, what calls to it go through, and why one failed."""

from __future__ import annotations

from typing import Any, Protocol

from tpusmi.text import clean

LATE = "DEADLINE_EXCEEDED"
CONNECT_S = 0.1
"""For a connect on this machine, which the kernel answers: only a full backlog takes longer."""

ENDLESS, HTTP1 = "more than is allowed for", "HTTP/1"
"""Why a connection was given up, beside what the kernel says."""
_UNAVAILABLE = {HTTP1: "answers HTTP/1, not gRPC", ENDLESS: "sends without end"}


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


def connected(target: str) -> AnyChannel:
    """What calls to that target go through. Without a server nothing of it is imported."""
    from tpusmi.sources.libtpu.plain import PlainChannel

    return PlainChannel(target)


class AnyChannel(Protocol):
    """What calls go through."""

    def call(self, method: str, request: Any, timeout_s: float) -> Any: ...

    def close(self) -> None: ...


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
        return _UNAVAILABLE.get(details, "accepts but does not speak gRPC")
    if name == "RESOURCE_EXHAUSTED":
        return "answers more than is sane"
    return f"answers {name}: {clean(details, 120)}".rstrip(": ")
