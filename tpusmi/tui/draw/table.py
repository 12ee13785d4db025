"""A table: columns that fit its width, titles that stay, a cursor that follows its item."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from rich.cells import cell_len
from rich.segment import Segment
from textual.message import Message

from tpusmi.model import Snapshot, Value
from tpusmi.report import concerns
from tpusmi.report.columns import Cell, ColumnSpec
from tpusmi.report.rows import IndexedSnapshot
from tpusmi.report.text_grid import fitting
from tpusmi.tui.draw.item_list import Item, ItemList
from tpusmi.tui.draw.look import Look, Row

GAP = 1
"""Blank columns between two columns of a table."""


@dataclass(frozen=True)
class Column(Generic[Item]):
    """One column. `draw` returns a cell of exactly the width it is given."""

    title: str
    draw: Callable[[Item, int], Row]
    width: int
    """Its least width."""
    rank: int = 0
    """Columns of the highest rank go first when there is no room."""
    most: int = 0
    """The width it may grow to if there is room; 0 for a column that does not grow."""
    right: bool = False
    text: Callable[[Item], str] | None = None
    """Given if the longest text decides the width, which then only grows, up to `most`."""
    sort: Callable[[Item], Any] | None = None
    """The key to sort by, None for unknown; a column without it cannot be sorted by."""
    falls: bool = False
    """The largest is first when the table is sorted by it, unless the order is reversed."""
    heading: Callable[[], str] | None = None
    """Given if its title changes: no longer than the least width."""
    spare: int = 0
    """The column is left out unless this many columns remain for other columns to grow."""
    known: Callable[[Item], bool] | None = None
    """Given if the column appears only once some item has something to show in it."""
    least_more: int = 0
    """The least it grows by; with less it does not grow, and others do."""
    sure: int = 0
    """Given for a column that may cut its texts where there is no room: what it has of its longest
    text before others are left out. It gets the rest before others grow.
    """


def fit(
    columns: Sequence[Column[Item]], needs: Sequence[int], width: int, absent: frozenset[str]
) -> list[tuple[Column[Item], int]]:
    """The columns that fit into `width`, each with its width there.

    `needs` is the current least width of each column, `absent` the titles of columns with nothing
    to show. Room that is left over goes to the columns that may grow.
    """
    present = [(c, n) for c, n in zip(columns, needs, strict=True) if c.title not in absent]
    least = [min(n, c.sure) if c.sure else n for c, n in present]
    kept = fitting([c for c, _ in present], least, width, GAP)
    cut = {present[n][0].title: present[n][1] - least[n] for n in kept}
    chosen = [(present[n][0], least[n]) for n in kept]
    whole = _shared(width - _total(chosen), cut)
    chosen = [(c, need + whole[c.title]) for c, need in chosen]
    takers = {c.title: (c, c.most - need) for c, need in chosen if c.most and c.text is None}
    left = width - _total(chosen)
    more = _shared(left, {title: room for title, (_, room) in takers.items()})
    of_use = {t: room for t, (c, room) in takers.items() if more[t] >= c.least_more}
    if len(of_use) < len(more):
        more = _shared(left, of_use)
    return [(column, need + more.get(column.title, 0)) for column, need in chosen]


def _shared(left: int, rooms: dict[str, int]) -> dict[str, int]:
    """How much each column grows: as much as the others, up to its room, so that columns of one
    kind look the same. A remainder goes to the column with the most room.
    """
    taken = dict.fromkeys(rooms, 0)
    while left > 0 and (hungry := [title for title in rooms if taken[title] < rooms[title]]):
        even = left // len(hungry)
        if not even:
            hungry, even = [max(hungry, key=lambda title: rooms[title])], left
        for title in hungry:
            share = min(even, rooms[title] - taken[title])
            taken[title] += share
            left -= share
    return taken


def _total(chosen: Sequence[tuple[Column[Item], int]]) -> int:
    return sum(need + GAP for _, need in chosen) - GAP


class Cells(Generic[Item]):
    """Draws cells of devices or processes, with the values of its current snapshot."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.at: IndexedSnapshot | None = None
        """What is drawn; None before the first snapshot."""

    def take(self, snapshot: Snapshot) -> None:
        """Draw from this snapshot from now on."""
        self.at = IndexedSnapshot(snapshot)

    def style(self, item: Item, value: Value | None = None) -> str:
        """Gray for stale values."""
        return "dim" if value is not None and value.stale else "plain"

    def is_old(self, item: Item, cell: Cell) -> bool:
        """True for a value that is out of date."""
        return cell.value is not None and cell.value.stale and not cell.repeats

    def column(
        self, shared: ColumnSpec, draw: Callable[[Item, Cell, int], Row] | None = None
    ) -> Column[Item]:
        """A column as all views have it; its cells are drawn plainly unless `draw` does it."""
        get, right = shared.get, shared.right

        def cell(item: Item) -> Cell:
            return Cell("") if get is None or self.at is None else get(self.at, item)

        def plain(item: Item, cell: Cell, width: int) -> Row:
            style = "dim" if cell.repeats else self.style(item, cell.value)
            text = marked(cell.text, width) if self.is_old(item, cell) else cell.text
            return self.look.cell(text, width, style, right=right)

        def longest(item: Item) -> str:
            c = cell(item)
            return f"({c.text})" if self.is_old(item, c) else c.text

        drawn = draw or plain
        return Column(
            title=shared.title,
            draw=lambda item, width: drawn(item, cell(item), width),
            width=shared.width,
            rank=shared.rank,
            most=shared.most,
            right=right,
            text=longest if shared.most and get is not None else None,
            sort=None if get is None else lambda item: cell(item).order,
            falls=shared.falls,
            spare=shared.spare,
            known=(lambda item: cell(item).is_known) if shared.optional else None,
        )


def marked(text: str, width: int) -> str:
    """An old value in parentheses, which need no color to see: `(53 %)`; as `(53%)` where that does
    not fit.
    """
    whole = f"({text})"
    return whole if cell_len(whole) <= width else f"({text.replace(' ', '', 1)})"


MARK = "*"
"""In the gap before the second column of a marked item: it takes no room of its own."""


NAMES = ("DEVICE", "PID", "JOB", "SLICE", "HOST")
"""Titles of columns by which a table names its items: the first of them does."""


class Grid(ItemList[Item]):
    """Rows of items under a row of titles."""

    @dataclass
    class Titled(Message):
        """The user clicked the title of a column."""

        sender: object
        title: str

    def __init__(self, look: Look, columns: Sequence[Column[Item]], id: str) -> None:
        super().__init__(look, id)
        self._columns = columns
        self._needs = [c.width for c in columns]
        """The least width of each column, by what it has shown so far."""
        self._absent = frozenset(c.title for c in columns if c.known is not None)
        """Titles of the columns that have had nothing to show yet."""
        self._fitted: Sequence[tuple[Column[Item], int]] = ()
        self.active = True
        """Keys move the cursor of this table, and not of another."""
        self.sorted_by: tuple[str, bool] | None = None
        """Title of the column the items are sorted by, and whether the largest is first."""
        self.marked: Collection[Hashable] = ()
        """Keys of items that are drawn with a mark."""
        self.hidden: Collection[str] = ()
        """Titles of the columns that the user has hidden."""
        self.warned: Collection[Hashable] = ()
        """Keys of items that a warning is about: a mark is behind their names."""
        self.note = ""
        """Text at the right end of the titles."""

    def show_items(self, items: Sequence[Item]) -> None:
        """Show these items."""
        for n, column in enumerate(self._columns):
            if column.text is not None:
                longest = max((cell_len(column.text(item)) for item in items), default=0)
                self._needs[n] = max(self._needs[n], min(longest, column.most))
            if column.title in self._absent and column.known is not None:
                # A column that came stays: the table does not jump when a job ends.
                self._absent -= {column.title} if any(map(column.known, items)) else set()
        self._take(items)

    def redraw(self) -> None:
        absent = self._absent | frozenset(self.hidden)
        self._fitted = fit(self._columns, self._needs, self.room.width, absent)
        super().redraw()

    def _column_under(self, x: int) -> tuple[Column[Item] | None, int]:
        """The column there, and how far from its left edge."""
        left = 0
        for column, width in self._fitted:
            if left <= x < left + width:
                return column, x - left
            left += width + GAP
        return None, 0

    def _click_title(self, x: int) -> None:
        column, _ = self._column_under(x)
        if column is not None:
            self.post_message(self.Titled(self, column.title))

    def _item_line(self, items: Sequence[Item]) -> Row:
        (item,) = items
        gap = Segment(" " * GAP, self.look.style["plain"])
        marked = item.key is not None and item.key in self.marked
        warned = item.key is not None and item.key in self.warned
        mark = Segment(MARK.ljust(GAP), self.look.style["warn"])
        warning = Segment(concerns.MARK.ljust(GAP), self.look.style["bad"])
        row: list[Segment] = []
        name = next((n for n, (c, _) in enumerate(self._fitted) if c.title in NAMES), None)
        for n, (column, width) in enumerate(self._fitted):
            row += column.draw(item, width)
            row.append(warning if warned and n == name else mark if marked and n == 0 else gap)
        if len(self._fitted) > 1:
            row.pop()
        text = "".join(piece.text for piece in row)
        if self.cursor is not None and item.key == self.cursor:
            return self.look.cell(text, self.room.width, "selected" if self.active else "bold")
        return self.look.cell(text, self.room.width, "warn") if marked else tuple(row)

    def _title_line(self) -> Row:
        where = "".join(f"  {remark}" for remark in self._remarks())[1:]
        room, text = max(0, self.room.width - len(where)), ""
        for column, width in self._fitted:
            title = self.look.fitted(self._title(column), width, right=column.right)
            is_whole = len(text) + len(title.rstrip()) <= room
            text += (title if is_whole else " " * width) + " " * GAP
        return self.look.cell(text[:room].ljust(room) + where, self.room.width, "head")

    def _remarks(self) -> Iterator[str]:
        """What the titles themselves do not say."""
        if self.note:
            yield self.note
        if self.sorted_by is not None and self.sorted_by[0] not in {
            c.title for c, _ in self._fitted
        }:
            yield f"by {self.sorted_by[0]}{self._arrow(self.sorted_by[1])}"
        if position := self._position():
            yield position

    def _title(self, column: Column[Item]) -> str:
        if self.sorted_by is None or self.sorted_by[0] != column.title:
            return column.title if column.heading is None else column.heading()
        return column.title + self._arrow(self.sorted_by[1])

    def _arrow(self, falls: bool) -> str:
        return self.look.glyphs.down if falls else self.look.glyphs.up
