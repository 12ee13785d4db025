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
AHEAD_BELOW = 0.5
"""Marks that follow one another in less than this share of a run of the program are ahead of it."""


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
    waits = _wait_shares([(row.start, row.end) for row in whole], core.infeed)
    return step_times(times, len(core.steps) - len(whole), waits)


def steps_of_all(cores: Iterable[CoreTrace]) -> TracedSteps | None:
    """Each step as long as on its slowest device. It must be whole on all that have it.

    Its wait for input is the mean of the devices. None where no device has steps.
    """
    times: dict[str, int] = {}
    waits: dict[str, list[int]] = {}
    cut_off: set[str] = set()
    for core in cores:
        whole = whole_steps(core.steps)
        taken = overlaps([(row.start, row.end) for row in whole], core.infeed)
        for row, wait in zip(whole, taken, strict=True):
            times[row.name] = max(times.get(row.name, 0), row.end - row.start)
            waits.setdefault(row.name, []).append(wait)
        cut_off |= {row.name for row in core.steps} - {row.name for row in whole}
    kept = {name: time for name, time in times.items() if name not in cut_off}
    has_infeed = any(map(any, waits.values()))
    shares = [100 * statistics.fmean(waits[name]) / max(1, time) for name, time in kept.items()]
    seconds = [time / PS_PER_S for time in kept.values()]
    return step_times(seconds, len(cut_off), shares if has_infeed else ())


def _wait_shares(steps: Sequence[tuple[int, int]], waits: Sequence[tuple[int, int]]) -> list[float]:
    """What of each step the waits for input take, in percent; empty when there are none at all."""
    if not waits:
        return []
    taken = overlaps(steps, waits)
    return [
        100 * part / max(1, end - start) for part, (start, end) in zip(taken, steps, strict=True)
    ]


def main_markers(markers: Sequence[Marker]) -> list[Marker]:
    """The marks of the loop that has most of them, sorted by start."""
    loops: dict[tuple[int, str], list[Marker]] = {}
    for marker in markers:
        loops.setdefault((marker.line, marker.name), []).append(marker)
    longest: list[Marker] = max(loops.values(), key=len, default=[])
    return sorted(longest, key=lambda marker: marker.start)


def steps_of_host(
    markers: Sequence[Marker], waits: Iterable[tuple[int, int, int]] = ()
) -> TracedSteps | None:
    """Steps that the program marks: each from its mark to the next, since a device may still work
    on a step when the host has left it, and input may be read between two marks.

    The last one has no next mark, and counts as cut off. None without marks.
    """
    steps = _marked(markers)
    times = [(end - start) / PS_PER_S for start, end in steps]
    return step_times(times, min(len(markers), 1), _wait_shares(steps, _own(markers, waits)))


def runs_ahead(markers: Sequence[Marker], cores: Iterable[CoreTrace]) -> bool:
    """True when the time from mark to mark is far shorter than a run of the main program: the host
    starts steps and does not wait for them, so its marks do not show how long they take.
    """
    times = [end - start for start, end in _marked(markers)]
    usual = statistics.median(times) if times else None
    return usual is not None and any(usual < AHEAD_BELOW * _main_run_ps(core) for core in cores)


def _main_run_ps(core: CoreTrace) -> float:
    """How long the device is busy in a run of its longest program; 0 when it ran only once.

    By the busy time, because operations that run at the same time are each counted in full.
    """
    main = max(core.programs, key=lambda program: program.total_ps, default=None)
    total = sum(program.total_ps for program in core.programs)
    if main is None or main.runs < 2 or not total:
        return 0.0
    return core.busy_ps * main.total_ps / total / main.runs


def _marked(markers: Sequence[Marker]) -> list[tuple[int, int]]:
    pairs = pairwise(markers)
    return [(one.start, after.start) for one, after in pairs if after.start > one.start]


def _own(markers: Sequence[Marker], waits: Iterable[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """The waits of the thread that marks the steps: other threads read ahead."""
    return sorted((a, b) for line, a, b in waits if markers and line == markers[0].line)


def step_times(
    times: Sequence[float], cut_off: int, waits: Sequence[float] = ()
) -> TracedSteps | None:
    """The summary, with the percentages that the steps wait for input; None for no whole step."""
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
        input_least_percent=min(waits, default=None),
        input_most_percent=max(waits, default=None),
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
        waited += sum(overlaps([(row.start, row.end) for row in whole], core.infeed))
    return 100 * waited / total if total and any(core.infeed for core in cores) else None


def host_wait_percent(
    markers: Sequence[Marker], waits: Iterable[tuple[int, int, int]]
) -> float | None:
    """Share of the marked steps in which the loop itself waits for its next input; None when the
    trace does not name such a wait.
    """
    steps, own = _marked(markers), _own(markers, waits)
    total = sum(end - start for start, end in steps)
    return 100 * sum(overlaps(steps, own)) / total if own and total else None


def overlaps(steps: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> list[int]:
    """How much of each step the other intervals take; both sorted, each moment counted once."""
    shared = [0] * len(steps)
    first = reached = 0
    for start, end in others:
        begin, reached = max(start, reached), max(reached, end)
        while first < len(steps) and steps[first][1] <= begin:
            first += 1
        for i in range(first, len(steps)):
            if steps[i][0] >= end:
                break
            shared[i] += max(0, min(end, steps[i][1]) - max(begin, steps[i][0]))
    return shared
