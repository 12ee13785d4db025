"""The process table: how its columns are drawn, in which order, and which processes it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tpusmi.model import Process, ProcessKey, Value
from tpusmi.report import verdicts, words
from tpusmi.report.columns import PROCESS_COLUMNS, SORT_LETTERS, Cell, ColumnSpec
from tpusmi.report.family import Branch, tree
from tpusmi.tui.draw.columns import Cells, Column
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.main import filters
from tpusmi.tui.main.process_order import Sorting, of_branches
from tpusmi.tui.process.process_facts import (
    STALE,
    STOPPED,
    SUSPECT,
    letter,
    letter_style,
)

COMMAND_MOST = 400


def letters_line(look: Look) -> Row:
    """What a person may press after `o`."""
    parts = [("Sort ", "title")]
    for key, title in SORT_LETTERS.items():
        parts += [(key, "key"), (f" {title} ", "plain")]
    return look.line(*parts, (" capital: reversed  Esc: cancel", "dim"))


class ProcessTable(Cells[Process]):
    """Draws cells of processes, and says which are shown in which order."""

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._columns = tuple(map(self._column, PROCESS_COLUMNS))
        self.sorting = Sorting(self._columns, "DEVICES", SORT_LETTERS)
        self.filter = ""
        """Only processes that pass it are shown."""
        self.as_tree = False
        """Processes are shown under what started them."""
        self.telling: Mapping[ProcessKey, str] = {}
        """How far those are that are being ended."""

    def columns(self) -> tuple[Column[Branch], ...]:
        """The table, left to right."""
        return of_branches(self.look, self._columns)

    def shown(self) -> list[Branch]:
        """The processes that pass the filter, sorted; unknown values last, then the dead."""
        processes = () if self.at is None else self.at.snapshot.processes
        passes = filters.matcher(self.filter)
        passing = sorted((p for p in processes if passes(self._about(p))), key=lambda p: p.key)
        # What only files say comes after what the kernel shows, however many files there are.
        ordered = sorted(
            self.sorting.sorted(passing), key=lambda p: (not p.is_living, not p.is_verified)
        )
        if self.as_tree:
            return [*tree(ordered)]
        return [Branch(p.pid, p.command, p, "") for p in ordered]

    def style(self, item: Process, value: Value | None = None) -> str:
        """Gray for what is old, and for all of a process that nothing proves to live."""
        return "dim" if verdicts.is_faint(item) else super().style(item, value)

    def devices(self, p: Process) -> str:
        """Its devices by the numbers in their names, as `0-7`; empty for none."""
        numbers = self._numbers(p)
        return words.ranges(numbers) if numbers else ""

    def _numbers(self, p: Process) -> list[int]:
        return [] if self.at is None else [d.number for d in self.at.devices_of(p.key)]

    def _about(self, p: Process) -> filters.About:
        numbers = self._numbers(p) or self._chips(p)
        text = f"{p.pid} {p.user or ''} {p.command} {p.phase or ''} {p.state} {p.status}"
        return filters.About(p.pid, p.user, numbers, p.is_stale, text)

    def _chips(self, p: Process) -> list[int]:
        """The chips whose nodes it holds, for a holder of which no device is known."""
        chips = () if self.at is None or not p.holds else self.at.snapshot.chips
        return [c.index for c in chips if set(c.nodes) & set(p.holds)]

    def _column(self, shared: ColumnSpec) -> Column[Process]:
        drawn = {"S": self._letter, "PID": self._pid, "PHASE": self._phase}
        if shared.title == "COMMAND":
            return replace(self.column(shared, self._command), most=COMMAND_MOST)
        return self.column(shared, drawn.get(shared.title))

    def _letter(self, p: Process, cell: Cell, width: int) -> Row:
        return self.look.cell(letter(p), width, letter_style(p))

    def _pid(self, p: Process, cell: Cell, width: int) -> Row:
        return self.look.cell(cell.text, width, self.style(p).replace("plain", "bold"), right=True)

    def _phase(self, p: Process, cell: Cell, width: int) -> Row:
        """The state in a word: the letter and the details tell the rest."""
        if p.key in self.telling:
            return self.look.cell("ending", width, "warn")
        stands_out = letter(p) in (STALE, SUSPECT, STOPPED)
        style = letter_style(p) if stands_out else self.style(p)
        return self.look.cell(p.status or words.UNKNOWN, width, style)

    def _command(self, p: Process, cell: Cell, width: int) -> Row:
        """Its command, after how far its end is."""
        command, progress = words.command(p.command) or words.UNKNOWN, self.telling.get(p.key)
        note = progress if p.is_verified or p.is_dead else verdicts.doubt(p)
        if note is None:
            return self.look.cell(command, width, self.style(p))
        if len(note) > width:
            # What changes is at the end: `SIGTERM sent, 3 of 10 s`.
            note = note.rpartition(", ")[2]
        taken = min(len(note) + 2, width)
        rest = self.look.cell(command, width - taken, "dim")
        return (*self.look.cell(note, taken, "warn"), *rest)
