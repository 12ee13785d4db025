"""The request for a capture, and the trace that comes back: the same for every way to capture."""

from collections.abc import Callable
from typing import NamedTuple

from tpusmi.trace.figures import Capture
from tpusmi.trace.limits import MIB

DURATION_LEAST_MS, DURATION_MOST_MS = 10, 60_000
Progress = Callable[[str], None]
"""Called with a sentence whenever something begins that takes a while."""


class CaptureRequest(NamedTuple):
    """How to capture, over gRPC or through the agent."""

    duration_ms: int = 1000
    deadline_s: float = 30.0
    """For all of it beyond its duration: to connect, to stop, to hand over the trace."""
    bytes_most: int = 512 * MIB
    """Size of the trace. A larger one is refused, or cut off and removed."""
    host_tracer_level: int = 1
    python_tracer_level: int = 0
    """0, because tracing every Python call slows a job down several times."""


class CapturedTrace(NamedTuple):
    """A trace in a file of our own, and how it was made."""

    path: str
    """In the folder that was given to the capture. The caller removes it."""
    capture: Capture
    notes: tuple[str, ...] = ()
    """What is missing from it and why, in sentences, for `TraceProfile.notes`."""
