"""Why a process cannot be captured from the screen, in a sentence. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tpusmi.model import Process
from tpusmi.profiler.published_port import port_of

READ_ONLY = "This view is read-only: it captures nothing. In a shell: tpusmi profile PID"
IN_THE_PAST = "This is the past: n returns to now, then P captures"
SEVERAL = "One capture at a time: select one process"


def why_not(processes: Sequence[Process], back_s: float, *, is_read_only: bool) -> str:
    """Why those processes cannot be captured at that moment of the past; empty if one can be."""
    if is_read_only:
        return READ_ONLY
    if not processes:
        return "No process is selected that could be captured"
    if back_s:
        return IN_THE_PAST
    return SEVERAL if len(processes) > 1 else why_not_one(processes[0])


def why_not_one(p: Process) -> str:
    """The same of one process, now."""
    pid = f"pid {p.pid}"
    if p.is_dead:
        return f"{pid} has ended: nothing is left to capture"
    if not p.is_verified:
        if p.elsewhere:
            return f"{pid} is {p.elsewhere}: run tpusmi profile there"
        return "Not verified: known only from a file, so it cannot be captured."
    if p.is_stopped:
        return f"{pid} is stopped: it would not answer"
    if p.interval_s is None and port_of(p) is None:
        return f"{pid} has no agent: call tpusmi.start() in it, or tpusmi profile HOST:PORT"
    return ""
