"""Values of the last minutes, a number for each column of a graph."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import NamedTuple

from tpusmi.model import (
    ChipKey,
    Device,
    History,
    ProcessKey,
    Series,
    Snapshot,
    Subject,
    Value,
    several,
)
from tpusmi.report.quantities import ARRAYS, QUANTITIES

GRAPHED = tuple(quantity.metric for quantity in (*QUANTITIES, ARRAYS))
"""Metrics of the graphs of devices."""
HELD_S = 5.0
"""How long the newest reading is drawn in a graph."""
GRAPHS_MOST, AVERAGES_MOST = 8192, 256
"""All kept graphs are dropped when there are more: most are of jobs that are gone."""

Slots = list[float | None]
Drawn = tuple[Sequence[Subject], str]
"""A metric, and subjects: the graph is of the first one that has values."""
How = Callable[[Sequence[float]], "float | None"]
"""Makes one number of all values in the time of a slot, oldest first."""


class _Graph(NamedTuple):
    """A drawn graph. `until` is the number of the newest time slot, which is still filling."""

    until: int
    slots: Slots
    series: Series | None
    """What it is drawn from; None where nothing is known."""


class _Average:
    """A graph of means that grows with each snapshot."""

    def __init__(self, slots: Slots, until: int, at_s: float) -> None:
        self.slots, self.until, self.at_s = slots, until, at_s
        self._sum, self._count = (slots[-1], 1) if slots[-1] is not None else (0.0, 0)

    def add(self, value: float | None, until: int, at_s: float) -> None:
        """Add the mean of a newer moment."""
        if until > self.until:
            self.slots = self.slots[until - self.until :] + [None] * (until - self.until)
            self._sum, self._count = 0.0, 0
        self.until, self.at_s = until, at_s
        if value is not None:
            self._sum, self._count = self._sum + value, self._count + 1
            self.slots[-1] = self._sum / self._count


class Graphs:
    """Graphs read from the history once per time slot and not once per tick.

    Slots begin at round times: a graph stands still, but for its last column, until a slot is over.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._graphs: dict[tuple[Subject, str, int, float, How], _Graph] = {}
        self._averages: dict[tuple[ProcessKey | None, str, int, float], _Average] = {}

    def of_device(self, s: Snapshot, d: Device, metric: str, span_s: float, count: int) -> Slots:
        """`count` slots up to the snapshot, oldest first, None where unknown, of the device or of
        its whole chip. `span_s` covers them all.

        Of one witness only: agent and libtpu do not mean quite the same by memory in use.
        """
        slots = self.of(history_subjects(s, d, metric), metric, s.at_s, span_s, count)
        if slots[-1] is not None:
            return slots
        return held(slots, several.measured(s, metric, d), span_s / count)

    def of(
        self,
        subjects: Sequence[Subject],
        metric: str,
        at_s: float,
        span_s: float,
        count: int,
        how: How | None = None,
    ) -> Slots:
        """The same for the first of these subjects that has values. `how` is `most`, `mean` or
        `dominant`; without it the metric decides.
        """
        few = _slot_count(span_s, count)
        # A slot shows the most memory, and the mean of everything else.
        how = how or (most if metric in several.MEMORY else mean)
        slot_s = max(span_s / few, 1.0)
        key = (subjects[0], metric, few, span_s, how)
        until, graph = int(at_s // slot_s), self._graphs.get(key)
        if len(self._graphs) > GRAPHS_MOST:
            self._graphs.clear()
        series = self._history.series(metric, subjects, int(at_s), ceil(slot_s * few))
        if graph is None or graph.series is not series or not 0 <= until - graph.until < few:
            first = until - few + 1
            slots: Slots = [None] * few
        else:
            first = graph.until
            slots = graph.slots[until - first :] + [None] * (until - first)
        graph = self._graphs[key] = _Graph(until, slots, series)
        if series is not None:
            first = max(first, int(series.first_s // slot_s))
        from_s = ceil(first * slot_s)
        if series is not None and from_s <= at_s:
            window = series.window(int(at_s), int(at_s) - from_s + 1)
            _fill(graph, window, first, slot_s, how)
        return slots if few == count else stretched(slots, count)

    def first_s(self, drawn: Iterable[Drawn], at_s: float) -> int | None:
        """The second of the oldest value in these graphs; None where they are empty."""
        firsts = (self._first_s(subjects, metric, int(at_s)) for subjects, metric in drawn)
        return min((first for first in firsts if first is not None), default=None)

    def average(
        self, s: Snapshot, metric: str, span_s: float, count: int, owner: ProcessKey | None = None
    ) -> Slots:
        """The mean over the devices, or those of that process, of which it is known, slot by slot,
        the last up to `s.at_s`.

        The past is read once; then each snapshot adds its own mean, whatever the number of devices.
        """
        few = _slot_count(span_s, count)
        slot_s = max(span_s / few, 1.0)
        until, key = int(s.at_s // slot_s), (owner, metric, few, span_s)
        devices = s.devices if owner is None else s.devices_of(owner)
        average = self._averages.get(key)
        if len(self._averages) > AVERAGES_MOST:
            self._averages.clear()
        # The moments are not neighbors: the dashboard was paused, or the user has looked back.
        if average is None or s.at_s < average.at_s or until - average.until > 1:
            same = several.alike(s, metric, devices)
            graphs = [self.of_device(s, d, metric, span_s, few) for d in same]
            slots = [
                mean([v for v in column if v is not None]) for column in zip(*graphs, strict=True)
            ]
            average = self._averages[key] = _Average(slots or [None] * few, until, s.at_s)
        elif s.at_s > average.at_s:
            average.add(several.mean(s, metric, devices, of_some=True), until, s.at_s)
        return average.slots if few == count else stretched(average.slots, count)

    def _first_s(self, subjects: Iterable[Subject], metric: str, until_s: int) -> int | None:
        firsts = (self._history.first_s(metric, subject, until_s) for subject in subjects)
        return next((first for first in firsts if first is not None), None)


def _slot_count(span_s: float, count: int) -> int:
    """How many slots a graph of `count` places has: a slot is a second at least."""
    return min(count, max(1, int(span_s)))


def _fill(graph: _Graph, window: array[float], first: int, slot_s: float, how: How) -> None:
    """Every slot from number `first` on, with which the window begins; a second belongs to the slot
    in which it begins.
    """
    count, from_s = len(graph.slots), ceil(first * slot_s)
    for number in range(first, graph.until + 1):
        a, b = (ceil(at_s) - from_s for at_s in (number * slot_s, (number + 1) * slot_s))
        graph.slots[number - graph.until + count - 1] = how([v for v in window[a:b] if v >= 0])


def history_subjects(s: Snapshot, d: Device, metric: str) -> tuple[Subject, ...]:
    """The device, or its whole chip where only that is measured. Where neither is, the first of
    them that was; but a graph of memory has one scale, and then it is the device's.
    """
    chip = None if d.chip is None else ChipKey(d.chip)
    if chip is None or (d.key, metric) in s.values:
        return (d.key,)
    if (chip, metric) in s.values:
        return (chip,)
    return (d.key,) if metric in several.MEMORY else (d.key, chip)


def held(slots: Slots, present: Value | None, slot_s: float) -> Slots:
    """The slots, with the current value in the last ones while they wait for the next reading: a
    reading stays in a graph for a moment, as it does in the tables.
    """
    if present is None or present.stale:
        return slots
    newest = min(len(slots), ceil(HELD_S / slot_s))
    blank = next((n for n, v in enumerate(reversed(slots[-newest:])) if v is not None), newest)
    return [*slots[: len(slots) - blank], *([present.value] * blank)]


def stretched(slots: Sequence[float | None], count: int) -> Slots:
    """The slots over `count` places: a slot is a second at least, a place may be less."""
    return [slots[i * len(slots) // count] for i in range(count)] if slots else [None] * count


def is_known(slots: Sequence[float | None]) -> bool:
    """True if any slot has a value."""
    return any(v is not None for v in slots)


def most(values: Sequence[float]) -> float | None:
    """The largest value; None if there are none."""
    return max(values, default=None)


def mean(values: Sequence[float]) -> float | None:
    """The mean of the values; None if there are none."""
    return sum(values) / len(values) if values else None


def dominant(values: Sequence[float]) -> float | None:
    """The most frequent value, for numbers that stand for names; None if there are none."""
    return Counter(values).most_common(1)[0][0] if values else None
