"""The programs and the longest operations of a profile, as tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tpusmi import text
from tpusmi.report import words
from tpusmi.report.profile.figure_lines import source_of
from tpusmi.report.profile.operation_kinds import is_wait
from tpusmi.report.profile.styled import Line, heading
from tpusmi.report.profile.styled_table import Cell, TableColumn, table
from tpusmi.trace.figures import Operation, ProgramRuns, TraceProfile

PROGRAMS_MOST = 8
NAME_MOST = 400
NOTHING_PERCENT, FEWEST = 0.05, 5
"""Operations with a smaller share have no line, unless all are so short."""
PROGRAM_COLUMNS = (
    TableColumn("BUSY"),
    TableColumn("RUNS", rank=2),
    TableColumn("MEAN", rank=1),
    TableColumn("PERIOD", rank=3),
    TableColumn("PROGRAM", right=False, least=16),
)
COLUMNS = (
    TableColumn("TIME"),
    TableColumn("SELF", rank=2),
    TableColumn("RUNS", rank=7, spare=16),
    TableColumn("MXU", rank=1),
    TableColumn("HBM BW", rank=3),
    TableColumn("BOUND BY", rank=5, right=False, spare=16),
    TableColumn("CATEGORY", rank=6, right=False, least=16, spare=16),
    TableColumn("OPERATION", right=False, least=18),
    TableColumn("SOURCE", rank=4, right=False, least=14),
    TableColumn("PROGRAM", rank=9, right=False, least=12),
    TableColumn("PATH IN JAX", rank=8, right=False, least=40, spare=8),
)


def program_lines(p: TraceProfile, width: int) -> list[Line]:
    """The busiest programs."""
    if not p.programs:
        return []
    rows = [_program(r) for r in p.programs[:PROGRAMS_MOST]]
    left = len(p.programs) - len(rows)
    more = f"{len(rows)} of {len(p.programs)}" if left else ""
    return [heading("PROGRAMS", more), *table(PROGRAM_COLUMNS, rows, width)]


def _program(r: ProgramRuns) -> Sequence[Cell]:
    return (
        (words.percent(r.busy_percent), "bold"),
        (words.count(r.runs), "plain"),
        (words.duration(r.mean_s), "plain"),
        (words.duration(r.period_s), "plain"),
        (text.clean(r.name, NAME_MOST), "plain"),
    )


def operation_lines(p: TraceProfile, width: int, top: int) -> list[Line]:
    """The operations with the most self time; of those that take next to none, the number."""
    asked_for = p.operations[: max(0, top)]
    chosen = [o for o in asked_for if o.self_percent >= NOTHING_PERCENT] or asked_for[:FEWEST]
    if not chosen:
        return []
    number = f"{len(chosen)} of {len(p.operations)}, " if len(chosen) < len(p.operations) else ""
    share = sum(o.self_percent for o in chosen)
    remark = f"{number}{words.percent(share)} of the time; self time of all cores"
    several = len({o.program for o in chosen}) > 1
    rows = [_operation(o, several) for o in chosen]
    source = source_of(p.sources, "operations")
    left = len(asked_for) - len(chosen)
    more: list[Line] = [((f" {left} more with less than 0.1 % each", "dim"),)] if left else []
    return [heading("OPERATIONS", remark, source), *table(COLUMNS, rows, width), *more]


def _operation(o: Operation, several_programs: bool) -> Sequence[Cell]:
    style = "warn" if is_wait(o) else "plain"
    return (
        (words.percent(o.self_percent), "bold"),
        (words.duration(o.self_s), "plain"),
        (words.count(o.runs), "plain"),
        (words.percent(o.mxu_percent), "plain"),
        (words.percent(o.hbm_bandwidth_percent), "plain"),
        (_own(o.bound_by, 12), "plain"),
        (_own(o.category), style),
        (_own(o.name), style),
        (_own(o.source).rpartition("/")[2], "dim"),
        (_own(o.program) if several_programs else "", "dim"),
        (_own(o.framework_name), "dim"),
    )


def _own(value: str | None, most: int = NAME_MOST) -> str:
    return text.clean(value, most) if value else ""
