"""Which operations of two captures are the same, and how much longer each takes. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from tpusmi.report.profile.derived_figures import step_s
from tpusmi.trace.figures import Operation, TraceProfile

NEW, GONE = "new", "gone"
OF_THE_TIME = "share of the time"
STEPS_MOST = 1e9
"""Steps of a capture, beyond which the figures are nonsense."""
LEAST_RATIO, LEAST_S, LEAST_POINTS = 0.001, 1e-6, 0.1
"""Smaller changes, of a step and in seconds, or in percent of the time, are left out."""


class Change(NamedTuple):
    """An operation in both captures: its time per step, or its share of the time."""

    name: str
    category: str | None
    source: str | None
    old: float
    new: float
    state: str
    """`new`, `gone`, or empty for one that both have."""

    @property
    def by(self) -> float:
        """How much more it takes."""
        return self.new - self.old


def changes(old: TraceProfile, new: TraceProfile) -> tuple[list[Change], str]:
    """The changes that matter, and what their numbers are.

    They are seconds per step and core where both have steps: captures differ in length. Else they
    are percent of the captured time.
    """
    before, after = step_s(old), step_s(new)
    if not old.operations or not new.operations:
        return [], ""
    if before is None or after is None:
        pairs, least, unit = _matched(old, new), LEAST_POINTS, OF_THE_TIME
        all_ = [_change(pair, _TimeScale(1.0), _TimeScale(1.0)) for pair in pairs]
    else:
        least, unit = max(LEAST_S, LEAST_RATIO * min(before, after)), "time per step"
        scales = _scale(old, before), _scale(new, after)
        all_ = [_change(pair, *scales) for pair in _matched(old, new)]
    return [c for c in all_ if abs(c.by) >= least], unit


class _TimeScale(NamedTuple):
    """What turns the sums of a capture into the time of a step."""

    per_percent: float
    steps: float | None = None
    """How many steps the capture is long; None when it is unknown."""
    cores: int = 1


def _scale(p: TraceProfile, step: float) -> _TimeScale:
    steps = p.captured_s / step if p.captured_s else None
    return _TimeScale(step / 100, steps, max(1, len(p.cores)))


Key = Callable[[Operation], Hashable]
Both = tuple[Sequence[Operation], Sequence[Operation]]


def _by_name(o: Operation) -> Hashable:
    """XLA gives new numbers in each compilation, so the name alone is not enough."""
    return (o.program, o.name, o.category, o.framework_name)


def _by_meaning(o: Operation) -> Hashable:
    """What it does, by the path in JAX; without one, its name without the number."""
    return (o.category, o.framework_name or o.name.rstrip("0123456789").rstrip("."))


def _matched(old: TraceProfile, new: TraceProfile) -> list[Both]:
    """Same names first; what is left by meaning, as sums: one operation may have become two."""
    made, old_rest, new_rest = _pairs(old.operations, new.operations, _by_name)
    more, gone, came = _pairs(old_rest, new_rest, _by_meaning)
    pairs = [*made, *more, *((g, ()) for g in _groups(gone, _by_meaning).values())]
    return pairs + [((), g) for g in _groups(came, _by_meaning).values()]


def _groups(operations: Iterable[Operation], key: Key) -> dict[Hashable, list[Operation]]:
    groups: dict[Hashable, list[Operation]] = {}
    for o in operations:
        groups.setdefault(key(o), []).append(o)
    return groups


def _pairs(
    old: Sequence[Operation], new: Sequence[Operation], key: Key
) -> tuple[list[Both], list[Operation], list[Operation]]:
    """Operations with the same key in both, and the rest of each."""
    olds, news = _groups(old, key), _groups(new, key)
    both: list[Both] = [(olds[k], news[k]) for k in olds if k in news]
    old_rest = [o for k, group in olds.items() if k not in news for o in group]
    new_rest = [o for k, group in news.items() if k not in olds for o in group]
    return both, old_rest, new_rest


def _times(pair: Both, before: _TimeScale, after: _TimeScale) -> tuple[float, float]:
    """The time per step in both.

    A capture begins and ends within a step, so that some operations are in it once more than
    others. Where that alone explains how often it ran, only the times of its runs are compared.
    """
    olds, news = pair
    shares = [sum(o.self_percent for o in group) for group in pair]
    runs = _common_runs(pair, before, after) if len(olds) == len(news) else None
    if runs is None:
        return before.per_percent * shares[0], after.per_percent * shares[1]
    first, second = (sum(o.self_s for o in g) / sum(o.runs for o in g) for g in pair)
    return runs * first, runs * second


def _common_runs(pair: Both, before: _TimeScale, after: _TimeScale) -> float | None:
    """Runs per step and core that may be those of both captures; None if they cannot be the same,
    or are unknown.
    """
    least, most, likely = 0.0, math.inf, 0.0
    for group, scale in zip(pair, (before, after), strict=True):
        runs = sum(o.runs for o in group) / scale.cores
        if runs <= 0 or not scale.steps or not 0 < scale.steps < STEPS_MOST:
            return None
        least = max(least, runs / (math.floor(scale.steps) + 1))
        fewest = math.ceil(scale.steps) - 1
        most = min(most, runs / fewest if fewest > 0 else math.inf)
        likely += runs / scale.steps / 2
    return min(max(likely, least), most) if least <= most else None


def _change(pair: Both, before: _TimeScale, after: _TimeScale) -> Change:
    olds, news = pair
    old_time, new_time = _times(pair, before, after)
    first = max(news or olds, key=lambda o: o.self_percent)
    others = max(len(olds), len(news)) - 1
    name = f"{first.name} and {others} more" if others else first.name
    return Change(
        name=name,
        category=first.category,
        source=first.source,
        old=old_time,
        new=new_time,
        state=NEW if not olds else GONE if not news else "",
    )
