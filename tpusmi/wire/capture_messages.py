"""A request for a capture, and a job's answer: what they hold, and their JSON.

Each side reads the other's bytes as those of a stranger.
"""

import json
from typing import Any, NamedTuple, TypeGuard

from tpusmi.text import clean

VERSION = 1
"""Published by agents as the fact `captures`; 0 there means that the job forbids captures."""
DURATION_MOST_MS = 10_000
"""A job that traces by itself fails while a capture runs, so captures are short."""
PATH_MOST, MESSAGE_MOST = 1024, 300
NONCE_DIGITS = 32
LEVEL_MOST = 3
BYTES_MOST = 2**40
TIME_MOST_S = 1e11

ACCEPTED, CAPTURING, SAVING, DONE, REFUSED = "accepted", "capturing", "saving", "done", "refused"
STATES = (ACCEPTED, CAPTURING, SAVING, DONE, REFUSED)
"""The state of a capture. The last two are its end."""
FORBIDDEN, BUSY, NO_BACKEND, NO_ROOM = "forbidden", "busy", "no_backend", "no_room"
TOO_LARGE, EXPIRED, ENDED, HANGS, FAILED = "too_large", "expired", "ended", "hangs", "failed"
REASONS = (FORBIDDEN, BUSY, NO_BACKEND, NO_ROOM, TOO_LARGE, EXPIRED, ENDED, HANGS, FAILED)
"""Why a capture was refused, or failed."""


class AgentRequest(NamedTuple):
    """What a viewer asks of the agent of one process."""

    nonce: str
    """Hexadecimal digits that no other request has."""
    pid: int
    """This and the two below are in the header of the segment: no other process takes it."""
    start_ticks: int
    pid_namespace: int
    duration_ms: int
    bytes_most: int
    expires_s: float
    """Unix time after which the agent does not begin."""
    host_tracer_level: int = 1
    python_tracer_level: int = 0


class AgentAnswer(NamedTuple):
    """What has become of a request."""

    nonce: str
    state: str
    reason: str = ""
    """One of REASONS where it is REFUSED; else empty."""
    message: str = ""
    """More about the reason, or a note about the trace, in words."""
    trace: str = ""
    """The path at which the trace is once it is DONE, as the job sees it; one that is not absolute
    is in the directory of the segment.
    """
    trace_bytes: int | None = None


def packed(content: AgentRequest | AgentAnswer) -> bytes:
    """The bytes of a file with that content."""
    return json.dumps({"version": VERSION, **content._asdict()}).encode()


def request_in(data: bytes) -> AgentRequest | None:
    """The request in those bytes; None where there is none that can be meant."""
    fields = _fields(data)
    nonce, expires_s = fields.get("nonce"), fields.get("expires_s")
    if not _is_nonce(nonce) or not isinstance(expires_s, (int, float)):
        return None
    if not 0 <= expires_s < TIME_MOST_S:  # NaN is not; a very large whole number is not either
        return None
    numbers: dict[str, Any] = {name: _whole(fields.get(name), *r) for name, r in _RANGES.items()}
    if None in numbers.values():
        return None
    return AgentRequest(nonce=nonce, expires_s=float(expires_s), **numbers)


_RANGES = {
    "pid": (1, 2**32),
    "start_ticks": (0, 2**64),
    "pid_namespace": (0, 2**64),
    "duration_ms": (1, DURATION_MOST_MS),
    "bytes_most": (1, BYTES_MOST),
    "host_tracer_level": (0, LEVEL_MOST),
    "python_tracer_level": (0, LEVEL_MOST),
}


def answer_in(data: bytes) -> AgentAnswer | None:
    """The answer in those bytes; None where there is none that can be meant."""
    fields = _fields(data)
    nonce, state, reason = fields.get("nonce"), fields.get("state"), fields.get("reason")
    if not _is_nonce(nonce) or state not in STATES or reason not in ("", *REASONS):
        return None
    if (state == REFUSED) != bool(reason):
        return None
    trace = _text(fields.get("trace"))
    return AgentAnswer(
        nonce=nonce,
        state=state,
        reason=reason,
        message=clean(_text(fields.get("message")), MESSAGE_MOST),
        trace=trace if len(trace) <= PATH_MOST else "",
        trace_bytes=_whole(fields.get("trace_bytes"), 0, BYTES_MOST),
    )


def _fields(data: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    is_readable = isinstance(fields, dict) and fields.get("version") == VERSION
    return fields if is_readable else {}


def _is_nonce(value: Any) -> TypeGuard[str]:
    digits = "0123456789abcdef"
    return isinstance(value, str) and len(value) == NONCE_DIGITS and not value.strip(digits)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: Any, least: int, most: int) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and least <= value <= most else None
