"""The port of a job's profiler service, as its agent publishes it."""

from __future__ import annotations

from tpusmi.model import Process


def port_of(process: Process) -> int | None:
    """The published port of a process whose segment the kernel confirms; None without one."""
    port = process.facts.get("profiler_port")
    return port if isinstance(port, int) and process.is_verified and 0 < port < 65536 else None
