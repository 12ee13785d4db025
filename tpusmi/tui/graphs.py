"""Values of the last minutes, a number for each column of a graph."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import NamedTuple

from tpusmi.model import Device, History, Subject

GRAPHS_MOST = 8192
"""Graphs of jobs that are gone are forgotten, with all the others, when there are so many."""
MOST_OF = ("hbm_used_bytes", "live_array_bytes")
"""Of these a column shows the most, of all others the mean."""

Slots = list[float | None]


class _Graph(NamedTuple):
    """A drawn graph. `until` is the number of the newest time slot, which is still filling."""

    until: int
    slots: Slots
    witness: Subject | None


class Graphs:
    """Graphs read from the history once per time slot and not once per tick.

    Slots begin at round times: a graph stands still, but for its last column, until a slot is over.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._graphs: dict[tuple[Subject, str, int, float], _Graph] = {}

    def of_device(self, d: Device, metric: str, at_s: float, span_s: float, count: int) -> Slots:
        """`count` slots up to `at_s`, oldest first, None where unknown. `span_s` covers them all.

        Of one witness only: agent and libtpu do not mean quite the same by memory in use.
        """
        return self.of(d.filed(metric), metric, at_s, span_s, count)

    def of(
        self, subjects: Sequence[Subject], metric: str, at_s: float, span_s: float, count: int
    ) -> Slots:
        """The same of the first of these subjects of which anything is known."""
        slot_s = max(span_s / count, 1.0)
        key = (subjects[0], metric, count, span_s)
        until, graph = int(at_s // slot_s), self._graphs.get(key)
        if len(self._graphs) > GRAPHS_MOST:
            self._graphs.clear()
        seconds = int(at_s) - int(until * slot_s) + 1
        if graph is None or graph.until != until or graph.witness is None:
            seconds += int(slot_s * (count - 1))
            witness = self._witness(subjects, metric, int(at_s), seconds)
            graph = self._graphs[key] = _Graph(until, [None] * count, witness)
        if graph.witness is not None:
            window = self._history.window(metric, graph.witness, int(at_s), seconds)
            if window is not None:
                _fill(graph, window, int(at_s) - seconds + 1, slot_s, _how(metric))
        return graph.slots

    def average(
        self, devices: Iterable[Device], metric: str, at_s: float, span_s: float, count: int
    ) -> Slots:
        """The mean over those devices of which it is known, slot by slot."""
        rows = [self.of_device(d, metric, at_s, span_s, count) for d in devices]
        return [_mean([v for v in column if v is not None]) for column in zip(*rows, strict=True)]

    def _witness(
        self, subjects: Iterable[Subject], metric: str, until_s: int, seconds: int
    ) -> Subject | None:
        known = (s for s in subjects if self._history.window(metric, s, until_s, seconds))
        return next(known, None)


def _fill(
    graph: _Graph,
    window: array[float],
    from_s: int,
    slot_s: float,
    how: Callable[[Sequence[float]], float | None],
) -> None:
    """Every slot that begins in the window; a second belongs to the slot in which it begins."""
    count = len(graph.slots)
    first = max(0, count - 1 - graph.until + int(from_s // slot_s))
    for n in range(first, count):
        start_s = (graph.until - count + 1 + n) * slot_s
        a, b = (ceil(at_s) - from_s for at_s in (start_s, start_s + slot_s))
        graph.slots[n] = how([v for v in window[max(a, 0) : max(b, 0)] if v >= 0])


def _how(metric: str) -> Callable[[Sequence[float]], float | None]:
    return _most if metric in MOST_OF else _mean


def _most(values: Sequence[float]) -> float | None:
    return max(values, default=None)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
