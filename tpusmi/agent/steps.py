"""Steps of the training loop: counted in the loop's thread, in a microsecond, and summed up in the
agent's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import repeat
from operator import sub
from time import monotonic
from typing import NamedTuple

from tpusmi.agent.flops import Flops

WINDOW_S = 60.0
WINDOW_LEAST = 20
"""At least this many steps are kept, however old."""
WINDOW_MOST = 1024

MARKS_MOST = 4 * WINDOW_MOST


class Durations(NamedTuple):
    """How long something took, in seconds."""

    min: float
    mean: float
    p50: float
    p95: float
    max: float


class StepTimes(NamedTuple):
    """The steps of the window."""

    per_s: float
    period: Durations
    """The time from the end of one step to the end of the next."""
    body: Durations | None
    """The time inside `with tpusmi.step():`; None where it is not used."""
    since_s: float
    """When the first of these steps began."""


class Steps:
    """The loop's clock.

    Called plainly, a step ends at each call; used in `with`, at the end of the body. Only one
    thread should take steps, and bodies should not nest: the count stays right, but times are mixed
    up.
    """

    def __init__(self) -> None:
        self.flops = Flops()
        self.count = 0
        self.last_at_s: float | None = None
        self._before: float | None = None
        self._flops = 0.0
        # Times at which steps ended. Negative: a body began, and the mark before it was not an end.
        # 0: that body raised. Filled by the loop and emptied by the agent: both ends of a deque are
        # safe without a lock, and the garbage collector ignores floats.
        self._marks: deque[float] = deque(maxlen=MARKS_MOST)
        self._window = _Window()
        self._looked: tuple[float, int] | None = None
        """When the agent looked last, and how many steps there were then."""

    def step(self, flops: float | None = None) -> Steps:
        """Mark the end of a training step, or, as `with tpusmi.step():`, its body. `flops` are the
        model FLOPs of one step of the whole job; they give FLOP/s and MFU.
        """
        self._before = self.last_at_s
        self._flops = 0.0 if flops is None else self.flops.add(flops)
        self._end()
        return self

    def __repr__(self) -> str:
        ended = "1 step has ended" if self.count == 1 else f"{self.count} steps have ended"
        return f"<tpusmi.step: {ended}>"

    def __enter__(self) -> None:
        # step() could not know that a `with` follows: what it counted is taken back.
        self._marks.append(-monotonic())
        self.flops.passed -= self._flops
        self.count -= 1
        self.last_at_s = self._before

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.flops.passed += self._flops
            self._end()
        else:
            self._marks.append(0.0)

    def _end(self) -> None:
        now = monotonic()
        self._marks.append(now)
        self.last_at_s = now
        self.count += 1

    def forget(self) -> None:
        """Start over: in a forked child, or after the agent was stopped."""
        self.flops.forget()
        self.count, self.last_at_s, self._before, self._flops = 0, None, None, 0.0
        self._marks.clear()
        self._window, self._looked = _Window(), None

    def times(self, now_s: float) -> StepTimes | None:
        """The step times of the last minute, at least of the last 20 steps; None before two steps
        ended.

        Only the agent's thread may call this.
        """
        count, were_lost = self.count, len(self._marks) == MARKS_MOST
        self._window.take([self._marks.popleft() for _ in range(len(self._marks))], were_lost)
        looked, self._looked = self._looked, (now_s, count)
        times = self._window.times(now_s)
        if times is None or not were_lost or looked is None:
            return times
        return _counted(times, count - looked[1], now_s - looked[0])


class _Window:
    """The last steps, made of marks; only the agent's thread uses it."""

    def __init__(self) -> None:
        self._ends: deque[float] = deque(maxlen=WINDOW_MOST)
        self._periods: deque[float] = deque(maxlen=WINDOW_MOST)
        self._bodies: deque[float | None] = deque(maxlen=WINDOW_MOST)
        # The last end, and the one before it: the last may turn out not to be an end.
        self._last: float | None = None
        self._before: float | None = None
        self._began: float | None = None

    def times(self, now_s: float) -> StepTimes | None:
        """The spreads; what is too old is dropped."""
        while len(self._ends) > WINDOW_LEAST and now_s - self._ends[0] > WINDOW_S:
            for queue in (self._ends, self._periods, self._bodies):
                queue.popleft()
        if not self._ends:
            return None
        period = _durations(self._periods)
        last_end = self._ends[-1]
        # A loop that stalls gets slower, it does not keep its last speed.
        until = now_s if now_s - last_end > period.max else last_end
        since_s = self._ends[0] - self._periods[0]
        elapsed = until - since_s
        bodies = [body for body in self._bodies if body is not None]
        return StepTimes(
            len(self._ends) / elapsed if elapsed > 0 else 0.0,
            period,
            _durations(bodies) if bodies else None,
            since_s,
        )

    def take(self, marks: list[float], were_lost: bool) -> None:
        """Add the steps that these marks report. Where some marks were lost, the time between two
        is not that of a step.
        """
        if were_lost:
            self._last = self._before = self._began = None
        if marks and min(marks) > 0 and self._last is not None and self._began is None:
            # The plain loop, perhaps a thousand times a second: no work per step in Python.
            befores = [self._last, *marks]
            self._ends.extend(marks)
            self._periods.extend(map(sub, marks, befores))
            self._bodies.extend(repeat(None, len(marks)))
            self._before, self._last = befores[-2:]
            return
        for mark in marks:
            if mark > 0:
                self._end(mark)
            elif mark < 0:
                self._begin(-mark)
            else:
                self._began = None

    def _end(self, at_s: float) -> None:
        if self._last is not None:
            self._ends.append(at_s)
            self._periods.append(at_s - self._last)
            self._bodies.append(None if self._began is None else at_s - self._began)
        self._before, self._last, self._began = self._last, at_s, None

    def _begin(self, at_s: float) -> None:
        """A body begins: the mark before it, made by step(), was not an end."""
        if self._before is not None:
            for queue in (self._ends, self._periods, self._bodies):
                queue.pop()
        self._before, self._last, self._began = None, self._before, at_s


def _counted(times: StepTimes, steps: int, elapsed_s: float) -> StepTimes:
    """The times of so many steps that only the last have marks, which cannot give the rate."""
    if steps <= 0 or elapsed_s <= 0:
        return times
    mean = elapsed_s / steps
    period = times.period._replace(mean=mean, max=max(mean, times.period.max))
    return times._replace(per_s=steps / elapsed_s, period=period)


def _durations(times: Iterable[float]) -> Durations:
    ordered = sorted(times)
    return Durations(
        min=ordered[0],
        mean=sum(ordered) / len(ordered),
        p50=_quantile(ordered, 0.5),
        p95=_quantile(ordered, 0.95),
        max=ordered[-1],
    )


def _quantile(ordered: list[float], q: float) -> float:
    """The q-quantile of an ordered list, interpolated between its neighbours."""
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)
