"""The process table: what each column shows of a process, sorts by and is found by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from tpusmi.model import Device, Process, ProcessKey, Snapshot, Value
from tpusmi.report import rows, verdicts, words
from tpusmi.report.family import Branch, tree
from tpusmi.tui.draw.columns import Cells, Column, age
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.main import filters
from tpusmi.tui.main.process_order import Sorting, of_branches
from tpusmi.tui.process.process_facts import (
    STALE,
    STOPPED,
    SUSPECT,
    letter,
    letter_style,
    span,
)

LETTERS_OF_ORDER = {
    **{"n": "DEVICES", "p": "PID", "u": "USER", "g": "MEMORY", "s": "STEPS/s", "b": "BW"},
    **{"c": "CPU", "m": "RSS", "t": "TIME"},
}
"""Columns by the key after `o`: those of nvitop, where this table has the same."""
MXU, BANDWIDTH = "tensorcore_utilization_percent", "hbm_bandwidth_utilization_percent"
ROOM_FOR_COMMAND = 10
"""Columns that are only there for curiosity leave so much more of the commands to be read."""

Measured = Callable[[Process], "float | None"]


def letters_line(look: Look) -> Row:
    """What a person may press after `o`."""
    parts = [("Sort ", "title")]
    for key, title in LETTERS_OF_ORDER.items():
        parts += [(key, "key"), (f" {title} ", "plain")]
    return look.line(*parts, (" capital: reversed  Esc: as it was", "dim"))


class ProcessTable(Cells[Process]):
    """Draws cells of processes, and says which are shown in which order."""

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._devices: dict[ProcessKey | None, list[Device]] = {}
        self._columns = self._all_columns()
        self.sorting = Sorting(self._columns, "DEVICES", LETTERS_OF_ORDER)
        self.filter = ""
        """Only processes that pass it are shown."""
        self.as_tree = False
        """Processes are shown under what started them."""
        self.telling: Mapping[ProcessKey, str] = {}
        """How far those are that are being ended."""

    def columns(self) -> tuple[Column[Branch], ...]:
        """The table, left to right."""
        return of_branches(self.look, self._columns)

    def take(self, snapshot: Snapshot) -> None:
        """Draw from this snapshot from now on."""
        self.snapshot = snapshot
        self._devices = {}
        for d in (*snapshot.devices, *snapshot.dead_devices):
            for owner in d.owners or (d.key.process,):
                self._devices.setdefault(owner, []).append(d)

    def shown(self) -> list[Branch]:
        """The processes that pass the filter, sorted; unknown values last, then the dead."""
        processes = () if self.snapshot is None else self.snapshot.processes
        passes = filters.matcher(self.filter)
        found = sorted((p for p in processes if passes(self._about(p))), key=lambda p: p.key)
        # What only files say comes after what the kernel shows, however many files there are.
        ordered = sorted(
            self.sorting.sorted(found), key=lambda p: (not p.is_living, not p.is_verified)
        )
        if self.as_tree:
            return [*tree(ordered)]
        return [Branch(p.pid, p.command, p, "") for p in ordered]

    def style(self, item: Process, *values: Value | None) -> str:
        """Grey for what is old, and for all of a process that nothing proves to live."""
        return "dim" if verdicts.is_faint(item) else super().style(item, *values)

    def devices(self, p: Process) -> str:
        """Its devices by the numbers in their names, as `0-7`; empty for none."""
        numbers = self._numbers(p)
        return words.ranges(numbers) if numbers else ""

    def _numbers(self, p: Process) -> list[int]:
        return [d.number for d in self._devices.get(p.key, ())]

    def _all_columns(self) -> tuple[Column[Process], ...]:
        size, known, number = self._memory_text, self._known, self.number
        rate, step, p95 = "steps_per_s", "step_time_s.p50", "step_time_s.p95"
        steps, compiled = number(rate, words.rate), number("compilations", words.count)
        first, bytes_, old = self._first_device, self._bytes, self._seconds_old
        text, largest = Column[Process], partial(Column[Process], right=True, falls=True)
        return (
            text("S", self._letter, 1),
            text("PID", self._pid, 5, most=8, right=True, text=_pid, sort=lambda p: p.pid),
            text("USER", self.plain(_user), 4, 7, most=10, text=_user, sort=lambda p: p.user),
            text("DEVICES", self.plain(self.devices), 8, 4, 12, text=self.devices, sort=first),
            largest("MEMORY", self._memory, 8, 1, 15, text=size, sort=bytes_),
            largest("STEPS/s", steps, 8, 2, sort=known(rate)),
            largest("STEP", number(step, words.duration), 8, 3, sort=known(step)),
            largest("P95", number(p95, words.duration), 8, 8, sort=known(p95)),
            largest("COMP", compiled, 5, 5, sort=known("compilations")),
            self._extra("MXU", self._mean("tensorcore_utilization_percent"), words.percent, 6, 12),
            self._extra(
                "BW", self._mean("hbm_bandwidth_utilization_percent"), words.percent, 6, 13
            ),
            self._extra("CPU", _of_life("cpu_percent"), words.percent, 6, 10),
            self._extra("RSS", _of_life("rss_bytes"), words.size, 9, 11),
            self._extra("TIME", _of_life("age_s"), span, 6, 9),
            text("PHASE", self._phase, 9, 6, sort=lambda p: p.status or None),
            text("AGE", self._age, 4, 5, right=True, sort=old),
            text("COMMAND", self._command, 14, 2, most=400, sort=_command),
        )

    def _extra(
        self, title: str, get: Measured, read: Callable[[float | None], str], width: int, rank: int
    ) -> Column[Process]:
        """A column of numbers that appears where they are known and the screen is wide."""

        def draw(p: Process, cell: int) -> Row:
            return self.look.cell(read(get(p)), cell, self.style(p), right=True)

        def known(p: Process) -> bool:
            return get(p) is not None

        column = Column(title, draw, width, rank, right=True, falls=True, sort=get, known=known)
        return replace(column, spare=ROOM_FOR_COMMAND)

    def _about(self, p: Process) -> filters.About:
        numbers = self._numbers(p) or self._chips(p)
        text = f"{p.pid} {p.user or ''} {p.command} {p.phase or ''} {p.state} {p.status}"
        return filters.About(p.pid, p.user, numbers, p.is_stale, text)

    def _chips(self, p: Process) -> list[int]:
        """Those whose nodes it holds: of a holder that nobody has told a device of."""
        chips = () if self.snapshot is None or not p.holds else self.snapshot.chips
        return [c.index for c in chips if set(c.nodes) & set(p.holds)]

    def _mean(self, name: str) -> Measured:
        """That metric over its devices, as it is now."""

        def mean(p: Process) -> float | None:
            s = self.snapshot
            if s is None or p.is_dead:
                return None
            found = [rows.shown(s, d, name).value for d in self._devices.get(p.key, ())]
            known = [v.value for v in found if v is not None and not v.stale]
            return sum(known) / len(known) if known else None

        return mean

    def _known(self, name: str) -> Callable[[Process], Any]:
        def known(p: Process) -> Any:
            v = self.value(name, p)
            return None if v is None else v.value

        return known

    def _letter(self, p: Process, width: int) -> Row:
        return self.look.cell(letter(p), width, letter_style(p))

    def _phase(self, p: Process, width: int) -> Row:
        if p.key in self.telling:
            return self.look.cell("ending", width, "warn")
        marked = letter(p) in (STALE, SUSPECT, STOPPED)
        style = letter_style(p) if marked else self.style(p)
        return self.look.cell(p.status or words.UNKNOWN, width, style)

    def _command(self, p: Process, width: int) -> Row:
        """Its command, after how far its end is."""
        command, told = _command(p) or words.UNKNOWN, self.telling.get(p.key)
        told = told if p.is_verified or p.is_dead else verdicts.doubt(p)
        if told is None:
            return self.look.cell(command, width, self.style(p))
        if len(told) > width:
            # What changes is at the end: `SIGTERM sent, 3 of 10 s`.
            told = told.rpartition(", ")[2]
        taken = min(len(told) + 2, width)
        rest = self.look.cell(command, width - taken, "dim")
        return (*self.look.cell(told, taken, "warn"), *rest)

    def _pid(self, p: Process, width: int) -> Row:
        return self.look.cell(_pid(p), width, self.style(p).replace("plain", "bold"), right=True)

    def _first_device(self, p: Process) -> int | None:
        return min(self._numbers(p), default=None)

    def _memory_value(self, p: Process) -> tuple[Value | None, str]:
        used = self.value("hbm_used_bytes", p) or self._of_devices(p)
        return (used, "") if used is not None else (self.value("live_array_bytes", p), " live")

    def _of_devices(self, p: Process) -> Value | None:
        """What libtpu tells of its devices together, where they are nobody else's."""
        s = self.snapshot
        devices = () if s is None else s.devices_of(p.key)
        found = [s.values.get((d.key, "hbm_used_bytes")) for d in devices] if s else []
        known = [v for v in found if v is not None]
        if not known or len(known) < len(found) or any(len(d.owners) > 1 for d in devices):
            return None
        oldest = max(known, key=lambda v: v.age_s)
        return oldest._replace(value=sum(v.value for v in known))

    def _memory_text(self, p: Process) -> str:
        value, note = self._memory_value(p)
        return words.UNKNOWN if value is None else words.size(value.value) + note

    def _memory(self, p: Process, width: int) -> Row:
        style = self.style(p, self._memory_value(p)[0])
        return self.look.cell(self._memory_text(p), width, style, right=True)

    def _bytes(self, p: Process) -> Any:
        value = self._memory_value(p)[0]
        return None if value is None else value.value

    def _seconds_old(self, p: Process) -> float | None:
        if self.snapshot is None or p.sampled_at_s is None:
            return None
        return max(0.0, self.snapshot.at_s - p.sampled_at_s)

    def _age(self, p: Process, width: int) -> Row:
        old_s = self._seconds_old(p)
        text = words.UNKNOWN if old_s is None else age(old_s)
        return self.look.cell(text, width, self.style(p), right=True)


def _of_life(name: str) -> Measured:
    return lambda p: None if p.life is None else getattr(p.life, name)


def _pid(p: Process) -> str:
    return str(p.pid)


def _user(p: Process) -> str:
    return p.user or ""


def _command(p: Process) -> str:
    return words.command(p.command)
