"""The process table: how its columns are drawn, in which order, and which processes it shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, Generic, cast

from tpusmi.model import Process, ProcessKey, Value
from tpusmi.report import verdicts, words
from tpusmi.report.columns import PROCESS_COLUMNS, SORT_LETTERS, Cell, ColumnSpec
from tpusmi.report.concerns import MARK
from tpusmi.report.family import TREE_ASCII, Branch, tree
from tpusmi.tui.draw.item_list import Item
from tpusmi.tui.draw.look import Look, Row, width_of
from tpusmi.tui.draw.table import Cells, Column
from tpusmi.tui.main import filters
from tpusmi.tui.page import stepped
from tpusmi.tui.process.process_facts import STALE, STOPPED, SUSPECT, letter, letter_style


class Sorting(Generic[Item]):
    """The column that a table is sorted by, and how the user chooses another."""

    def __init__(self, columns: Sequence[Column[Item]], title: str, letters: Mapping[str, str]):
        self._columns = {c.title: c for c in columns if c.sort is not None}
        self._letters = letters
        self.title = title
        self.reversed = False
        """Against the natural order of this column."""

    @property
    def falls(self) -> bool:
        """True if the largest is first."""
        return self._columns[self.title].falls != self.reversed

    def sorted(self, items: Sequence[Item]) -> list[Item]:
        """The items in order: equal items keep their order, unknown values are last."""
        key = self._columns[self.title].sort
        assert key is not None
        keyed = [(key(item), item) for item in items]
        known = sorted(
            (k for k in keyed if k[0] is not None), key=itemgetter(0), reverse=self.falls
        )
        return [*(item for _, item in known), *(item for k, item in keyed if k is None)]

    def step(self, count: int) -> None:
        """Sort by the column that many steps further on."""
        self._take(stepped([*self._columns], self.title, count))

    def choose(self, title: str) -> None:
        """Sort by the column with that title, or reverse the order if it is the current one."""
        if title == self.title:
            self.reversed = not self.reversed
        elif title in self._columns:
            self._take(title)

    def choose_letter(self, letter: str) -> bool:
        """Sort by the column with that letter, reversed for a capital; False if no column has the
        letter.
        """
        title = self._letters.get(letter.lower())
        if title is None:
            return False
        self._take(title, letter.isupper())
        return True

    def _take(self, title: str, reversed: bool = False) -> None:
        self.title, self.reversed = title, reversed


LEAST_COMMAND = 8
"""The least width of a command, however deep it is in the tree."""


def of_branch(look: Look, column: Column[Process]) -> Column[Branch]:
    """The same column for a tree, which is drawn before the commands."""
    text, known = column.text, column.known

    def draw(b: Branch, width: int) -> Row:
        if column.title != "COMMAND":
            return _cell(look, column, b, width)
        indent = _indent(look, b, width)
        return (*indent, *_cell(look, column, b, width - width_of(indent)))

    return replace(
        cast("Column[Any]", column),
        draw=draw,
        text=None if text is None else lambda b: "" if b.process is None else text(b.process),
        known=None if known is None else lambda b: b.process is not None and known(b.process),
    )


def _cell(look: Look, column: Column[Process], b: Branch, width: int) -> Row:
    if b.process is not None:
        return column.draw(b.process, width)
    # What has only started other processes has no values.
    texts = {"PID": str(b.pid), "COMMAND": words.command(b.command)}
    return look.cell(texts.get(column.title, ""), width, "dim", right=column.right)


def _indent(look: Look, b: Branch, width: int) -> Row:
    text = b.indent.translate(TREE_ASCII) if look.only_ascii else b.indent
    # The nearest branches are at the end.
    room = max(0, width - LEAST_COMMAND)
    return look.line((text[-room:] if room else "", "dim"))


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
        self.progress: Mapping[ProcessKey, str] = {}
        """How far those are that are being ended."""

    def columns(self) -> tuple[Column[Branch], ...]:
        """The table, left to right."""
        drawn = (column for column in self._columns if column.title != MARK)
        return tuple(of_branch(self.look, column) for column in drawn)

    def warned(self, branches: Iterable[Branch]) -> Collection[ProcessKey]:
        """Keys of the processes that a warning is about, or a chip of theirs."""
        at = self.at
        processes = (b.process for b in branches if b.process is not None and at is not None)
        return {p.key for p in processes if at and at.concerns.of_process(p, at.devices_of(p.key))}

    def branches(self) -> list[Branch]:
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
        if p.key in self.progress:
            return self.look.cell("ending", width, "warn")
        stands_out = letter(p) in (STALE, SUSPECT, STOPPED)
        style = letter_style(p) if stands_out else self.style(p)
        return self.look.cell(p.status or words.UNKNOWN, width, style)

    def _command(self, p: Process, cell: Cell, width: int) -> Row:
        """Its command, after how far its end is."""
        command, progress = words.command(p.command) or words.UNKNOWN, self.progress.get(p.key)
        note = progress if p.is_verified or p.is_dead else verdicts.doubt(p)
        if note is None:
            return self.look.cell(command, width, self.style(p))
        if len(note) > width:
            # What changes is at the end: `SIGTERM sent, 3 of 10 s`.
            note = note.rpartition(", ")[2]
        taken = min(len(note) + 2, width)
        rest = self.look.cell(command, width - taken, "dim")
        return (*self.look.cell(note, taken, "warn"), *rest)
