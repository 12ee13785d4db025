"""Ports on which nobody listens."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

from support.waits import until

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
LEAST = 10_000


def free_port() -> int:
    """One of the loopback interface that is free. The kernel gives none of these to a program that
    asks for any port, so a test beside this one does not get it by chance.
    """
    most = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 0

    def one() -> int:
        port = LEAST + secrets.randbelow(most - LEAST) if most > 2 * LEAST else 0
        try:
            with socket.create_server(("127.0.0.1", port)) as server:
                return int(server.getsockname()[1])
        except OSError:
            return 0

    return until(one, what="a port that is free")
