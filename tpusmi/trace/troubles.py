"""Why there is no profile: an error with a sentence for the user and a kind for the exit code."""

from __future__ import annotations

from enum import Enum


class Trouble(Enum):
    """Kinds of failure. The command turns each into an exit code."""

    ABSENT = "absent"
    """There is nothing to capture: no server, no agent, no file."""
    DENIED = "denied"
    """The job forbids it, or its files are not ours."""
    BUSY = "busy"
    """Another capture runs."""
    FAILED = "failed"
    """It was tried and did not work: late, cut off, too large."""
    UNREADABLE = "unreadable"
    """The bytes are not a trace."""


class CaptureError(Exception):
    """A capture or an analysis that failed: `str()` is a sentence for the user.

    `trouble` is its kind.

    >>> try:
    ...     tpusmi.profile("absent.xplane.pb")
    ... except tpusmi.CaptureError as error:
    ...     print(f"{error.trouble.value}: {error}")
    absent: absent.xplane.pb: no such file or directory
    """

    def __init__(self, trouble: Trouble, sentence: str) -> None:
        super().__init__(sentence)
        self.trouble = trouble


class TooLongError(CaptureError):
    """For longer than an agent captures: the profiler service of the job may do it."""


def too_many_operations(name: str) -> CaptureError:
    """A trace with more operations than are told apart."""
    return CaptureError(Trouble.FAILED, f"{name} has more different operations than the limit.")
