"""How much a trace may cost to read: time, bytes, events, names. One object for all readers."""

from __future__ import annotations

import time
from typing import NamedTuple

MIB = 1024 * 1024
FLOAT_MOST = 1e24
"""The largest number in a profile: FLOP/s, bytes, seconds."""


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
