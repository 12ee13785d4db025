"""A slice as a table of hosts: for the plain report and for the page of the dashboard. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

from tpusmi.model import SliceState
from tpusmi.model.slice_hosts import Slice, SliceDevice, SliceProcess
from tpusmi.model.states import NOT_HEARD_OF
from tpusmi.report import words
from tpusmi.report.columns import ColumnSpec
from tpusmi.text import counted

SLOWEST = "*"
"""Behind the step time of the slowest host."""
PLAIN_MOST = 16
"""Hosts that the plain report lists: of more, the worst."""
CLOCK_LEAST_S = 1.0
"""A smaller difference of two clocks is not shown: agents cannot measure it well."""


class SliceRow(NamedTuple):
    """A line of the table."""

    host: SliceProcess
    cells: tuple[str, ...]
    is_slowest: bool


class HostOrder(NamedTuple):
    """A way to sort the hosts."""

    name: str
    key: Callable[[SliceProcess], tuple[float, ...]]


def worst_key(h: SliceProcess) -> tuple[float, ...]:
    """Silent hosts first, then the slowest."""
    return h.state == SliceState.LIVE, -(h.step_time_s or 0.0), h.process_index


ORDERS = (
    HostOrder("process", lambda h: (h.process_index,)),
    HostOrder("worst first", worst_key),
    HostOrder("step time", lambda h: (-(h.step_time_s or 0.0), h.process_index)),
    HostOrder("memory", lambda h: (-(fullness(h)[2] or 0.0), h.process_index)),
    HostOrder("age", lambda h: (-h.data_age_s, h.process_index)),
)


def fullness(h: SliceProcess) -> tuple[float | None, float | None, float | None]:
    """Least, mean and most of the memory in use on its devices, in percent; None where that is
    unknown for one of them.
    """
    shares = h.memory_percents
    if not shares or len(shares) < h.device_count:
        return None, None, None
    return min(shares), fmean(shares), max(shares)


def _memory(h: SliceProcess) -> str:
    least, mean, most = fullness(h)
    if least is None or mean is None or most is None:
        return words.UNKNOWN
    return f"{least:.0f} {mean:.0f} {most:.0f} %"


def _mean(get: Callable[[SliceDevice], float | None]) -> Callable[[SliceProcess], str]:
    """The mean over the devices in percent; unknown where it is unknown for one of them."""

    def text(h: SliceProcess) -> str:
        values = [value for d in h.devices if (value := get(d)) is not None]
        is_whole = values and len(values) == h.device_count
        return words.percent(fmean(values) if is_whole else None)

    return text


def _idle(h: SliceProcess) -> str:
    values = [d.idle_s for d in h.devices if d.idle_s is not None]
    return words.idle(max(values) if values and len(values) == h.device_count else None)


def _clock(h: SliceProcess) -> str:
    seconds = h.clock_difference_s
    if seconds is None:
        return words.UNKNOWN
    if abs(seconds) < CLOCK_LEAST_S:
        return "same"
    return f"{'+' if seconds > 0 else '-'}{words.elapsed(abs(seconds))}"


def _state(h: SliceProcess) -> str:
    return h.state if h.state != SliceState.LIVE else h.phase or h.state


_COLUMNS: tuple[tuple[ColumnSpec, Callable[[SliceProcess], str]], ...] = (
    (ColumnSpec("HOST", "Name of the host."), lambda h: h.name or words.UNKNOWN),
    (
        ColumnSpec("PROC", "Number of the process in the job.", right=True),
        lambda h: str(h.process_index),
    ),
    (ColumnSpec("STATE", "What its job does, or that it has stopped reporting."), _state),
    (
        ColumnSpec("AGE", "Age of its figures.", rank=4, right=True),
        lambda h: words.elapsed(h.data_age_s),
    ),
    (
        ColumnSpec("STEPS", "Calls of tpusmi.step() so far.", rank=3, right=True),
        lambda h: words.count(h.steps),
    ),
    (
        ColumnSpec("STEP", "Mean time of a step, over the last minute.", right=True),
        lambda h: words.duration(h.step_time_s),
    ),
    (
        ColumnSpec("DEV", "Devices of the process.", rank=5, right=True),
        lambda h: str(h.device_count),
    ),
    (ColumnSpec("HBM min mean max", "Memory in use on its devices.", rank=1, right=True), _memory),
    (
        ColumnSpec(
            "MXU", "Share of the peak matrix throughput.", rank=2, right=True, optional=True
        ),
        _mean(lambda d: d.tensorcore_utilization_percent),
    ),
    (
        ColumnSpec("DUTY", "Share of time its chips were busy.", rank=2, right=True),
        _mean(lambda d: d.duty_cycle_percent),
    ),
    (
        ColumnSpec(
            "IDLE", "Longest time since a TensorCore last ran.", rank=6, right=True, optional=True
        ),
        _idle,
    ),
    (
        ColumnSpec(
            "MFU", "Model FLOPs per second over the peak.", rank=7, right=True, optional=True
        ),
        lambda h: words.percent(h.mfu_percent),
    ),
    (
        ColumnSpec(
            "CLOCK",
            "How far its clock is ahead of this host's (+), or behind (-).",
            rank=8,
            right=True,
        ),
        _clock,
    ),
    (
        ColumnSpec("WARNINGS", "Codes of its agent's warnings.", rank=9, optional=True),
        lambda h: ", ".join(h.warnings) or " ",
    ),
)
HOST_COLUMNS = tuple(column for column, _ in _COLUMNS)


def rows_of(s: Slice, order: HostOrder = ORDERS[0]) -> tuple[list[ColumnSpec], list[SliceRow]]:
    """The columns that have something to show, and a row for each host."""
    hosts = sorted(s.hosts, key=order.key)
    slowest = slowest_of(s)
    texts = [[get(h) for _, get in _COLUMNS] for h in hosts]
    kept = [
        n
        for n, (column, _) in enumerate(_COLUMNS)
        if not column.optional or any(row[n] not in (words.UNKNOWN, " ") for row in texts)
    ]
    step = next(n for n, (column, _) in enumerate(_COLUMNS) if column.title == "STEP")
    rows = []
    for h, row in zip(hosts, texts, strict=True):
        row[step] += SLOWEST if h is slowest else " " if slowest is not None else ""
        rows.append(SliceRow(h, tuple(row[n] for n in kept), is_slowest=h is slowest))
    return [_COLUMNS[n][0] for n in kept], rows


def slowest_of(s: Slice) -> SliceProcess | None:
    """The live host whose steps take longest; None where fewer than two say how long."""
    timed = [h for h in s.hosts if not h.is_old and h.step_time_s]
    return max(timed, key=lambda h: h.step_time_s or 0.0) if len(timed) > 1 else None


def headline(s: Slice) -> str:
    """`slice of pid 4321: 64 processes, 62 live, 1 stopped reporting, 1 not heard of`; and when
    that was, where its reader no longer reads it.
    """
    live = sum(h.state == SliceState.LIVE for h in s.hosts)
    stopped, silent = len(s.hosts) - live, s.process_count - len(s.hosts)
    parts = [counted(s.process_count, "process", "processes"), f"{live} live"]
    parts += [f"{stopped} {SliceState.STOPPED}"] if stopped else []
    parts += [f"{silent} {NOT_HEARD_OF}"] if silent else []
    parts += [f"last read {words.elapsed(s.read_s_ago)} ago"] if s.is_old else []
    return f"slice of pid {s.pid}: {', '.join(parts)}"


def worst(rows: Sequence[SliceRow], most: int) -> list[SliceRow]:
    """At most so many rows, in their order: of more, those of the worst hosts."""
    if len(rows) <= most:
        return [*rows]
    kept = sorted(rows, key=lambda row: worst_key(row.host))[:most]
    indexes = {row.host.process_index for row in kept}
    return [row for row in rows if row.host.process_index in indexes]
