"""The port of a job's profiler service, as its agent publishes it."""

from __future__ import annotations

import os

from tpusmi.model import Process, Snapshot
from tpusmi.trace.troubles import Trouble


def published_port(s: Snapshot, pid: int, trouble: Trouble) -> int | None:
    """The port by which to capture a process whose agent did not do it for that reason; None
    without one, and where the job itself forbids captures.
    """
    process = next((p for p in s.processes if p.pid == pid and p.is_living), None)
    if process is None:
        return None
    is_forbidden = trouble is Trouble.DENIED and os.geteuid() in (0, process.uid)
    return None if is_forbidden else port_of(process)


def port_of(process: Process) -> int | None:
    """The published port of a process whose segment the kernel confirms."""
    port = process.facts.get("profiler_port")
    return port if isinstance(port, int) and process.is_verified and 0 < port < 65536 else None
