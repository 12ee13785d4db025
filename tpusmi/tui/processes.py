"""The process table: what each column shows of a process, sorts by and is found by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tpusmi.model import Process, ProcessKey, Snapshot, Value
from tpusmi.report import words
from tpusmi.tui.cells import Cells, age
from tpusmi.tui.columns import Column
from tpusmi.tui.look import Look, Row

SILENT, DEAD, UNKNOWN, STALE = "!", "X", "?", "L"
LETTERS = {"starting": "S", "compiling": "C", "running": "R", "idle": "I", "ended": DEAD}
"""The letter in front of a process for each phase, for those who do not see its colour."""
_STYLES = {"R": "good", "C": "warn", "S": "warn", SILENT: "bad", STALE: "bad", DEAD: "dim"}


class ProcessTable(Cells[Process]):
    """Draws cells of processes, and says which are shown in which order."""

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._numbers: dict[ProcessKey | None, list[int]] = {}
        self._columns = self._all_columns()
        self.sort_title = "DEVICES"
        self.upside_down = False
        self.filter = ""
        """Only processes whose pid, user, command, phase or state contains this are shown."""
        self.telling: Mapping[ProcessKey, str] = {}
        """How far those are that are being ended."""

    def columns(self) -> tuple[Column[Process], ...]:
        """The table, left to right."""
        return self._columns

    def take(self, snapshot: Snapshot) -> None:
        """Draw from this snapshot from now on."""
        self.snapshot = snapshot
        self._numbers = {}
        for d in (*snapshot.devices, *snapshot.dead_devices):
            number = d.index if d.id is None else d.id
            for owner in d.owners or (d.key.process,):
                self._numbers.setdefault(owner, []).append(number)

    def shown(self) -> list[Process]:
        """The processes that pass the filter, sorted; unknown values last, then the dead."""
        processes = () if self.snapshot is None else self.snapshot.processes
        found = sorted((p for p in processes if self._matches(p)), key=lambda p: p.key)
        key = next(c.sort for c in self._columns if c.title == self.sort_title)
        assert key is not None
        known = [p for p in found if key(p) is not None]
        unknown = [p for p in found if key(p) is None]
        known.sort(key=key, reverse=self.upside_down)
        return sorted([*known, *unknown], key=is_dead)

    def sort_by(self, step: int) -> None:
        """Sort by the column that many sortable columns further on."""
        titles = [c.title for c in self._columns if c.sort is not None]
        self.sort_title = titles[(titles.index(self.sort_title) + step) % len(titles)]

    def style(self, item: Process, *values: Value | None) -> str:
        """Grey for what is old, and for all of a process that ended."""
        return "dim" if is_dead(item) else super().style(item, *values)

    def devices(self, p: Process) -> str:
        """Its devices by the numbers in their names, as `0-7`; empty for none."""
        numbers = self._numbers.get(p.key)
        return words.ranges(numbers) if numbers else ""

    def _all_columns(self) -> tuple[Column[Process], ...]:
        size, known, number = self._memory_text, self._known, self.number
        rate, step, p95 = "steps_per_s", "step_time_s.p50", "step_time_s.p95"
        steps, compiled = number(rate, words.rate), number("compilations", words.count)
        first, bytes_, old = self._first_device, self._bytes, self._seconds_old
        text = Column[Process]
        return (
            text("S", self._letter, 1),
            text("PID", self._pid, 5, most=8, right=True, text=_pid, sort=lambda p: p.pid),
            text("USER", self.plain(_user), 4, 7, most=10, text=_user, sort=lambda p: p.user),
            text("DEVICES", self.plain(self.devices), 8, 4, 12, text=self.devices, sort=first),
            text("MEMORY", self._memory, 8, 1, 15, right=True, text=size, sort=bytes_),
            text("STEPS/s", steps, 8, 2, right=True, sort=known(rate)),
            text("STEP", number(step, words.duration), 8, 3, right=True, sort=known(step)),
            text("P95", number(p95, words.duration), 8, 8, right=True, sort=known(p95)),
            text("COMP", compiled, 5, 5, right=True, sort=known("compilations")),
            text("PHASE", self._phase, 9, 6, sort=lambda p: phase(p) or None),
            text("AGE", self._age, 4, 5, right=True, sort=old),
            text("COMMAND", self._command, 14, 2, most=400, sort=_command),
        )

    def _matches(self, p: Process) -> bool:
        text = f"{p.pid} {p.user or ''} {p.command} {p.phase or ''} {p.state} {phase(p)}"
        return self.filter.casefold() in text.casefold()

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
        style = "bad" if is_stale(p) else self.style(p)
        return self.look.cell(phase(p) or words.UNKNOWN, width, style)

    def _command(self, p: Process, width: int) -> Row:
        """Its command, after how far its end is."""
        command, told = _command(p) or words.UNKNOWN, self.telling.get(p.key)
        if told is None:
            return self.look.cell(command, width, self.style(p))
        if len(told) > width:
            # What changes is at the end: `SIGTERM sent, 3 of 10 s`.
            told = told.rpartition(", ")[2]
        taken = min(len(told) + 2, width)
        rest = self.look.cell(command, width - taken, "dim")
        return (*self.look.cell(told, taken, "warn"), *rest)

    def _pid(self, p: Process, width: int) -> Row:
        return self.look.cell(_pid(p), width, "dim" if is_dead(p) else "bold", right=True)

    def _first_device(self, p: Process) -> int | None:
        return min(self._numbers.get(p.key, ()), default=None)

    def _memory_value(self, p: Process) -> tuple[Value | None, str]:
        used = self.value("hbm_used_bytes", p)
        return (used, "") if used is not None else (self.value("live_array_bytes", p), " live")

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


def letter(p: Process) -> str:
    """The letter for the state of a process."""
    if is_stale(p):
        return STALE
    if p.state in ("dead", "silent"):
        return DEAD if p.state == "dead" else SILENT
    return LETTERS.get(p.phase or "", UNKNOWN)


def letter_style(p: Process) -> str:
    """And its style."""
    return _STYLES.get(letter(p), "plain")


def is_dead(p: Process) -> bool:
    """True for a process that ended and is kept for what it left."""
    return p.state == "dead"


def is_stale(p: Process) -> bool:
    """True for one that holds the TPU, and will not do work again."""
    return p.stale is True and not is_dead(p)


def verdict(p: Process) -> str:
    """Whether it is stale, and why or why not; empty when nobody can tell."""
    if p.stale is None:
        return ""
    code = f" ({p.stale_code})" if p.stale_code else ""
    found = f"stale{code}" if p.stale else "not stale"
    return f"{found}: {p.stale_reason}" if p.stale_reason else found


def phase(p: Process) -> str:
    """What it is doing, in a word; empty when unknown."""
    if is_stale(p):
        return "stale"
    if p.state in ("dead", "silent"):
        return "ended" if p.state == "dead" else "silent"
    return p.phase or ""


def _pid(p: Process) -> str:
    return str(p.pid)


def _user(p: Process) -> str:
    return p.user or ""


def _command(p: Process) -> str:
    return words.command(p.command)
