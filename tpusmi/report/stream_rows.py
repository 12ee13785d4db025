"""`tpusmi dmon` and `tpusmi pmon`: one line per device or process again and again, in the layout of
nvidia-smi's commands of these names.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tpusmi.model import Device, Process, Snapshot
from tpusmi.report import rows, words
from tpusmi.report.query import QueryError
from tpusmi.report.rows import MIB

UNKNOWN = "-"
WIDTH = 6
"""Characters of a column, unless its title is longer."""
HEAD_EVERY = 30
"""Lines after which the titles are printed again."""

Read = Callable[[Snapshot, Device], float | None]


class StreamColumn(NamedTuple):
    """One column of numbers."""

    title: str
    unit: str
    read: Read


def _unknown(s: Snapshot, d: Device) -> float | None:
    return None


def _metric(name: str, unit: int = 1) -> Read:
    """The device's own value; in the row of a chip's first device the chip's, where only that was
    measured.
    """

    def read(s: Snapshot, d: Device) -> float | None:
        value, repeats = rows.device_value(s, d, name)
        return None if value is None or repeats else value.value / unit

    return read


def _used(s: Snapshot, d: Device) -> float | None:
    memory = rows.memory(s, d)
    return None if memory.used is None or memory.repeats else memory.used.value / MIB


def _free(s: Snapshot, d: Device) -> float | None:
    memory = rows.memory(s, d)
    if memory.used is None or memory.limit is None or memory.repeats:
        return None
    return rows.free_mib(memory.used.value, memory.limit.value)


GROUPS = {
    "p": (StreamColumn("pwr", "W", _unknown), StreamColumn("gtemp", "C", _unknown),
          StreamColumn("mtemp", "C", _unknown)),
    "u": (StreamColumn("mxu", "%", _metric("tensorcore_utilization_percent")),
          StreamColumn("duty", "%", _metric("duty_cycle_percent")),
          StreamColumn("bw", "%", _metric("hbm_bandwidth_utilization_percent"))),
    "m": (StreamColumn("hbm", "MiB", _used), StreamColumn("free", "MiB", _free)),
    "c": (StreamColumn("mclk", "MHz", _unknown), StreamColumn("pclk", "MHz", _unknown)),
    "v": (StreamColumn("thrtl", "%", _metric("throttle_percent")),),
    "e": (StreamColumn("ici", "0-10", rows.worst_link),),
    "t": (StreamColumn("rxpci", "MB/s", _unknown), StreamColumn("txpci", "MB/s", _unknown)),
}  # fmt: skip
"""The columns by nvidia-smi's letters: what no TPU reports is there, and a dash."""
DEFAULT_GROUPS = "pum"


def columns_of(letters: str) -> tuple[StreamColumn, ...]:
    """The columns of letters such as `um`. Raises QueryError for another letter."""
    unknown = next((letter for letter in letters if letter not in GROUPS), "")
    if unknown or not letters:
        raise QueryError(f'"{unknown}" is not a group of columns; there are {", ".join(GROUPS)}')
    return tuple(column for letter in dict.fromkeys(letters) for column in GROUPS[letter])


class Stream:
    """The lines of one command, snapshot after snapshot: titles come back every now and then."""

    def __init__(
        self, columns: Sequence[StreamColumn], of_processes: bool = False, clock: str = ""
    ) -> None:
        self._columns, self._of_processes, self._clock = columns, of_processes, clock
        self._since_head = HEAD_EVERY

    def text(self, s: Snapshot) -> str:
        """The lines of one snapshot, under their titles where it is time for these."""
        lines = [*(_pairs(s) if self._of_processes else ((d, None) for d in s.devices))]
        head = [*self._head()] if self._since_head >= HEAD_EVERY else []
        self._since_head = len(lines) + (0 if head else self._since_head)
        return "".join(f"{line}\n" for line in (*head, *(self._line(s, *pair) for pair in lines)))

    def _head(self) -> Iterator[str]:
        titles = [c.title for c in self._columns]
        units = [c.unit for c in self._columns]
        for first, kind, numbers, last in (("tpu", "pid", titles, "command"),
                                           ("Idx", "#", units, "name")):  # fmt: skip
            clock = "".join(f"{'Date' if c == 'D' else 'Time':>11}" for c in self._clock)
            start = f"{clock}{first:>5}"
            process = f"{kind:>10}{'type' if kind == 'pid' else 'C/G':>6}"
            cells = "".join(
                cell.rjust(_width(c)) for c, cell in zip(self._columns, numbers, strict=True)
            )
            yield (
                f"#{start[1:]}{process if self._of_processes else ''}{cells}"
                f"{'  ' + last if self._of_processes else ''}"
            )

    def _line(self, s: Snapshot, d: Device, p: Process | None) -> str:
        formats = {"D": "%Y%m%d", "T": "%H:%M:%S"}
        clock = "".join(f"{words.local_time(s.host.time, formats[c]):>11}" for c in self._clock)
        is_its = not self._of_processes or (p is not None and len(d.owners) == 1)
        cells = "".join(_cell(c, c.read(s, d) if is_its else None) for c in self._columns)
        start = f"{clock}{d.index:>5}"
        if not self._of_processes:
            return start + cells
        if p is None:
            return f"{start}{UNKNOWN:>10}{UNKNOWN:>6}{cells}  {UNKNOWN}"
        command = words.shortened(words.command(p.command), 40)
        return f"{start}{p.pid:>10}{'C':>6}{cells}  {command or UNKNOWN}"


def _pairs(s: Snapshot) -> Iterator[tuple[Device, Process | None]]:
    """Each device with each process that has it; with None where none has."""
    by_key = {p.key: p for p in s.processes}
    for d in s.devices:
        owners = [by_key[owner] for owner in d.owners if owner in by_key]
        yield from ((d, owner) for owner in owners or (None,))


def _width(column: StreamColumn) -> int:
    return max(WIDTH, len(column.title), len(column.unit)) + 1


def _cell(column: StreamColumn, value: float | None) -> str:
    return (UNKNOWN if value is None else f"{value:.0f}").rjust(_width(column))
