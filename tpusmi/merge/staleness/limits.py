"""For how long a holder may do nothing."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

from typing import NamedTuple

IDLE_S = 30 * 60.0
STUCK_S = 10 * 60.0


class Limits(NamedTuple):
    """For how long a holder may do nothing."""

    idle_s: float = IDLE_S
    stuck_s: float = STUCK_S


USUAL = Limits()
