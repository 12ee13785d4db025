"""The columns of devices and of processes, each declared once.

The dashboard, the plain table, the notebook, the help and docs/main.md take their titles, order,
values, formats and explanations from here. A new column is one line.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tpusmi.model import DEVICE, PROCESS, Device, Process, Value, metric, several
from tpusmi.model.metrics import MEMORY_COLUMN
from tpusmi.report import rows, verdicts, words
from tpusmi.report.concerns import MARK
from tpusmi.report.rows import IndexedSnapshot

COMMAND_MOST = 60
ROOM_FOR_COMMAND = 10
"""Characters that the least important columns leave to the commands beside their least width."""

_BLANK = " "
"""A cell in which there is nothing to show; an empty one would become a dash."""


class Cell(NamedTuple):
    """What a column shows of one device or process."""

    text: str
    order: Any = None
    """What rows are sorted by; None where it is unknown."""
    value: Value | None = None
    """The measured value behind it, which may be old; None where it is not a measured one."""

    @property
    def is_known(self) -> bool:
        """False for a dash, and for a blank."""
        return self.text not in (words.UNKNOWN, _BLANK)

    @property
    def repeats(self) -> bool:
        """True where the value is the whole chip's, and is shown in the row above."""
        return self.text == rows.DITTO

    @property
    def is_fresh(self) -> bool:
        """True where a measured value is known and not old."""
        return self.value is not None and not self.value.stale


Getter = Callable[[IndexedSnapshot, Any], Cell]


class ColumnSpec(NamedTuple):
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


def filled(
    columns: Sequence[ColumnSpec], at: IndexedSnapshot, items: Sequence[Device | Process]
) -> tuple[list[ColumnSpec], list[list[Cell]]]:
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


def of_device(name: str, width: int, rank: int, **more: Any) -> ColumnSpec:
    """The column of a metric of devices; of the whole chip if only that was measured."""
    m = metric(DEVICE, name)
    read = more.pop("read", words.reader(m.unit))

    def cell(at: IndexedSnapshot, d: Device) -> Cell:
        measured = rows.device_value(at.snapshot, d, name)
        cell = _valued(measured.value, read)
        if measured.value is not None:
            cell = cell._replace(text=words.source_mark(measured.value) + cell.text)
        return cell._replace(text=rows.DITTO) if measured.repeats else cell

    return ColumnSpec(m.title, m.help, cell, width=width, rank=rank, right=True, **more)


def of_process(name: str, width: int, rank: int, **more: Any) -> ColumnSpec:
    """The column of a metric of processes."""
    m = metric(PROCESS, name)
    read = words.reader(m.unit)

    def cell(at: IndexedSnapshot, p: Process) -> Cell:
        return _valued(at.snapshot.values.get((p.key, name)), read)

    more |= {"right": True, "falls": True}
    return ColumnSpec(m.title, m.help, cell, width=width, rank=rank, **more)


def _extra(
    title: str, help: str, get: Getter, width: int, rank: int, letter: str = ""
) -> ColumnSpec:
    """A column of numbers that is there where they are known and there is much room."""
    return ColumnSpec(
        title, help, get, width=width, rank=rank,
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


def _devices(at: IndexedSnapshot, p: Process) -> Cell:
    """The numbers of its devices; the nodes that it holds where no device is known."""
    numbers = [d.number for d in at.devices_of(p.key)]
    if numbers:
        return Cell(words.ranges(numbers), min(numbers))
    return Cell(words.nodes(p.holds).replace("/dev/", "")) if p.holds else _UNKNOWN


def _process_memory(at: IndexedSnapshot, p: Process) -> Cell:
    value, note = rows.memory_of_process(at.snapshot, p)
    cell = _valued(value, words.size)
    return cell._replace(text=cell.text + note) if value is not None else cell


def _mean(name: str) -> Getter:
    def mean(at: IndexedSnapshot, p: Process) -> float | None:
        devices = () if p.is_dead else at.devices_of(p.key)
        return several.mean(at.snapshot, name, devices, of_some=True)

    return _number(mean, words.percent)


def _of_life(name: str, read: Callable[[float | None], str]) -> Getter:
    return _number(lambda at, p: None if p.life is None else getattr(p.life, name), read)


def _age_s(at: IndexedSnapshot, p: Process) -> float | None:
    return None if p.sampled_at_s is None else max(0.0, at.snapshot.at_s - p.sampled_at_s)


def _device_mark(at: IndexedSnapshot, d: Device) -> Cell:
    return Cell(MARK, 1) if at.concerns.of_device(d) else _UNMARKED


def _process_mark(at: IndexedSnapshot, p: Process) -> Cell:
    return Cell(MARK, 1) if at.concerns.of_process(p, at.devices_of(p.key)) else _UNMARKED


_UNMARKED = Cell(_BLANK)


def _command(at: IndexedSnapshot, p: Process) -> Cell:
    command = words.command(p.command)
    return Cell(words.shortened(command, COMMAND_MOST) or words.UNKNOWN, command)


# -- the tables, left to right

# fmt: off
DEVICE_COLUMNS = (
    ColumnSpec("DEVICE", "Its name, with the global id where that is known.",
        _text(lambda at, d: d.name), width=6, rank=0, most=16),
    ColumnSpec(MARK, "A warning is about it; its page says what to do.",
        _device_mark, rank=5, optional=True),
    ColumnSpec("CHIP", "The chip that it belongs to.",
        _text(_chip), width=4, rank=13, right=True, optional=True),
    ColumnSpec("NODE", "Its device node. The kernel may count nodes from 1; chips count from 0.",
        _text(lambda at, d: rows.node(d)), width=6, rank=16, most=14, optional=True),
    ColumnSpec("PID", "The process that holds it; 4321+2: 4321 and two others.",
        _text(lambda at, d: rows.pids(d)), width=5, rank=6, right=True, most=10),
    ColumnSpec("KIND", "Kind, from JAX or the chip table, or why it could not be read.",
        _text(lambda at, d: d.error or d.kind), width=4, rank=14, most=16),
    ColumnSpec(MEMORY_COLUMN,
        "HBM in use / limit; ┃ marks the peak; 'live': only live arrays known.",
        _device_memory, width=15, rank=1, right=True),
    of_device("hbm_peak_bytes", width=9, rank=15, optional=True, most=10),
    of_device("live_arrays", width=6, rank=12, optional=True),
    of_device("live_array_bytes", width=9, rank=11, optional=True, most=10),
    of_device("tensorcore_utilization_percent", width=6, rank=3, is_share=True),
    of_device("duty_cycle_percent", width=6, rank=2, is_share=True),
    of_device("hbm_bandwidth_utilization_percent", width=6, rank=4, is_share=True),
    of_device("idle_s", width=8, rank=8, optional=True, most=9, read=words.idle),
    of_device("hlo_queue_size", width=5, rank=10, optional=True),
    ColumnSpec("PHASE", "What the job on it is doing, as its agent reports.",
        _text(_phase), width=9, rank=9, optional=True),
    ColumnSpec("MFU", "The job's model FLOP/s as a share of the peak.",
        lambda at, d: _valued(rows.mfu(at.snapshot, d), words.percent),
        width=6, rank=7, right=True, optional=True),
    ColumnSpec("5 MIN", "Graph of the quantity chosen with g (default: memory).",
        None, width=5, rank=5, most=60),
)
PROCESS_COLUMNS = (
    ColumnSpec("S", "A letter for its state.", None, width=1, rank=0),
    ColumnSpec("PID", "Process id.",
        lambda at, p: Cell(str(p.pid), p.pid), width=5, rank=0, right=True, most=8, letter="p"),
    ColumnSpec(MARK, "A warning is about it; its page says what to do.",
        _process_mark, rank=5, optional=True),
    ColumnSpec("USER", "The user that runs it.",
        _text(lambda at, p: p.user), width=4, rank=7, most=10, letter="u"),
    ColumnSpec("DEVICES", "Its devices, by the numbers in their names; or the nodes that it holds.",
        _devices, width=8, rank=5, most=12, letter="n"),
    ColumnSpec("MEMORY",
        "Memory in use; 'live': live arrays alone; 'chips': of the chips that only it holds.",
        _process_memory, width=8, rank=1, right=True, most=15, falls=True, letter="g"),
    of_process("steps_per_s", width=8, rank=3, letter="s"),
    of_process("step_time_s.p50", width=8, rank=4, most=9),
    of_process("step_time_s.p95", width=8, rank=10, most=9),
    of_process("compilations", width=5, rank=9),
    _extra("MXU", "Mean over its devices: share of the peak matrix throughput.",
        _mean("tensorcore_utilization_percent"), width=6, rank=14),
    _extra("BW", "Mean over its devices: share of the peak HBM bandwidth.",
        _mean("hbm_bandwidth_utilization_percent"), width=6, rank=15, letter="b"),
    _extra("CPU", "Processor time, in percent of one core.",
        _of_life("cpu_percent", words.percent), width=6, rank=12, letter="c"),
    _extra("RSS", "Host memory it uses.",
        _of_life("rss_bytes", words.size), width=9, rank=13, letter="m"),
    _extra("TIME", "How long it has run.",
        _of_life("age_s", words.elapsed), width=6, rank=11, letter="t"),
    ColumnSpec("PHASE", "What it is doing, in a word.",
        lambda at, p: Cell(verdicts.doing(p) or words.UNKNOWN, p.status or None), width=9, rank=6),
    ColumnSpec("AGE", "Age of the newest sample of its agent; not of the job.",
        _number(_age_s, words.elapsed), width=6, rank=8, right=True),
    ColumnSpec("COMMAND", "Its command line, without the directory of the program.",
        _command, width=12, rank=2),
)
# fmt: on
SORT_LETTERS = {c.letter: c.title for c in PROCESS_COLUMNS if c.letter}
"""Titles of columns by the key after `o`."""
