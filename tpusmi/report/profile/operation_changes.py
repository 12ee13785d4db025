"""Which operations of two captures are the same, and how much longer each takes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tpusmi.trace.figures import Operation, TraceProfile

NEW, GONE = "new", "gone"
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


def step_s(p: TraceProfile) -> float | None:
    """The median step time; None without a whole step."""
    return p.steps.p50_s if p.steps and p.steps.whole and p.steps.p50_s > 0 else None


def changes(old: TraceProfile, new: TraceProfile) -> tuple[list[Change], str]:
    """The changes that matter, and what their numbers are.

    They are seconds per step and core where both have steps: captures differ in length. Else they
    are percent of the captured time.
    """
    steps = [step_s(p) for p in (old, new)]
    if not old.operations or not new.operations:
        return [], ""
    if steps[0] is None or steps[1] is None:
        return _matched(old, new, 1.0, 1.0, LEAST_POINTS), "share of the time"
    per_step = [s / 100 for s in steps if s is not None]
    least = max(LEAST_S, LEAST_RATIO * min(s for s in steps if s is not None))
    return _matched(old, new, per_step[0], per_step[1], least), "time per step"


Key = Callable[[Operation], Hashable]
Groups = Mapping[Hashable, Sequence[Operation]]


def _by_name(o: Operation) -> Hashable:
    """XLA gives new numbers in each compilation, so the name alone is not enough."""
    return (o.program, o.name, o.category, o.framework_name)


def _by_meaning(o: Operation) -> Hashable:
    """What it does, by the path in JAX; without one, its name without the number."""
    return (o.category, o.framework_name or o.name.rstrip("0123456789").rstrip("."))


def _matched(
    old: TraceProfile, new: TraceProfile, before: float, after: float, least: float
) -> list[Change]:
    """Same names first; what is left by meaning, as sums: one operation may have become two."""
    made, old_rest, new_rest = _pairs(old.operations, new.operations, _by_name)
    more, gone, came = _pairs(old_rest, new_rest, _by_meaning)
    pairs = [*made, *more, *((g, ()) for g in _groups(gone, _by_meaning).values())]
    pairs += [((), g) for g in _groups(came, _by_meaning).values()]
    all_ = [_change(olds, news, before, after) for olds, news in pairs]
    return [c for c in all_ if abs(c.by) >= least]


def _groups(operations: Iterable[Operation], key: Key) -> dict[Hashable, list[Operation]]:
    groups: dict[Hashable, list[Operation]] = {}
    for o in operations:
        groups.setdefault(key(o), []).append(o)
    return groups


Both = tuple[Sequence[Operation], Sequence[Operation]]


def _pairs(
    old: Sequence[Operation], new: Sequence[Operation], key: Key
) -> tuple[list[Both], list[Operation], list[Operation]]:
    """Operations with the same key in both, and the rest of each."""
    olds, news = _groups(old, key), _groups(new, key)
    both: list[Both] = [(olds[k], news[k]) for k in olds if k in news]
    old_rest = [o for k, group in olds.items() if k not in news for o in group]
    new_rest = [o for k, group in news.items() if k not in olds for o in group]
    return both, old_rest, new_rest


def _change(
    olds: Sequence[Operation], news: Sequence[Operation], before: float, after: float
) -> Change:
    first = max(news or olds, key=lambda o: o.self_percent)
    others = max(len(olds), len(news)) - 1
    name = f"{first.name} and {others} more" if others else first.name
    return Change(
        name=name,
        category=first.category,
        source=first.source,
        old=before * sum(o.self_percent for o in olds),
        new=after * sum(o.self_percent for o in news),
        state=NEW if not olds else GONE if not news else "",
    )
