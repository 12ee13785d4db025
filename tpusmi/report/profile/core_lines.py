"""The cores of a profile as a table that shows which one differs; memory at its peak. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from tpusmi import text
from tpusmi.report import words
from tpusmi.report.profile.capture_words import noun
from tpusmi.report.profile.derived_figures import (
    busy_percent,
    collectives_percent,
    core_name,
    idle_percent,
    memory_percent,
    step_s,
)
from tpusmi.report.profile.figure_lines import source_of
from tpusmi.report.profile.styled import Line, bar, heading, padded, tracked, width_of
from tpusmi.report.profile.styled_table import Cell, TableColumn, table
from tpusmi.trace.figures import CoreFigures, MemoryPeak, TraceProfile

ROWS_MOST = 16
"""With more cores, only those that differ most have a line."""
OUTLIERS = 8
DIFFERS_POINTS, DIFFERS_RATIO = 5.0, 1.05
"""Busy so much more or less, or with steps so much longer, than the median core."""
BAR = 16
COLUMNS = (
    TableColumn("LOCAL", rank=6),
    TableColumn("BUSY"),
    TableColumn("IDLE", rank=2),
    TableColumn("COLLECT", rank=3),
    TableColumn("MXU", rank=1),
    TableColumn("HBM BW", rank=3),
    TableColumn("FLOP/S", rank=4),
    TableColumn("STEP p50", rank=1),
    TableColumn("", rank=5, right=False),
    TableColumn("", right=False),
)


def core_lines(p: TraceProfile, width: int) -> list[Line]:
    """A row for each core, or for those that differ and one for the others."""
    cores = p.cores
    if not cores:
        return []
    busy = _median(busy_percent(c) for c in cores)
    usual = _median(step_s(c) for c in cores)
    rows = [_row(c, busy, usual) for c in _chosen(cores, busy, usual)]
    if len(cores) > ROWS_MOST:
        rows.append(_others(cores, _chosen(cores, busy, usual)))
    alike = "all alike" if len(rows) == 1 else "those that differ most first"
    remark = f"{len(cores)}; {alike}" if len(cores) > ROWS_MOST else ""
    title = f"{noun(p).upper()}S"
    source = source_of(p.sources, "cores")
    return [
        heading(title, remark, source),
        *table((TableColumn(noun(p).upper()), *COLUMNS), rows, width),
    ]


def _median(values: Iterable[float | None]) -> float | None:
    numbers = [v for v in values if v is not None]
    return median(numbers) if numbers else None


def _points(c: CoreFigures, busy: float | None) -> float:
    """How much busier it is than the median core."""
    own = busy_percent(c)
    return 0.0 if own is None or busy is None else own - busy


def _chosen(
    cores: Sequence[CoreFigures], busy: float | None, usual: float | None
) -> Sequence[CoreFigures]:
    if len(cores) <= ROWS_MOST:
        return cores

    def difference(c: CoreFigures) -> float:
        step = step_s(c)
        slower = 100 * (step / usual - 1) if step and usual else 0.0
        return max(abs(_points(c, busy)), slower)

    differing = [c for c in cores if _mark(c, busy, usual)[0]]
    return sorted(differing, key=difference, reverse=True)[:OUTLIERS]


def _row(c: CoreFigures, busy: float | None, usual: float | None) -> Sequence[Cell]:
    mark, style = _mark(c, busy, usual)
    own = busy_percent(c)
    local = str(c.local_index) if c.id is not None and c.local_index not in (None, c.id) else ""
    return (
        (core_name(c), style or "bold"),
        (local, "dim"),
        (words.percent(own), style or "plain"),
        (words.percent(idle_percent(c)), "plain"),
        (words.percent(collectives_percent(c)), "plain"),
        (words.percent(c.mxu_percent), "plain"),
        (words.percent(c.hbm_bandwidth_percent), "plain"),
        (words.flops(c.flops_per_s), "plain"),
        (words.duration(step_s(c)), style or "plain"),
        (bar((own or 0.0) / 100, BAR), style or "good"),
        (mark, style or "plain"),
    )


def _mark(c: CoreFigures, busy: float | None, usual: float | None) -> tuple[str, str]:
    """What is different about the core, and its style."""
    step = step_s(c)
    if step and usual and step >= usual * DIFFERS_RATIO:
        return f"slower by {100 * (step / usual - 1):.0f} %", "bad"
    points = _points(c, busy)
    if abs(points) < DIFFERS_POINTS:
        return "", ""
    return ("busier" if points > 0 else "less busy"), "warn"


def _others(cores: Sequence[CoreFigures], chosen: Sequence[CoreFigures]) -> Sequence[Cell]:
    """One row for all cores without a row of their own: the range of their values."""
    own = {id(c) for c in chosen}
    rest = [c for c in cores if id(c) not in own]
    busy = _range([busy_percent(c) for c in rest])
    idle = _range([idle_percent(c) for c in rest])
    mxu = _range([c.mxu_percent for c in rest])
    bandwidth = _range([c.hbm_bandwidth_percent for c in rest])
    step = _median(step_s(c) for c in rest)
    collectives = _range([collectives_percent(c) for c in rest])
    median_step = "median step" if step else ""
    values = (busy, idle, collectives, mxu, bandwidth, "", words.duration(step), "", median_step)
    return ((f"{len(rest)} others", "dim"), ("", "dim"), *((v, "dim") for v in values))


def _range(values: Sequence[float | None]) -> str:
    numbers = [v for v in values if v is not None]
    if not numbers:
        return words.UNKNOWN
    low, high = min(numbers), max(numbers)
    if words.percent(low) == words.percent(high):
        return words.percent(low)
    return f"{words.percent(low).removesuffix(' %')}–{words.percent(high)}"


GROUPS_MOST = 8


def memory_lines(p: TraceProfile, width: int) -> list[Line]:
    """The peak of each device; devices with the same peak together, the fullest first."""
    groups: dict[str, list[MemoryPeak]] = {}
    for m in sorted(p.memory, key=lambda m: memory_percent(m) or 0.0, reverse=True):
        groups.setdefault(words.size_pair(m.peak_bytes, m.capacity_bytes), []).append(m)
    if not groups:
        return []
    names = {pair: text.ranges(m.local_index for m in ms) for pair, ms in groups.items()}
    pairs = [*groups][:GROUPS_MOST]
    wide = max(width_of(names[pair]) for pair in pairs)
    wide = min(wide, max(10, width // 4))
    values = max(map(width_of, pairs))
    lines: list[Line] = [
        heading("MEMORY AT ITS PEAK", "local devices", source_of(p.sources, "memory"))
    ]
    for pair in pairs:
        fullest = groups[pair][0]
        name = padded(words.shortened(names[pair], wide), wide)
        lines.append(
            (*_memory_start(name, pair, values), *_filling(fullest, width - wide - values))
        )
    left = len(groups) - len(pairs)
    more = [((f" {text.counted(left, 'other amount')}, all smaller", "dim"),)] if left else []
    return [*lines, *more]


def _memory_start(name: str, pair: str, values: int) -> Line:
    return ((f" {name}  ", "bold"), (padded(pair, values, right=True), "plain"))


def _filling(m: MemoryPeak, room: int) -> Line:
    used = memory_percent(m)
    if used is None:
        return ()
    style = {"low": "good", "near": "warn", "full": "bad"}[words.fullness(used / 100)]
    percent = padded(words.percent(used), 6, right=True)
    return ((f"  {percent}  ", style), *tracked(used / 100, max(8, min(40, room - 16)), style))
