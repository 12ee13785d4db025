"""Two captures side by side: what became slower, what faster, and which operations did it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tpusmi import text
from tpusmi.report import words
from tpusmi.report.profile.capture_words import device_name, label, local_time, noun
from tpusmi.report.profile.derived_figures import input_percent, step_s, whole_steps
from tpusmi.report.profile.figure_lines import SHARES, step_time
from tpusmi.report.profile.operation_changes import GONE, NEW, OF_THE_TIME, Change, changes
from tpusmi.report.profile.operation_lines import NAME_MOST
from tpusmi.report.profile.styled import LEAST_WIDTH, Line, facts, heading, joined, paragraph
from tpusmi.report.profile.styled_table import Cell, TableColumn, table
from tpusmi.trace.figures import TraceProfile

SAME_RATIO, SAME_POINTS = 0.02, 1.0
"""Changes of times and of percentages up to these may be chance."""
OPERATIONS_MOST = 12
STEPS_LEAST = 3
COLUMNS = (
    TableColumn("", right=False),
    TableColumn("OLD"),
    TableColumn("NEW"),
    TableColumn("CHANGE"),
    TableColumn("", rank=1),
)
OPERATION_COLUMNS = (
    TableColumn("OLD", rank=1),
    TableColumn("NEW", rank=1),
    TableColumn("CHANGE"),
    TableColumn("", rank=2),
    TableColumn("OPERATION", right=False, least=20),
    TableColumn("SOURCE", rank=3, right=False, least=14),
    TableColumn("CATEGORY", rank=4, right=False, least=16),
)


class Pair(NamedTuple):
    """A figure of both captures."""

    name: str
    old: float | None
    new: float | None
    format: Callable[[float | None], str]
    good: int
    """1 where more is better, -1 where less is, 0 where neither."""
    is_percent: bool = False


def lines(old: TraceProfile, new: TraceProfile, width: int) -> list[Line]:
    """Both captures in lines of at most `width` columns, what matters most first."""
    width = max(width, LEAST_WIDTH)
    sections = (
        _head(old, new, width),
        _verdict(old, new, width),
        _figures(old, new, width),
        *_operations(old, new, width),
    )
    return joined(sections, width)


def incomparable(old: TraceProfile, new: TraceProfile) -> list[str]:
    """Why figures of the two say little about each other, in sentences."""
    names = [device_name(p) for p in (old, new)]
    cores = [len(p.cores) for p in (old, new) if p.cores]  # pages of xprof have none
    reasons = []
    if names[0] != names[1]:
        devices = " and ".join(name or "an unknown device" for name in names)
        reasons.append(f"They are of different devices: {devices}.")
    if len({*cores}) > 1:
        reasons.append(f"They are of different numbers of cores: {cores[0]} and {cores[1]}.")
    without = [name for name, p in (("old", old), ("new", new)) if step_s(p) is None]
    if without:
        which = "neither of them has a" if len(without) == 2 else f"the {without[0]} one has no"
        reasons.append(f"Step times cannot be compared: {which} whole step.")
    steps = [p.steps.whole for p in (old, new) if p.steps]
    if not without and min(steps) < STEPS_LEAST:
        reasons.append(f"So few whole steps ({steps[0]} and {steps[1]}) vary by chance.")
    if old.capture.simulated != new.capture.simulated:
        reasons.append("One of them is simulated.")
    return reasons


def _head(old: TraceProfile, new: TraceProfile, width: int) -> list[Line]:
    return [*_who("old  ", old, width), *_who("new  ", new, width)]


def _who(name: str, p: TraceProfile, width: int) -> list[Line]:
    c = p.capture
    parts = (
        label(p),
        "" if c.pid is None else f"pid {c.pid}",
        device_name(p),
        text.counted(len(p.cores), noun(p)) if p.cores else "",
        f"captured {moment}" if (moment := local_time(c.captured_at_s)) else "",
        f"{words.duration(p.captured_s)} long" if p.captured_s is not None else "",
        "SIMULATED" if c.simulated else "",
    )
    return facts(filter(None, parts), width, "plain", name)


def _verdict(old: TraceProfile, new: TraceProfile, width: int) -> list[Line]:
    """The most important sentence, and what makes the comparison doubtful."""
    before, after = step_s(old), step_s(new)
    result: list[Line] = []
    if before and after:
        ratio = after / before
        times = f"from {step_time(before)} to {step_time(after)}"
        if abs(ratio - 1) <= SAME_RATIO:
            sentence, style = f"Steps take as long as before: {times}.", "good"
        elif ratio > 1:
            sentence, style = f"Steps are {100 * (ratio - 1):.0f} % longer: {times}.", "bad"
        else:
            sentence, style = f"Steps are {100 * (1 - ratio):.0f} % shorter: {times}.", "good"
        result += paragraph(sentence, width, style, " ")
    for reason in incomparable(old, new):
        result += paragraph(reason, width, "warn", " !  ")
    return [heading("RESULT"), *result] if result else []


def _figures(old: TraceProfile, new: TraceProfile, width: int) -> list[Line]:
    rows = [row for pair in _pairs(old, new) if (row := _row(pair))]
    return [heading("FIGURES"), *table(COLUMNS, rows, width)] if rows else []


def _pairs(old: TraceProfile, new: TraceProfile) -> list[Pair]:
    def time(name: str, field: str) -> Pair:
        both = [getattr(whole_steps(p), field, None) for p in (old, new)]
        return Pair(name=name, old=both[0], new=both[1], format=step_time, good=-1)

    def percent(name: str, field: str, good: int, of_shares: bool = False) -> Pair:
        both = [getattr(p.shares if of_shares else p, field) for p in (old, new)]
        return Pair(
            name=name, old=both[0], new=both[1], format=words.percent, good=good, is_percent=True
        )

    idle = [_idle_s(p) for p in (old, new)]
    peaks = [max((m.peak_bytes for m in p.memory), default=None) for p in (old, new)]
    signs = {"compute_percent": 0}
    return [
        time("Step p50", "p50_s"),
        time("Step min", "min_s"),
        time("Step p95", "p95_s"),
        Pair(name="Idle per step", old=idle[0], new=idle[1], format=step_time, good=-1),
        percent("Idle", "idle_percent", -1),
        percent("MXU", "mxu_percent", 1),
        percent("HBM bandwidth", "hbm_bandwidth_percent", 0),
        Pair(
            name="FLOP rate",
            old=old.flops_per_s,
            new=new.flops_per_s,
            format=words.flops,
            good=1,
        ),
        Pair(
            name="Input-bound",
            old=input_percent(old),
            new=input_percent(new),
            format=words.percent,
            good=-1,
            is_percent=True,
        ),
        *(
            percent(name.capitalize(), field, signs.get(field, -1), of_shares=True)
            for field, name, _ in SHARES
            if field != "idle_percent"
        ),
        percent("Compiling", "compile_percent", -1, of_shares=True),
        Pair(name="Memory peak", old=peaks[0], new=peaks[1], format=words.size, good=-1),
    ]


def _idle_s(p: TraceProfile) -> float | None:
    """The idle time of a core in a step."""
    step = step_s(p)
    return None if step is None or p.idle_percent is None else step * p.idle_percent / 100


def _row(pair: Pair) -> Sequence[Cell] | None:
    """A line of the table; None where both are unknown, or nothing."""
    if not pair.old and not pair.new and (pair.old is None or pair.new is None or pair.is_percent):
        return None
    change, ratio, style = _change(pair)
    return (
        (pair.name, "plain"),
        (pair.format(pair.old), "dim"),
        (pair.format(pair.new), "bold"),
        (change, style),
        (ratio, style),
    )


def _change(pair: Pair) -> tuple[str, str, str]:
    """The change in absolute figures and in percent, and its style."""
    if pair.old is None or pair.new is None:
        return words.UNKNOWN, "", "dim"
    by = pair.new - pair.old
    ratio = _ratio(pair.old, pair.new)
    is_same = abs(by) < SAME_POINTS if pair.is_percent else abs(by) <= SAME_RATIO * abs(pair.old)
    if is_same and pair.format(pair.old) == pair.format(pair.new):
        return "same", "", "dim"
    style = (
        "dim" if is_same else {1: "good", -1: "bad", 0: "plain"}[pair.good * (1 if by > 0 else -1)]
    )
    if pair.is_percent:
        return f"{by:+.1f} points", "", style
    return f"{'+' if by > 0 else '-'}{pair.format(abs(by))}", ratio, style


def _ratio(old: float, new: float) -> str:
    """`+12 %`, `+0.2 %`, and `×12` from ten times on; empty where the old one is 0."""
    if old <= 0:
        return ""
    percent = 100 * (new / old - 1)
    return f"×{new / old:.0f}" if new >= 10 * old else f"{percent:+.{int(abs(percent) < 1)}f} %"


def _operations(old: TraceProfile, new: TraceProfile, width: int) -> list[list[Line]]:
    """Tables of what grew, shrank, came and went."""
    all_, unit = changes(old, new)
    grew = [c for c in all_ if c.by > 0]
    shrank = [c for c in all_ if c.by < 0]
    return [
        _table("OPERATIONS THAT GREW", grew, unit, width),
        _table("OPERATIONS THAT SHRANK", shrank, unit, width),
    ]


def _table(title: str, chosen: Sequence[Change], unit: str, width: int) -> list[Line]:
    if not chosen:
        return []
    ranked = sorted(chosen, key=lambda c: -abs(c.by))[:OPERATIONS_MOST]
    left = len(chosen) - len(ranked)
    more = f"{unit}; smaller changes left out: {left}" if left else unit
    rows = [_operation(c, unit) for c in ranked]
    return [heading(title, more), *table(OPERATION_COLUMNS, rows, width)]


def _operation(c: Change, unit: str) -> Sequence[Cell]:
    style = "bad" if c.by > 0 else "good"
    if unit == OF_THE_TIME:
        format, by, ratio = words.percent, f"{c.by:+.1f} points", c.state
    else:
        format, ratio = words.duration, c.state or _ratio(c.old, c.new)
        by = ("+" if c.by > 0 else "-") + format(abs(c.by))
    return (
        (format(c.old) if c.state != NEW else "", "dim"),
        (format(c.new) if c.state != GONE else "", "plain"),
        (by, style),
        (ratio, style),
        (text.clean(c.name, NAME_MOST), "plain"),
        (text.clean(c.source or "", NAME_MOST).rpartition("/")[2], "dim"),
        (text.clean(c.category or "", NAME_MOST), "dim"),
    )
