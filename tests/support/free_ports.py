"""Ports on which nobody listens."""

from __future__ import annotations

import socket


def free_port() -> int:
    """One of the loopback interface that was free just now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
