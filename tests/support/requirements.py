"""What a test needs of the machine: without it, the test is skipped."""

from __future__ import annotations

import shutil
import socket
from importlib import metadata

import pytest

USUAL = {"bash", "setsid", "unshare"}
"""Programs that few machines lack."""


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip where one of them is missing."""
    missing = [name for name in names if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"no {', '.join(missing)} here")


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


HAS_IPV6 = _has_ipv6()
"""Many containers have none."""
IPV6 = pytest.mark.skipif(not HAS_IPV6, reason="no IPv6 here")


def _is_old_jax() -> bool:
    try:
        first, second = metadata.version("jaxlib").split(".")[:2]
    except metadata.PackageNotFoundError:
        return False
    return (int(first), int(second)) < (0, 9)


HOST_EVENTS_OVER_GRPC = pytest.mark.skipif(
    _is_old_jax(), reason="this jaxlib is not asked for host events: it may hang"
)
"""Without them a capture over gRPC shows no operation of a CPU."""
