"""What the answers of an agent to a request for a capture mean, in words."""

from __future__ import annotations

from tpusmi.trace.troubles import Trouble
from tpusmi.wire.capture_messages import (
    ACCEPTED,
    BUSY,
    CAPTURING,
    ENDED,
    EXPIRED,
    FAILED,
    FORBIDDEN,
    HANGS,
    NO_BACKEND,
    NO_ROOM,
    SAVING,
    TOO_LARGE,
)

STATES = {
    ACCEPTED: "the agent begins",
    CAPTURING: "capturing",
    SAVING: "JAX saves the trace",
}
"""What a state of a capture means, for the progress."""
TROUBLES = {
    FORBIDDEN: Trouble.DENIED,
    BUSY: Trouble.BUSY,
    NO_BACKEND: Trouble.ABSENT,
    **dict.fromkeys((NO_ROOM, TOO_LARGE, EXPIRED, ENDED, HANGS, FAILED), Trouble.FAILED),
}
"""The kind of each reason why there is no trace."""
NOT_JAX = "does not use JAX now: there is nothing to capture"
_SENTENCES = {
    FORBIDDEN: "process {pid} forbids captures: TPUSMI_PROFILE=0 in its environment",
    BUSY: "process {pid} is being captured already",
    NO_BACKEND: "process {pid} " + NOT_JAX,
    NO_ROOM: "there is no room for the trace of process {pid}",
    TOO_LARGE: "the trace of process {pid} is too large: capture for a shorter time",
    EXPIRED: "the request reached process {pid} too late, or its clock differs from ours",
    ENDED: "process {pid}, or its agent, ended during the capture",
    HANGS: "JAX in process {pid} does not finish a trace: a capture hangs there",
    FAILED: "JAX in process {pid} did not take a trace",
}


def refusal(reason: str, pid: int, message: str = "") -> str:
    """Why there is no trace of that process, with what its agent says about it."""
    sentence = _SENTENCES[reason].format(pid=pid)
    return f"{sentence} ({message})" if message else sentence


def lateness(pid: int, state: str) -> str:
    """Why a capture is late; `state` is that of its last answer, empty where there is none."""
    if not state:
        return f"the agent of process {pid} is silent: the job may be stopped, or busy in one call"
    sentence = f"the capture of process {pid} took too long: it was {state} when the time was over"
    return f"{sentence} (--timeout)"
