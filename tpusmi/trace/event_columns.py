"""Events of a line that are kept until all are there: in columns, since there are many."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise

from tpusmi.trace.busy_time import BusyTime
from tpusmi.trace.operation_facts import OperationKey

BATCH = 10_000


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


def busy_time(lines: Iterable[EventColumns]) -> BusyTime:
    """The union of sorted lines."""
    busy = BusyTime()
    merged = heapq.merge(*(zip(line.starts, line.durations, strict=True) for line in lines))
    while batch := list(islice(merged, BATCH)):
        starts, durations = _columns(batch)
        busy.add(starts, durations)
    return busy


def _columns(batch: Sequence[tuple[int, int]]) -> tuple[Sequence[int], Sequence[int]]:
    return [start for start, _ in batch], [duration for _, duration in batch]
