"""Captures a process by its pid: through its agent, else through its profiler service."""

from __future__ import annotations

import os
from collections.abc import Callable

from tpusmi.model import Host, Snapshot
from tpusmi.profiler.local_ports import (
    listener_of,
    other_ports_of,
    published_port_of,
    usual_port_of,
)
from tpusmi.profiler.requests import CapturedTrace, CaptureRequest, Progress
from tpusmi.trace.troubles import CaptureError, TooLongError, Trouble
from tpusmi.wire.identity import start_ticks

Look = Callable[[], Snapshot]
PORTS_MOST = 4
"""Ports of a process without an agent that a message lists."""


def capture_process(
    host: Host, pid: int, request: CaptureRequest, folder: str, callbacks: tuple[Look, Progress]
) -> CapturedTrace:
    """A trace of that process, in `folder`. Raises CaptureError with all that makes one possible.

    The callbacks give a snapshot of the host, and take sentences about the progress.
    """
    from tpusmi.profiler import in_process

    look, progress = callbacks
    try:
        return in_process.capture(host, pid, request, folder, progress)
    except CaptureError as error:
        is_final = error.trouble not in (Trouble.ABSENT, Trouble.DENIED)
        if is_final and not isinstance(error, TooLongError):
            raise
        port = fallback_port(host, look(), pid, error.trouble)
        if port is None:
            raise with_ways(host, pid, error) from None
    return _through(port, pid, request, folder, progress)


def fallback_port(host: Host, s: Snapshot, pid: int, trouble: Trouble) -> int | None:
    """The port by which to capture a process whose agent did not do it for that reason: the one
    that it has published, or a usual one on which it listens. None without one, and where the job
    itself forbids captures.
    """
    process = next((p for p in s.processes if p.pid == pid and p.is_living), None)
    own = process is None or os.geteuid() in (0, process.uid)
    if trouble is Trouble.DENIED and own:
        return None
    published = None if process is None else published_port_of(process)
    if published is not None:
        return published if listener_of(published) in (None, pid) else None
    return usual_port_of(pid) if host.root == "/" else None


def _through(
    port: int, pid: int, request: CaptureRequest, folder: str, progress: Progress
) -> CapturedTrace:
    """The trace of the service on that port. Raises CaptureError, also if another process has it:
    the port is the job's own word, its owner is the kernel's.
    """
    from tpusmi.profiler.remote import capture
    from tpusmi.profiler.remote_addresses import Address

    (answer,) = capture([Address("localhost", port)], request, folder, progress, pid=pid)
    if isinstance(answer, CaptureError):
        raise answer
    return answer


def with_ways(host: Host, pid: int, error: CaptureError) -> CaptureError:
    """The error; where a living process has nothing to capture it with, with all that changes
    that.
    """
    if error.trouble is not Trouble.ABSENT or start_ticks(host.path("/proc"), pid) is None:
        return error
    from tpusmi.profiler.agent_words import NOT_JAX
    from tpusmi.profiler.which_job import OTHER_WAYS

    if NOT_JAX in str(error):
        return error
    ports = () if host.simulated else other_ports_of(pid)[:PORTS_MOST]
    listens = " or ".join(f"`tpusmi profile :{port}`" for port in ports)
    hint = f"; it already listens: if that is its profiler, try {listens}" if ports else ""
    return CaptureError(error.trouble, f"{error}, {OTHER_WAYS}{hint}")
