"""Sums over the events of a line: the time that at least one takes, and the time of each alone; and
events that are kept until all are there.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice, pairwise

from tpusmi.trace.operation_facts import OperationKey

DEPTH_MOST = 1000
"""Operations within each other. Deeper ones count as beside each other."""
BATCH = 10_000


class OutOfOrderError(Exception):
    """Events that are not sorted by start, longer ones first."""


class BusyTime:
    """The union of intervals that come sorted by start, in picoseconds."""

    def __init__(self) -> None:
        self.first: int | None = None
        """Start of the first interval; None before there is one."""
        self.end = 0
        """The latest end."""
        self.busy = 0
        self._last = 0

    def add(self, starts: Sequence[int], durations: Sequence[int]) -> None:
        """Adds intervals. Raises OutOfOrderError when one starts before the one before it."""
        if self.first is None and len(starts):
            self.first = self._last = self.end = starts[0]
        last, end, busy = self._last, self.end, self.busy
        for start, duration in zip(starts, durations, strict=True):
            if start < last:
                raise OutOfOrderError
            last = start
            if start >= end:
                busy += duration
                end = start + duration
            elif start + duration > end:
                busy += start + duration - end
                end = start + duration
        self._last, self.end, self.busy = last, end, busy

    @property
    def span(self) -> int:
        """From the first start to the latest end."""
        return 0 if self.first is None else self.end - self.first


def union(intervals: Iterable[tuple[int, int]]) -> BusyTime:
    """The union of intervals, each its start and duration, sorted by start."""
    busy, rest = BusyTime(), iter(intervals)
    while batch := list(islice(rest, BATCH)):
        busy.add([start for start, _ in batch], [duration for _, duration in batch])
    return busy


class Tally:
    """Runs of one operation on one core, and its time without that of operations inside it."""

    __slots__ = ("runs", "self_ps")

    def __init__(self) -> None:
        self.runs = self.self_ps = 0

    @property
    def own_ps(self) -> int:
        """The time without that of operations inside it, which may overlap and take more than all
        of it.
        """
        return max(0, self.self_ps)


class SelfTimes:
    """Self times by key, from events that come sorted by start, longer ones first."""

    def __init__(self, new: Callable[[Hashable], Tally]) -> None:
        self.tallies: dict[Hashable, Tally] = {}
        self._new = new
        self._stack: list[tuple[int, Tally, int]] = []

    def add(
        self, keys: Iterable[Hashable], starts: Sequence[int], durations: Sequence[int]
    ) -> None:
        """Adds events. An event inside another takes its time from it.

        Raises OutOfOrderError when one comes after another that it contains.
        """
        tallies, stack = self.tallies, self._stack
        for key, start, duration in zip(keys, starts, durations, strict=True):
            tally = tallies.get(key)
            if tally is None:
                tally = tallies[key] = self._new(key)
            end = start + duration
            while stack and stack[-1][0] < end:
                before = stack.pop()
                if before[2] == start < before[0]:
                    raise OutOfOrderError
            if stack:
                stack[-1][1].self_ps -= duration
            tally.runs += 1
            tally.self_ps += duration
            if len(stack) < DEPTH_MOST:
                stack.append((end, tally, start))


class EventColumns:
    """Start, duration and key of each event: 24 bytes, where an object would take 200."""

    def __init__(self) -> None:
        self.starts, self.durations = array("q"), array("q")
        self.keys: list[OperationKey] = []

    def add(self, start: int, duration: int, key: OperationKey) -> None:
        """Adds one. Equal keys should be one object."""
        self.starts.append(start)
        self.durations.append(duration)
        self.keys.append(key)

    def sort(self) -> None:
        """Sorts them by start, longer ones first."""
        if all(a < b for a, b in pairwise(self.starts)):
            return
        order = sorted(range(len(self.starts)), key=self.durations.__getitem__, reverse=True)
        order.sort(key=self.starts.__getitem__)
        self.starts = array("q", [self.starts[i] for i in order])
        self.durations = array("q", [self.durations[i] for i in order])
        self.keys = [self.keys[i] for i in order]


def union_of_lines(lines: Iterable[EventColumns]) -> BusyTime:
    """The union of the events of sorted lines."""
    return union(heapq.merge(*(zip(line.starts, line.durations, strict=True) for line in lines)))
