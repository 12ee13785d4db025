"""Why a process cannot be captured from the screen, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from tpusmi.model import Host, Process

READ_ONLY = "This view is read-only: it captures nothing. In a shell: tpusmi profile PID"
IN_THE_PAST = "This is the past: n returns to now, then P captures"
START_ONE = "call tpusmi.start() in it, or tpusmi profile HOST:PORT"
SIMULATE_ONE = "simulate a host with `tpusmi simulate v5e-8 --agent`"
SEVERAL = "One capture at a time: select one process"


def why_not(processes: Sequence[Process], back_s: float, host: Host | None) -> str:
    """Why those processes cannot be captured at that moment of the past; empty if one can be. The
    host is None in a view that is read-only.
    """
    if host is None:
        return READ_ONLY
    if not processes:
        return "No process is selected that could be captured"
    if back_s:
        return IN_THE_PAST
    return SEVERAL if len(processes) > 1 else _why_not_one(processes[0], host)


def has_ended(p: Process) -> str:
    """The sentence about a process that is gone."""
    return f"pid {p.pid} has ended: nothing is left to capture"


def _why_not_one(p: Process, host: Host) -> str:
    """The same of one process, now. Of a process without a TPU no snapshot has the state."""
    from tpusmi.sources.holders.procfs import waits_for_sigcont

    pid = f"pid {p.pid}"
    if p.is_dead:
        return has_ended(p)
    if not p.is_verified:
        if p.elsewhere:
            return f"{pid} is {p.elsewhere}: run tpusmi profile there"
        return "Not verified: known only from a file, so it cannot be captured."
    if waits_for_sigcont(host.path(f"/proc/{p.pid}")):
        return f"{pid} is stopped: resume it with `kill -CONT {p.pid}`"
    if p.interval_s is None and not _has_service(p, host):
        return f"{pid} has no agent: {SIMULATE_ONE if host.simulated else START_ONE}"
    return ""


def _has_service(p: Process, host: Host) -> bool:
    """True if it has published the port of its profiler service, or listens on a usual one."""
    from tpusmi.profiler.local_ports import published_port_of, usual_port_of

    is_published = published_port_of(p) is not None
    return is_published or (host.root == "/" and usual_port_of(p.pid) is not None)
