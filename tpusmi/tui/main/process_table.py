"""The process table: how its columns are drawn, in which order, and which processes it shows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from tpusmi.model import Process, ProcessKey, Value
from tpusmi.report import filters, verdicts, words
from tpusmi.report.columns import PROCESS_COLUMNS, SORT_LETTERS, Cell, ColumnSpec
from tpusmi.report.concerns import MARK
from tpusmi.report.family import TREE_ASCII, Branch, tree
from tpusmi.text import counted
from tpusmi.tui.draw.look import Look, Row, width_of
from tpusmi.tui.draw.sorting import Sorting
from tpusmi.tui.draw.table import Cells, Column, Grid
from tpusmi.tui.main.launcher_sums import sum_text
from tpusmi.tui.process.process_facts import (
    STALE,
    STOPPED,
    SUSPECT,
    letter,
    letter_style,
    no_step,
    still_s,
)

LEAST_COMMAND = 8
"""The least width of a command, however deep it is in the tree."""


def of_branch(
    look: Look, column: Column[Process], sums: Callable[[Branch, str], str]
) -> Column[Branch]:
    """The same column for a tree, which is drawn before the commands."""
    text, known = column.text, column.known

    def draw(b: Branch, width: int) -> Row:
        if column.title != "COMMAND":
            return _cell(look, column, b, width, sums)
        indent = _indent(look, b, width)
        return (*indent, *_cell(look, column, b, width - width_of(indent), sums))

    return replace(
        cast("Column[Any]", column),
        draw=draw,
        text=None if text is None else lambda b: "" if b.process is None else text(b.process),
        known=None if known is None else lambda b: b.process is not None and known(b.process),
    )


def _cell(
    look: Look, column: Column[Process], b: Branch, width: int, sums: Callable[[Branch, str], str]
) -> Row:
    if b.process is not None:
        return column.draw(b.process, width)
    # What has only started other processes has no values but their sums.
    texts = {"PID": str(b.pid), "COMMAND": words.command(b.command)}
    text = texts.get(column.title) or sums(b, column.title)
    return look.cell(text, width, "dim", right=column.right)


def _indent(look: Look, b: Branch, width: int) -> Row:
    text = b.indent.translate(TREE_ASCII) if look.only_ascii else b.indent
    # The nearest branches are at the end.
    room = max(0, width - LEAST_COMMAND)
    return look.line((text[-room:] if room else "", "dim"))


COMMAND_MOST = 400
SHIFT = 10
"""Characters by which commands are scrolled at a time."""
DEFAULT_SORT = "DEVICES"


FOLDED = 0
"""In place of a pid: the row of the ended jobs that have no row of their own."""
FOLD_FROM = 2
"""At least so many ended jobs are folded into one row."""


class ProcessGrid(Grid[Branch]):
    """The table of processes, with a row for ended jobs that are folded."""

    hint = ""
    """The keys for that row, in words."""

    def _item_line(self, items: Sequence[Branch]) -> Row:
        (branch,) = items
        if branch.pid != FOLDED:
            return super()._item_line(items)
        return self.look.cell(f"  {branch.command}  {self.hint}", self.room.width, "dim")


class ProcessTable(Cells[Process]):
    """Draws cells of processes, and says which are shown in which order."""

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._columns = tuple(map(self._column, PROCESS_COLUMNS))
        self.sorting = Sorting(self._columns, DEFAULT_SORT, SORT_LETTERS)
        self.filter = ""
        """Only processes that pass it are shown."""
        self.only_of: str | None = None
        """The user whose processes stand out; None for all users."""
        self.unfolded = False
        """Each ended job has a row of its own."""
        self.shift = 0
        """Characters of each command that are scrolled out of sight, to the left."""
        self.as_tree = False
        """Processes are shown under what started them."""
        self.progress: Mapping[ProcessKey, str] = {}
        """How far those are that are being ended."""

    def columns(self) -> tuple[Column[Branch], ...]:
        """The table, left to right."""
        drawn = (column for column in self._columns if column.title != MARK)
        return tuple(of_branch(self.look, column, self._sum) for column in drawn)

    def scroll_commands(self, step: int) -> None:
        """Scroll the commands sideways, no further than the end of the longest."""
        processes = () if self.at is None else self.at.snapshot.processes
        longest = max((len(words.command(p.command)) for p in processes), default=0)
        self.shift = min(max(0, self.shift + SHIFT * step), max(0, longest - SHIFT))

    def _sum(self, launcher: Branch, title: str) -> str:
        return sum_text(self.at, launcher, title)

    def warned(self, branches: Iterable[Branch]) -> Collection[ProcessKey]:
        """Keys of the processes that a warning is about, or a chip of theirs."""
        at = self.at
        processes = (b.process for b in branches if b.process is not None and at is not None)
        return {p.key for p in processes if at and at.concerns.of_process(p, at.devices_of(p.key))}

    def branches(self, kept: Hashable | None = None) -> list[Branch]:
        """The processes that pass the filter, sorted; unknown values last, then the dead, folded
        into one row unless one is `kept`.
        """
        at, passes = self.at, filters.matcher(self.filter)
        processes = () if at is None else at.snapshot.processes
        shown = (p for p in processes if at is not None and passes(filters.about(at, p)))
        passing = sorted(shown, key=lambda p: p.key)
        # What only files say comes after what the kernel shows, however many files there are.
        ordered = sorted(
            self.sorting.sorted(passing), key=lambda p: (not p.is_living, not p.is_verified)
        )
        folded = self._folded(ordered, kept)
        ordered = [p for p in ordered if p.key not in folded]
        rows = tree(ordered) if self.as_tree else (Branch(p.pid, p.command, p, "") for p in ordered)
        return [*rows, *([self._fold(folded)] if folded else [])]

    def _folded(
        self, ordered: Sequence[Process], kept: Hashable | None
    ) -> Mapping[ProcessKey, Process]:
        """The ended jobs without a row of their own; the last has one if nothing else is shown."""
        if self.unfolded or self.filter:
            return {}
        dead = {p.key: p for p in ordered if p.is_dead and p.key != kept}
        if len(dead) == len(ordered) and dead:
            del dead[max(dead.values(), key=lambda p: p.sampled_at_s or 0.0).key]
        return dead if len(dead) >= FOLD_FROM else {}

    def _fold(self, folded: Mapping[ProcessKey, Process]) -> Branch:
        """`4 ended jobs, the last 3m05s ago`."""
        ends = [p.sampled_at_s for p in folded.values() if p.sampled_at_s is not None]
        text = counted(len(folded), "ended job")
        if ends and self.at is not None:
            text += f", the last {words.elapsed(max(0.0, self.at.snapshot.at_s - max(ends)))} ago"
        return Branch(FOLDED, text, None, "")

    def style(self, item: Process, value: Value | None = None) -> str:
        """Gray for what is old, and for all of a process that nothing proves to live."""
        is_faint = verdicts.is_faint(item) or self._is_of_another(item)
        return "dim" if is_faint else super().style(item, value)

    def _is_of_another(self, p: Process) -> bool:
        """True for a process of another user; root's eyes are on all of them."""
        return self.only_of is not None and p.user not in (None, self.only_of)

    def is_old(self, item: Process, cell: Cell) -> bool:
        """All values of a process that has ended are old."""
        return super().is_old(item, cell) or (item.is_dead and cell.value is not None)

    def devices(self, p: Process) -> str:
        """Its devices by the numbers in their names, as `0-7`; empty for none."""
        numbers = self._numbers(p)
        return words.ranges(numbers) if numbers else ""

    def _numbers(self, p: Process) -> list[int]:
        return [] if self.at is None else [d.number for d in self.at.devices_of(p.key)]

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
        if p.key in self.progress:
            return self.look.cell("ending", width, "warn")
        stands_out = letter(p) in (STALE, SUSPECT, STOPPED)
        style = letter_style(p) if stands_out else self.style(p)
        return self.look.cell(p.status or words.UNKNOWN, width, style)

    def _still(self, p: Process) -> str | None:
        """That it takes no steps, if it should."""
        seconds = None if self.at is None else still_s(self.at.snapshot, p)
        return None if seconds is None else no_step(seconds)

    def _command(self, p: Process, cell: Cell, width: int) -> Row:
        """Its command, after how far its end is."""
        command, progress = words.command(p.command) or words.UNKNOWN, self.progress.get(p.key)
        if self.shift:
            command = self.look.glyphs.cut + command[self.shift + 1 :]
        note = (progress or self._still(p)) if p.is_verified or p.is_dead else verdicts.doubt(p)
        if note is None:
            return self.look.cell(command, width, self.style(p))
        if len(note) > width:
            # What changes is at the end: `SIGTERM sent, 3 of 10 s`.
            note = note.rpartition(", ")[2]
        taken = min(len(note) + 2, width)
        rest = self.look.cell(command, width - taken, "dim")
        return (*self.look.cell(note, taken, "warn"), *rest)
