"""JAX's own profiler server, started once JAX has a backend: `tpusmi.start(profiler_port=9012)`.

The server listens on all addresses, and asks for no password: it is the job's choice.
"""

from __future__ import annotations

import sys
from typing import Any

from tpusmi.agent import jaxread
from tpusmi.agent.segment import Segment

PORT_MOST = 65535
HANGS_FROM, HANGS_UNTIL = (0, 5), (0, 9)
"""jaxlib, seen from 0.5.3 to 0.8.2: a capture by its server, with host events, hangs the process
for good where TensorFlow cannot be imported.
"""


class ProfilerServer:
    """The server of this process, if the job wants one."""

    def __init__(self) -> None:
        self.port: int | None = None
        """The port on which this process listens; None before, and where it does not."""
        self.wish: int | None = None
        """The port that the job wants, until it is tried."""
        self._server: Any = None
        """JAX ends the server when nothing refers to it."""

    def serve(self, segment: Segment) -> None:
        """Start it if it is wished for, and publish its port. It waits until the job has a backend,
        since JAX would make one. A server that the job itself has started on that port counts.
        """
        if self.wish is None or jaxread.backend() is None:
            return
        port, self.wish = self.wish, None
        try:
            trouble = self._start(port)
        except Exception as error:  # noqa: BLE001  # JAX's errors have many types
            trouble = f"JAX starts no profiler server on port {port}: {error}"
        if trouble:
            segment.warn("no_profiler_server", trouble)
        segment.publish("profiler_port", self.port)

    def _start(self, port: int) -> str:
        """Start it; why it does not listen, or empty."""
        from tpusmi.sources.sockets import listening_sockets, sockets_of

        def is_ours() -> bool:
            return listening_sockets().get(port) in (sockets_of("/proc/self") or ())

        if not is_ours():
            if _hangs():
                return (
                    f"jaxlib {_version()} would hang in a capture by its server, without TensorFlow"
                )
            if port in listening_sockets():
                return f"another program listens on port {port}, wanted for JAX's profiler server"
            self._server = sys.modules["jax"].profiler.start_server(port)
            if not is_ours():  # JAX prints why, and raises nothing
                return f"JAX's profiler server does not listen on port {port}"
        self.port = port
        return ""


def _hangs() -> bool:
    """True if a capture by the server of this jaxlib hangs the process."""
    from importlib.util import find_spec

    numbers = _version().split(".")[:2]
    if not all(number.isdecimal() for number in numbers):
        return False
    is_affected = HANGS_FROM <= tuple(map(int, numbers)) < HANGS_UNTIL
    return is_affected and find_spec("tensorflow") is None


def _version() -> str:
    return str(getattr(sys.modules.get("jaxlib"), "__version__", ""))


def checked_port(port: int | None) -> int | None:
    """The port; None for none. Raises TypeError and ValueError for one that cannot be."""
    if port is None:
        return None
    if isinstance(port, bool) or not hasattr(port, "__index__"):
        raise TypeError("profiler_port must be a whole number, or None")
    number = port.__index__()
    if not 0 < number <= PORT_MOST:
        raise ValueError(f"profiler_port must be between 1 and {PORT_MOST}, not {number}")
    return number
