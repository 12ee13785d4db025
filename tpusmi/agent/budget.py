"""How often the agent may do a thing, given what it costs."""

from __future__ import annotations

from collections import deque

SAMPLE_SHARE = 0.001
PROFILE_SHARE = 0.001
UTILIZATION_SHARE = 0.0009
"""Of wall time, in CPU time of the agent's threads; together they stay under 0.3 %."""


class Budget:
    """The period of one activity: as asked for, or longer when it costs more than its share."""

    def __init__(self, period_s: float, share: float) -> None:
        self.asked_s = period_s
        self.share = share
        self.cost_s: float | None = None
        """CPU time of the last run."""
        self._costs: deque[float] = deque(maxlen=3)
        self._due_at_s = 0.0

    @property
    def period_s(self) -> float:
        """Seconds between two runs, by the dearest of the last three."""
        return max(self.asked_s, max(self._costs, default=0.0) / self.share)

    def is_due(self, now_s: float) -> bool:
        """True when the next run may start."""
        return now_s >= self._due_at_s

    def wait_s(self, now_s: float) -> float:
        """Seconds until the next run may start."""
        return max(0.0, self._due_at_s - now_s)

    def spent(self, started_at_s: float, cost_s: float) -> None:
        """Note a run and what it cost."""
        self.cost_s = cost_s
        self._costs.append(cost_s)
        self._due_at_s = started_at_s + self.period_s
