"""Steps of the training loop: counted in the loop's thread for a microsecond, summed up in the
agent's.
"""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import NamedTuple

WINDOW_S = 60.0
WINDOW_LEAST = 20
"""Slow steps: at least so many are kept, however old."""
WINDOW_MOST = 1024

_UNDO = (0.0, -1.0)


class StepTimes(NamedTuple):
    """The steps of the window, in seconds."""

    per_s: float
    min: float
    mean: float
    p50: float
    p95: float
    max: float


class Steps:
    """The loop's clock.

    Called plainly, a step ends at each call; used in `with`, a step is the body.
    """

    def __init__(self) -> None:
        self.count = 0
        self.last_at_s: float | None = None
        self._before: float | None = None
        self._entered_at_s = 0.0
        self._ended: deque[tuple[float, float]] = deque(maxlen=4 * WINDOW_MOST)
        """Filled by the loop, emptied by the agent.

        Both ends of a deque are safe without a lock.
        """
        self._ends: deque[float] = deque(maxlen=WINDOW_MOST)
        self._durations: deque[float] = deque(maxlen=WINDOW_MOST)

    def step(self) -> Steps:
        """Mark the end of a step, or, as `with steps.step():`, the span of one."""
        now = monotonic()
        self._before = self.last_at_s
        if self._before is not None:
            self._ended.append((now, now - self._before))
        self.last_at_s = now
        self.count += 1
        return self

    def __enter__(self) -> None:
        # step() could not know that a `with` follows: what it counted is taken back.
        if self._before is not None:
            self._ended.append(_UNDO)
        self.count -= 1
        self.last_at_s = self._before
        self._entered_at_s = monotonic()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            now = monotonic()
            self._ended.append((now, now - self._entered_at_s))
            self.last_at_s = now
            self.count += 1

    def times(self, now_s: float) -> StepTimes | None:
        """The step times of the last minute, at least of the last 20 steps; None before two steps
        ended.

        Only the agent's thread may call this.
        """
        self._drain(now_s)
        if not self._ends:
            return None
        durations = sorted(self._durations)
        last_end = self._ends[-1]
        # A loop that stalls gets slower, it does not keep its last speed.
        until = now_s if now_s - last_end > durations[-1] else last_end
        elapsed = until - (self._ends[0] - self._durations[0])
        return StepTimes(
            len(durations) / elapsed if elapsed > 0 else 0.0,
            durations[0],
            sum(durations) / len(durations),
            _quantile(durations, 0.5),
            _quantile(durations, 0.95),
            durations[-1],
        )

    def _drain(self, now_s: float) -> None:
        ends, durations = self._ends, self._durations
        while self._ended:
            entry = self._ended.popleft()
            if entry is not _UNDO:
                ends.append(entry[0])
                durations.append(entry[1])
            elif ends:
                ends.pop()
                durations.pop()
        while len(ends) > WINDOW_LEAST and now_s - ends[0] > WINDOW_S:
            ends.popleft()
            durations.popleft()


def _quantile(ordered: list[float], q: float) -> float:
    """The q-quantile of an ordered list, interpolated between its neighbours."""
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)
