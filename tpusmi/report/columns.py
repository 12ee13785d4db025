"""The columns of devices and of processes, each declared once.

The dashboard, the plain table, the notebook, the help and docs/main.md take their titles, order,
values, formats and explanations from here. A new column is one line.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from tpusmi.model import DEVICE, PROCESS, Device, Process, Value, metric
from tpusmi.report import rows, verdicts, words
from tpusmi.report.rows import IndexedSnapshot

COMMAND_MOST = 60
ROOM_FOR_COMMAND = 10
"""Characters that the least important columns leave to the commands beside their least width."""


class Cell(NamedTuple):
    """What a column shows of one device or process."""

    text: str
    order: Any = None
    """What rows are sorted by; None where it is unknown."""
    value: Value | None = None
    """The measured value behind it, which may be old; None where it is not a measured one."""

    @property
    def is_known(self) -> bool:
        """False for a dash."""
        return self.text != words.UNKNOWN

    @property
    def repeats(self) -> bool:
        """True where the value is the whole chip's, and is shown in the row above."""
        return self.text == rows.DITTO

    @property
    def is_fresh(self) -> bool:
        """True where a measured value is known and not old."""
        return self.value is not None and not self.value.stale


Getter = Callable[[IndexedSnapshot, Any], Cell]


class Column(NamedTuple):
    """One column of a table."""

    title: str
    help: str = ""
    get: Getter | None = None
    """None for what only the dashboard can draw, and for cells that are made elsewhere."""
    width: int = 0
    """The least that the dashboard gives it."""
    rank: int = 0
    """Columns of the highest rank go first where there is no room."""
    right: bool = False
    most: int = 0
    """In the dashboard a column of texts is as wide as the longest, up to this."""
    optional: bool = False
    """True for one that appears only where some row has something to show in it."""
    spare: int = 0
    """It is left out unless this much room is left besides."""
    falls: bool = False
    """True where the largest comes first in a table that is sorted by it."""
    letter: str = ""
    """The key after `o` that sorts by it, as in nvitop."""
    is_share: bool = False
    """True for percentages that can be drawn as bars."""


class Ranked(Protocol):
    """A column, as far as it decides which columns there is room for."""

    @property
    def rank(self) -> int: ...

    @property
    def spare(self) -> int: ...


def fitting(columns: Sequence[Ranked], needs: Sequence[int], room: int, gap: int) -> list[int]:
    """The places of the columns that fit into `room`, with a gap between two of them.

    `needs` is the width of each. Without room the column of the highest rank goes, and of equal
    ranks the first.
    """
    kept = [*range(len(columns))]
    while len(kept) > 1:
        first = max(kept, key=lambda n: columns[n].rank)
        if sum(needs[n] + gap for n in kept) - gap + columns[first].spare <= room:
            break
        kept.remove(first)
    return kept


def filled(
    columns: Sequence[Column], at: IndexedSnapshot, items: Sequence[Device | Process]
) -> tuple[list[Column], list[list[Cell]]]:
    """The columns that can be printed and have something to show, and the cells of each item."""
    printed = [c for c in columns if c.get is not None]
    table = [[c.get(at, item) for c in printed if c.get is not None] for item in items]
    kept = [
        n
        for n, c in enumerate(printed)
        if not c.optional or any(cells[n].is_known for cells in table)
    ]
    return [printed[n] for n in kept], [[cells[n] for n in kept] for cells in table]


# -- how values become cells


def _text(get: Callable[[IndexedSnapshot, Any], str | None]) -> Getter:
    def cell(at: IndexedSnapshot, item: Any) -> Cell:
        text = get(at, item)
        return Cell(text, text) if text else _UNKNOWN

    return cell


def _number(
    get: Callable[[IndexedSnapshot, Any], float | None], read: Callable[[float | None], str]
) -> Getter:
    def cell(at: IndexedSnapshot, item: Any) -> Cell:
        number = get(at, item)
        return _UNKNOWN if number is None else Cell(read(number), number)

    return cell


_UNKNOWN = Cell(words.UNKNOWN)


def _valued(value: Value | None, read: Callable[[float | None], str]) -> Cell:
    return _UNKNOWN if value is None else Cell(read(value.value), value.value, value)


def of_device(name: str, width: int, rank: int, **more: Any) -> Column:
    """The column of a metric of devices; of the whole chip if only that was measured."""
    m = metric(DEVICE, name)
    read = more.pop("read", words.reader(m.unit))

    def cell(at: IndexedSnapshot, d: Device) -> Cell:
        shown = rows.shown(at.snapshot, d, name)
        cell = _valued(shown.value, read)
        return cell._replace(text=rows.DITTO) if shown.repeats else cell

    return Column(m.title, m.help, cell, width, rank, right=True, **more)


def of_process(name: str, width: int, rank: int, **more: Any) -> Column:
    """The column of a metric of processes."""
    m = metric(PROCESS, name)
    read = words.reader(m.unit)

    def cell(at: IndexedSnapshot, p: Process) -> Cell:
        return _valued(at.snapshot.values.get((p.key, name)), read)

    return Column(m.title, m.help, cell, width, rank, right=True, falls=True, **more)


def _extra(title: str, help: str, get: Getter, width: int, rank: int, letter: str = "") -> Column:
    """A column of numbers that is there where they are known and there is much room."""
    return Column(
        title, help, get, width, rank,
        right=True, optional=True, spare=ROOM_FOR_COMMAND, falls=True, letter=letter,
    )  # fmt: skip


def _chip(at: IndexedSnapshot, d: Device) -> str | None:
    return None if d.chip is None else str(d.chip)


def _device_memory(at: IndexedSnapshot, d: Device) -> Cell:
    """Used of limit; the live arrays, and that it is those, where the memory in use is unknown."""
    memory = rows.memory(at.snapshot, d)
    if memory.repeats:
        return _valued(memory.used, words.size)._replace(text=rows.DITTO)
    if memory.used is None:
        live = at.snapshot.values.get((d.key, "live_array_bytes"))
        if live is not None:
            return Cell(f"{words.size(live.value)} live", live.value, live)
    return Cell(memory.text, memory.used and memory.used.value, memory.used)


def _phase(at: IndexedSnapshot, d: Device) -> str | None:
    owners = (p for p in at.snapshot.processes if p.key in d.owners and p.phase)
    return next((p.status for p in owners), None)


def _mfu(at: IndexedSnapshot, d: Device) -> Cell:
    return _valued(rows.mfu(at.snapshot, d), words.percent)


def _pid(at: IndexedSnapshot, p: Process) -> Cell:
    return Cell(str(p.pid), p.pid)


def _devices(at: IndexedSnapshot, p: Process) -> Cell:
    """The numbers of its devices; the nodes that it holds where no device is known."""
    numbers = [d.number for d in at.devices_of(p.key)]
    if numbers:
        return Cell(words.ranges(numbers), min(numbers))
    return Cell(words.nodes(p.holds).replace("/dev/", "")) if p.holds else _UNKNOWN


def _process_memory(at: IndexedSnapshot, p: Process) -> Cell:
    value, note = rows.memory_of_process(at, p)
    cell = _valued(value, words.size)
    return cell._replace(text=cell.text + note) if value is not None else cell


def _mean(name: str) -> Getter:
    def mean(at: IndexedSnapshot, p: Process) -> float | None:
        return None if p.is_dead else rows.mean(at.snapshot, name, at.devices_of(p.key))

    return _number(mean, words.percent)


def _of_life(name: str, read: Callable[[float | None], str]) -> Getter:
    return _number(lambda at, p: None if p.life is None else getattr(p.life, name), read)


def _doing(at: IndexedSnapshot, p: Process) -> Cell:
    return Cell(verdicts.doing(p) or words.UNKNOWN, p.status or None)


def _age_s(at: IndexedSnapshot, p: Process) -> float | None:
    return None if p.sampled_at_s is None else max(0.0, at.snapshot.at_s - p.sampled_at_s)


def _command(at: IndexedSnapshot, p: Process) -> Cell:
    command = words.command(p.command)
    return Cell(words.shortened(command, COMMAND_MOST) or words.UNKNOWN, command)


# -- the tables, left to right

# fmt: off
DEVICE_COLUMNS = (
    Column("DEVICE", "Its name, with the global id where that is known.",
           _text(lambda at, d: d.name), 6, 0, most=16),
    Column("CHIP", "The chip that it belongs to.", _text(_chip), 4, 13, right=True, optional=True),
    Column("NODE", "Its device node.",
           _text(lambda at, d: rows.node(d)), 6, 16, most=14, optional=True),
    Column("PID", "The process that holds it; 4321+2: 4321 and two others.",
           _text(lambda at, d: rows.pids(d)), 5, 6, right=True, most=10),
    Column("KIND", "Its kind, as JAX or the table of chips calls it; or why it cannot be read.",
           _text(lambda at, d: d.error or d.kind), 4, 14, most=16),
    Column("MEMORY", "HBM in use of its limit, with a mark at the peak; live: of live arrays only.",
           _device_memory, 15, 1, right=True),
    of_device("hbm_peak_bytes", 9, 15, optional=True),
    of_device("live_arrays", 6, 12, optional=True),
    of_device("live_array_bytes", 9, 11, optional=True),
    of_device("tensorcore_utilization_percent", 6, 3, is_share=True),
    of_device("duty_cycle_percent", 6, 2, is_share=True),
    of_device("hbm_bandwidth_utilization_percent", 6, 4, is_share=True),
    of_device("idle_s", 8, 8, optional=True, read=words.idle),
    of_device("hlo_queue_size", 5, 10, optional=True),
    Column("PHASE", "What the job on it is doing, as its agent reports.",
           _text(_phase), 9, 9, optional=True),
    Column("MFU", "Model FLOPs per second of its job over the peak.", _mfu, 6, 7,
           right=True, optional=True),
    Column("5 MIN", "What g selects, over the last 1, 2 or 5 minutes; memory at first.",
           None, 5, 5, most=60),
)
PROCESS_COLUMNS = (
    Column("S", "A letter for its state.", None, 1, 0),
    Column("PID", "Process id.", _pid, 5, 0, right=True, most=8, letter="p"),
    Column("USER", "The user that runs it.",
           _text(lambda at, p: p.user), 4, 7, most=10, letter="u"),
    Column("DEVICES", "Its devices, by the numbers in their names; or the nodes that it holds.",
           _devices, 8, 5, most=12, letter="n"),
    Column("MEMORY", "Memory in use on all its devices; live: only the live arrays are known.",
           _process_memory, 8, 1, right=True, most=15, falls=True, letter="g"),
    of_process("steps_per_s", 8, 3, letter="s"),
    of_process("step_time_s.p50", 8, 4),
    of_process("step_time_s.p95", 8, 10),
    of_process("compilations", 5, 9),
    _extra("MXU", "Mean over its devices: share of the peak matrix throughput.",
           _mean("tensorcore_utilization_percent"), 6, 14),
    _extra("BW", "Mean over its devices: share of the peak HBM bandwidth.",
           _mean("hbm_bandwidth_utilization_percent"), 6, 15, "b"),
    _extra("CPU", "Processor time, in percent of one core.",
           _of_life("cpu_percent", words.percent), 6, 12, "c"),
    _extra("RSS", "Memory of the host.", _of_life("rss_bytes", words.size), 9, 13, "m"),
    _extra("TIME", "How long it has run.", _of_life("age_s", words.elapsed), 6, 11, "t"),
    Column("PHASE", "What it is doing, in a word.", _doing, 9, 6),
    Column("AGE", "Age of the newest sample of its agent; not of the job.",
           _number(_age_s, words.elapsed), 6, 8, right=True),
    Column("COMMAND", "Its command line, without the directory of the program.", _command, 12, 2),
)
# fmt: on
SORT_LETTERS = {c.letter: c.title for c in PROCESS_COLUMNS if c.letter}
"""Titles of columns by the key after `o`."""
