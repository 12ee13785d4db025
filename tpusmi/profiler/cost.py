"""What a capture costs the job: its steps before, during and after it, counted by its own agent."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from typing import NamedTuple

from tpusmi.model import Host
from tpusmi.trace.figures import CaptureCost
from tpusmi.trace.troubles import CaptureError
from tpusmi.wire.layout import SegmentError
from tpusmi.wire.reader import Sample

BEFORE_S = 60.0
"""The rate before is that of at most this time."""
STEPS_LEAST = 3
"""A rate of fewer steps says little."""
STEPS_MOST, RATE_MOST, STEP_MOST_S = 2.0**53, 1e6, 1e7
"""No job counts further, or faster, or has a longer step: its samples are its own word."""
LOOK_S = 0.2
MARGIN_S = 5.0
"""For a segment that takes long to read, beyond the time for which the job is watched."""
HIDDEN_RATIO = 3.0
"""A step this many times as long as the median, before the capture, hides how long the longest one
since then was.
"""


class _Count(NamedTuple):
    """How many steps had ended at some time; times as time.time() counts."""

    at_s: float
    steps: float


class CostMeter:
    """Measures one capture of a job: before() it, during() when its trace is there, and after().

    All of it is read from the segment of the job. Nothing here raises CaptureError.
    """

    def __init__(self, host: Host, pid: int) -> None:
        from tpusmi.profiler import agent_job

        self._before_s = self._during_s = time.time()
        try:
            self._job: agent_job.AgentJob | None = agent_job.find(host, pid)
        except CaptureError:
            self._job = None

    def before(self) -> None:
        """The capture is about to begin."""
        self._before_s = time.time()

    def during(self) -> None:
        """The capture has just ended."""
        self._during_s = time.time()

    def after(self, wait_s: float) -> CaptureCost:
        """Watch the job for that long, then return its rates; None for a rate without steps, and
        all of them where it has no agent. Waits less where the job ends.
        """
        until_s = time.monotonic() + max(0.0, wait_s)
        while self._job is not None and self._job.is_alive():
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                break
            time.sleep(min(LOOK_S, left_s))
        samples = self._samples()
        return cost_of(samples, before_s=self._before_s, during_s=self._during_s)

    def _samples(self) -> list[Sample]:
        if self._job is None:
            return []
        try:
            reader = self._job.reader()
        except SegmentError:
            return []
        try:
            return list(reader.past(device_fields=()))
        except SegmentError:
            return []
        finally:
            reader.close()


class MeasuredCost:
    """The cost of one capture, which is about to begin; measured while its trace is analyzed."""

    def __init__(self, host: Host, pid: int) -> None:
        self._meter = CostMeter(host, pid)
        self._meter.before()
        self._cost = CaptureCost()
        self._thread: threading.Thread | None = None
        self._wait_s = 0.0

    def watch(self, wait_s: float) -> None:
        """The capture has ended: watch the job for that long, on a thread."""
        self._meter.during()
        self._wait_s = wait_s
        thread = threading.Thread(target=self._watch, name="tpusmi-cost", daemon=True)
        try:
            thread.start()
            self._thread = thread
        except RuntimeError:
            pass  # the user has no thread left: the cost stays unknown

    def result(self) -> CaptureCost:
        """The cost, once the time is over. Without it where the agent does not answer."""
        if self._thread is not None:
            self._thread.join(self._wait_s + MARGIN_S)
        return self._cost

    def _watch(self) -> None:
        self._cost = self._meter.after(self._wait_s)


def cost_of(samples: list[Sample], before_s: float, during_s: float) -> CaptureCost:
    """The cost of a capture that lasted from `before_s` until `during_s`, in Unix time."""
    counts = [count for count in map(_count, samples) if count is not None]
    last_s = counts[-1].at_s if counts else during_s
    return CaptureCost(
        steps_per_s_before=_rate(counts, before_s - BEFORE_S, before_s),
        steps_per_s_during=_rate(counts, before_s, during_s, least=0.0),
        steps_per_s_after=_rate(counts, during_s, last_s),
        paused_s=_paused_s(samples, before_s, during_s),
    )


def _count(sample: Sample) -> _Count | None:
    """The steps of a sample, at the end of the last one; None where it has none."""
    steps, since_s = sample.process.get("steps"), sample.process.get("since_last_step_s")
    if steps is None or since_s is None or since_s < 0 or not 0 <= steps <= STEPS_MOST:
        return None
    return _Count(at_s=sample.wall_s - since_s, steps=steps)


def _rate(
    counts: list[_Count], start_s: float, end_s: float, least: float = STEPS_LEAST
) -> float | None:
    """Steps per second from one time to another; None where they are not known, or too few.

    A start before the first count is that count: a job may be younger than a minute.
    """
    if len(counts) < 2:
        return None
    start_s = max(start_s, counts[0].at_s)
    first, last = _steps_at(counts, start_s), _steps_at(counts, end_s)
    if first is None or last is None or end_s <= start_s or last - first < least:
        return None
    rate = (last - first) / (end_s - start_s)
    return rate if rate <= RATE_MOST else None


def _steps_at(counts: list[_Count], at_s: float) -> float | None:
    """The steps at that time, between two counts in proportion; None outside of them, and where
    the count goes backwards: the agent was started again.
    """
    for before, after in pairwise(counts):
        if before.at_s <= at_s <= after.at_s:
            if after.steps < before.steps:
                return None
            width_s = after.at_s - before.at_s
            share = (at_s - before.at_s) / width_s if width_s > 0 else 0.0
            return before.steps + share * (after.steps - before.steps)
    return None


def _paused_s(samples: list[Sample], before_s: float, during_s: float) -> float | None:
    """How much longer the longest step around the capture was than the median one before; None
    where that is not known.
    """
    earlier = [s.process for s in samples if s.wall_s <= before_s]
    longest = _longest_around([s for s in samples if s.wall_s > before_s], during_s)
    if not earlier or longest is None or longest > STEP_MOST_S:
        return None
    median, longest_before = (earlier[-1].get(f"step_time_s.{name}") for name in ("p50", "max"))
    if median is None or longest_before is None or median <= 0:
        return None
    if longest <= longest_before and longest_before > HIDDEN_RATIO * median:
        return None
    return max(0.0, longest - median)


def _longest_around(samples: list[Sample], during_s: float) -> float | None:
    """The longest step up to the first that ended after the capture; None where none did: a later
    one may be long for other reasons.
    """
    longest = 0.0
    for sample in samples:
        count = _count(sample)
        longest = max(longest, sample.process.get("step_time_s.max", 0.0))
        if count is not None and count.at_s >= during_s:
            return longest or None
    return None
