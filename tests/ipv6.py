"""Whether this machine, or this network namespace, has IPv6. Many containers have none."""

from __future__ import annotations

import socket

import pytest


def _is_here() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


HAS_IPV6 = _is_here()
IPV6 = pytest.mark.skipif(not HAS_IPV6, reason="no IPv6 here")
