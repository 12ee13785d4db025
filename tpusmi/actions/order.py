"""How processes are to be ended."""

from __future__ import annotations

import signal
from typing import NamedTuple

GRACE_S = 10.0
FREE_WITHIN_S = 60.0
WAIT_MOST_S = 86400.0
SETTLE_S = 1.0
"""Where something may start them again, so long it is looked whether it does."""
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL)


class Order(NamedTuple):
    """How to end them."""

    signal: int = signal.SIGTERM
    """The first signal. SIGKILL follows it, to whoever is left after the time of grace."""
    grace_s: float = GRACE_S
    free_within_s: float = FREE_WITHIN_S
    """How long to wait for the nodes after that."""
    settle_s: float = SETTLE_S
    """How long to look whether what has ended is started again, where something may do that."""

    def check(self) -> None:
        """Raises ValueError for a signal that ends nothing, and for a wait without an end."""
        if self.signal not in ENDING_SIGNALS:
            names = ", ".join(number.name for number in ENDING_SIGNALS)
            raise ValueError(f"signal {self.signal} is none of {names}")
        for wait_s in (self.grace_s, self.free_within_s, self.settle_s):
            if not 0 <= wait_s <= WAIT_MOST_S:
                raise ValueError(f"{wait_s} is not between 0 and {WAIT_MOST_S:.0f} s")
