"""The port of a process's profiler, as its agent has published it."""

from __future__ import annotations

from tpusmi.model import Process


def port_of(process: Process) -> int | None:
    """The published port; None without one, or where the kernel does not confirm the segment."""
    port = process.facts.get("profiler_port")
    return port if isinstance(port, int) and process.is_verified and 0 < port < 65536 else None
