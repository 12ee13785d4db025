"""Graphs that begin later than those beside them: their titles say for how long they have data."""

from __future__ import annotations

from collections.abc import Sequence

from tpusmi.report import words
from tpusmi.tui.draw.plot import Curve

LEAST_SHARE = 20
"""A graph that is shorter by less than that part of the axis looks as long as the others."""


def dated(curves: Sequence[Curve], span_s: float) -> list[Curve]:
    """The curves over one axis of that span; those that are shorter than others say for how long
    they have data: `for 40s`.
    """
    begins = [_begin(curve.values) for curve in curves]
    first = min((b for b in begins if b is not None), default=0.0)
    return [
        curve
        if begin is None or begin - first < 1 / LEAST_SHARE
        else curve._replace(remarks=(f"for {words.elapsed((1 - begin) * span_s)}", *curve.remarks))
        for curve, begin in zip(curves, begins, strict=True)
    ]


def _begin(values: Sequence[float | None]) -> float | None:
    """Where on the axis its first value is, from 0 to 1; None without one."""
    return next((n / len(values) for n, value in enumerate(values) if value is not None), None)
