"""Steps of the training loop: counted in the loop's thread for a microsecond, summed up in the
agent's.
"""

from __future__ import annotations

from collections import deque
from operator import sub
from time import monotonic
from typing import NamedTuple

from tpusmi.agent.flops import Flops

WINDOW_S = 60.0
WINDOW_LEAST = 20
"""Slow steps: at least so many are kept, however old."""
WINDOW_MOST = 1024

MARKS_MOST = 4 * WINDOW_MOST


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

    Called plainly, a step ends at each call; used in `with`, a step is the body. One thread takes
    steps, and a body holds no other: their times would be mixed up, though not their count.
    """

    def __init__(self) -> None:
        self.flops = Flops()
        self.count = 0
        self.last_at_s: float | None = None
        self._before: float | None = None
        self._told = 0.0
        # When steps ended; negative: the mark before it was none, a body began. Filled by the loop
        # and emptied by the agent: both ends of a deque are safe without a lock, and floats are no
        # work for the garbage collector.
        self._marks: deque[float] = deque(maxlen=MARKS_MOST)
        self._mark: float | None = None
        self._added = False
        self._ends: deque[float] = deque(maxlen=WINDOW_MOST)
        self._durations: deque[float] = deque(maxlen=WINDOW_MOST)

    def step(self, flops: float | None = None) -> Steps:
        """Mark the end of a step, or, as `with steps.step():`, the span of one."""
        self._before = self.last_at_s
        self._told = 0.0 if flops is None else self.flops.tell(flops)
        self._end()
        return self

    def __enter__(self) -> None:
        # step() could not know that a `with` follows: what it counted is taken back.
        self._marks.append(-monotonic())
        self.flops.told -= self._told
        self.count -= 1
        self.last_at_s = self._before

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.flops.told += self._told
            self._end()

    def _end(self) -> None:
        now = monotonic()
        self._marks.append(now)
        self.last_at_s = now
        self.count += 1

    def forget(self) -> None:
        """Begin anew: in a forked child, or after the agent was stopped."""
        self.flops.forget()
        self.count, self.last_at_s, self._before, self._told = 0, None, None, 0.0
        self._mark, self._added = None, False
        for queue in (self._marks, self._ends, self._durations):
            queue.clear()

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
        """Turn new marks into ends and durations, and drop those that are too old."""
        if len(self._marks) == MARKS_MOST:
            self._mark = None  # marks were lost, and the time between two of them is no step's
        new = [self._marks.popleft() for _ in range(len(self._marks))]
        if new and min(new) > 0 and self._mark is not None:
            # The plain loop, perhaps a thousand times a second: no work per step in Python.
            self._ends.extend(new)
            self._durations.extend(map(sub, new, [self._mark, *new]))
            self._mark, self._added = new[-1], True
        else:
            for mark in new:
                self._take(mark)
        while len(self._ends) > WINDOW_LEAST and now_s - self._ends[0] > WINDOW_S:
            self._ends.popleft()
            self._durations.popleft()

    def _take(self, mark: float) -> None:
        if mark < 0 and self._added:
            self._ends.pop()
            self._durations.pop()
        self._added = mark > 0 and self._mark is not None
        if mark > 0 and self._mark is not None:
            self._ends.append(mark)
            self._durations.append(mark - self._mark)
        self._mark = abs(mark)


def _quantile(ordered: list[float], q: float) -> float:
    """The q-quantile of an ordered list, interpolated between its neighbours."""
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)
