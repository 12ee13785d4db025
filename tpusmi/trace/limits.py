"""How much a trace may cost to read: time, bytes, events, names. One object for all readers."""

from __future__ import annotations

import time
from typing import NamedTuple

MIB = 1024 * 1024
FLOAT_MOST = 1e24
"""The largest number in a profile: FLOP/s, bytes, seconds."""


def size_words(size: int) -> str:
    """`12.3 MiB`, and `less than 0.1 MiB` where that would be 0."""
    return f"{size / MIB:,.1f} MiB" if size >= 0.05 * MIB else "less than 0.1 MiB"


class TraceLimits(NamedTuple):
    """What one analysis may use. Above a limit it fails with a sentence, and never guesses."""

    until_s: float
    """time.monotonic() at which it must be done."""
    bytes_most: int = 2048 * MIB
    """Size of the file."""
    memory_most: int = 2048 * MIB
    """For the child process in which xprof runs."""
    operations_most: int = 100_000
    """Different operations that are told apart."""

    @property
    def left_s(self) -> float:
        """Seconds left; 0 when the time is up."""
        return max(0.0, self.until_s - time.monotonic())
