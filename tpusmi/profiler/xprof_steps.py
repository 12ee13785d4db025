"""The steps of a trace, from the rows of xprof's step table. Pure.

Never from its own average and minimum: they count steps that the ends of the capture cut off.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tpusmi.profiler.xprof_tables import amount, measured, number, with_column
from tpusmi.trace.figures import TracedSteps
from tpusmi.trace.step_times import step_times

CUT_BELOW = 0.5
"""The first or last step is cut off if it is shorter than this part of the median step,"""
CUT_BELOW_OTHERS, OTHERS_LEAST = 0.8, 3
"""or than this part of the shortest of so many others, which show how much steps vary."""
SAME_MS = 0.01
_PARTS = "TimeMs"
_SAYS = "Step time ="


class StepRow(NamedTuple):
    """One step, as long as on its slowest core."""

    time_s: float
    input_percent: float | None
    """Share of its time that waits for input."""
    idle_s: float | None
    compile_s: float | None


class PageSteps(NamedTuple):
    """The steps of a page."""

    whole: tuple[StepRow, ...]
    cut_off: int


def steps_of(pages: Mapping[str, Any]) -> PageSteps | None:
    """The steps; None without step markers."""
    for name in ("overview_page", "input_pipeline_analyzer"):
        table = with_column(pages.get(name), "stepnum")
        if table is not None and (rows := [r for r in map(_row, table.rows) if r.time_s > 0]):
            return _without_cut_off(rows)
    return None


def times(steps: PageSteps | None) -> TracedSteps | None:
    """The times of the whole steps; None if there is no step."""
    if steps is None or not steps.whole:
        return None
    inputs = [row.input_percent for row in steps.whole if row.input_percent is not None]
    has_inputs = len(inputs) == len(steps.whole)
    return step_times(
        [row.time_s for row in steps.whole], steps.cut_off, inputs if has_inputs else ()
    )


def input_bound_percent(steps: PageSteps | None) -> float | None:
    """Mean share of the step time that waits for input; None if that of a step is unknown."""
    shares = [r.input_percent for r in steps.whole] if steps else []
    numbers = [share for share in shares if share is not None]
    return sum(numbers) / len(numbers) if numbers and len(numbers) == len(shares) else None


def idle_percent(steps: PageSteps | None) -> float | None:
    """Share of the step time without work on the device; None if xprof does not say."""
    rows = steps.whole if steps else ()
    idle = [row.idle_s for row in rows if row.idle_s is not None]
    if not rows or len(idle) < len(rows):
        return None
    return 100 * sum(idle) / sum(row.time_s for row in rows)


def compile_percent(steps: PageSteps | None) -> float | None:
    """Share of the step time with compilation; None where xprof sees none."""
    rows = steps.whole if steps else ()
    compiling = sum(row.compile_s or 0.0 for row in rows)
    return 100 * compiling / sum(row.time_s for row in rows) if compiling > 0 else None


def _row(row: Mapping[str, Any]) -> StepRow:
    parts = {k: amount(v) for k, v in row.items() if k.endswith(_PARTS)}
    time_ms = parts.get("stepTimeMs") or sum(parts.values())
    stated_ms = _stated_ms(row.get("tooltip"))
    if stated_ms is not None and abs(stated_ms - time_ms) > SAME_MS:
        time_ms = stated_ms  # parts that overlap are not a sum
    share = number(row.get("infeedPercentAverage"))
    if share is None and "infeedTimeMs" in parts and time_ms > 0:
        share = 100 * parts["infeedTimeMs"] / time_ms
    idle_ms = parts.get("tcIdleTimeMs", parts.get("idleTimeMs"))
    return StepRow(
        time_s=time_ms / 1000,
        input_percent=share,
        idle_s=None if idle_ms is None else idle_ms / 1000,
        compile_s=parts["compileTimeMs"] / 1000 if "compileTimeMs" in parts else None,
    )


def _stated_ms(tooltip: Any) -> float | None:
    """The step time that the row's own text states."""
    if not isinstance(tooltip, str):
        return None
    words = tooltip[:1000].partition(_SAYS)[2].split(maxsplit=1)
    return measured(words[0]) if words else None


def _without_cut_off(rows: Sequence[StepRow]) -> PageSteps:
    least_s = CUT_BELOW * statistics.median(row.time_s for row in rows)
    others = rows[1:-1]
    if len(others) >= OTHERS_LEAST:
        least_s = max(least_s, CUT_BELOW_OTHERS * min(row.time_s for row in others))
    whole = list(rows)
    for end in (0, -1):
        if len(whole) > 1 and whole[end].time_s < least_s:
            del whole[end]
    return PageSteps(tuple(whole), len(rows) - len(whole))
