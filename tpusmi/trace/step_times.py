"""Times of the whole steps in a trace, from the steps of its devices or the marks of its host."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise

from tpusmi.trace.core_trace import PS_PER_S, CoreTrace, DeviceStep
from tpusmi.trace.figures import TracedSteps
from tpusmi.trace.host_plane import Marker

CUT_OFF_BELOW = 0.9
"""The first or last step is cut off when it has a smaller share of the usual operations."""


def whole_steps(rows: Sequence[DeviceStep]) -> list[DeviceStep]:
    """The steps of one device that the capture did not cut off, which can only be the outer two.

    Such a step has fewer operations than those between. One step alone cannot be judged, and counts
    as cut off: a capture nearly always begins within one.
    """
    if len(rows) < 2:
        return []
    sizes = [row.operations or 0 for row in rows]
    if not _usual(sizes):  # no operations were counted: then by time
        sizes = [row.end - row.start for row in rows]
    usual = _usual(sizes)
    outer = {0, len(rows) - 1}
    return [
        row
        for i, (row, size) in enumerate(zip(rows, sizes, strict=True))
        if i not in outer or size >= CUT_OFF_BELOW * usual
    ]


def _usual(sizes: Sequence[int]) -> int:
    """The size of a whole step: of those between the outer two, if there are any."""
    return statistics.median_low(sizes[1:-1]) if len(sizes) > 2 else max(sizes)


def steps_of_core(core: CoreTrace) -> TracedSteps | None:
    """The step times of one device; None when it has no whole step."""
    whole = whole_steps(core.steps)
    times = [(row.end - row.start) / PS_PER_S for row in whole]
    return step_times(times, len(core.steps) - len(whole))


def steps_of_all(cores: Iterable[CoreTrace]) -> TracedSteps | None:
    """Each step as long as on its slowest device. It must be whole on all that have it."""
    times: dict[str, int] = {}
    cut_off: set[str] = set()
    for core in cores:
        whole = whole_steps(core.steps)
        for row in whole:
            times[row.name] = max(times.get(row.name, 0), row.end - row.start)
        cut_off |= {row.name for row in core.steps} - {row.name for row in whole}
    kept = [time / PS_PER_S for name, time in times.items() if name not in cut_off]
    return step_times(kept, len(cut_off))


def main_markers(markers: Sequence[Marker]) -> list[Marker]:
    """The marks of the loop that has most of them, sorted by start."""
    loops: dict[tuple[int, str], list[Marker]] = {}
    for marker in markers:
        loops.setdefault((marker.line, marker.name), []).append(marker)
    longest: list[Marker] = max(loops.values(), key=len, default=[])
    return sorted(longest, key=lambda marker: marker.start)


def steps_of_host(markers: Sequence[Marker]) -> TracedSteps | None:
    """Steps that the program marks: each from its mark to the next, since a device may still work
    on a step when the host has left it, and input may be read between two marks.

    The last one has no next mark, and counts as cut off.
    """
    times = [(after.start - before.start) / PS_PER_S for before, after in pairwise(markers)]
    return step_times([time for time in times if time > 0], min(len(markers), 1))


def step_times(times: Sequence[float], cut_off: int) -> TracedSteps | None:
    """The summary; None when there is no whole step."""
    if not times:
        return None
    ordered = sorted(times)
    return TracedSteps(
        whole=len(ordered),
        cut_off=cut_off,
        min_s=ordered[0],
        mean_s=statistics.fmean(ordered),
        p50_s=statistics.median(ordered),
        p95_s=_percentile(ordered, 0.95),
        max_s=ordered[-1],
    )


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Between the two nearest values, in proportion."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def input_bound_percent(cores: Sequence[CoreTrace]) -> float | None:
    """Share of the whole steps in which a device waits for its infeed.

    None when no device has whole steps, or an infeed at all: programs of JAX rarely do.
    """
    waited = total = 0
    for core in cores:
        whole = whole_steps(core.steps)
        total += sum(row.end - row.start for row in whole)
        waited += overlap([(row.start, row.end) for row in whole], core.infeed)
    return 100 * waited / total if total and any(core.infeed for core in cores) else None


def host_wait_percent(
    markers: Sequence[Marker], waits: Iterable[tuple[int, int, int]]
) -> float | None:
    """Share of the marked steps in which the loop itself waits for its next input; None when the
    trace does not name such a wait.
    """
    if len(markers) < 2:
        return None
    own = sorted((a, b) for line, a, b in waits if line == markers[0].line)
    steps = [(before.start, after.start) for before, after in pairwise(markers)]
    total = sum(end - start for start, end in steps)
    return 100 * min(1.0, overlap(steps, own) / total) if own and total > 0 else None


def overlap(steps: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> int:
    """How much of the steps the other intervals take; both sorted, the others counted once."""
    shared = i = 0
    reached = 0
    for start, end in others:
        begin = max(start, reached)
        reached = max(reached, end)
        while i < len(steps) and steps[i][1] <= begin:
            i += 1
        k = i
        while k < len(steps) and steps[k][0] < end:
            shared += max(0, min(end, steps[k][1]) - max(begin, steps[k][0]))
            k += 1
    return shared
