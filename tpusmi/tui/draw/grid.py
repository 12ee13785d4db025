"""A table: steady columns, titles that stay, a cursor that follows its item."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual.message import Message

from tpusmi.tui.draw.columns import GAP, Column, Item, fit
from tpusmi.tui.draw.item_list import ItemList
from tpusmi.tui.draw.look import Look, Row

MARK = "*"
"""In the gap before the second column of a marked item: it takes no room of its own."""


class Grid(ItemList[Item]):
    """Rows of items under a row of titles."""

    class Titled(Message):
        """The user clicked the title of a column."""

        def __init__(self, sender: object, title: str) -> None:
            super().__init__()
            self.sender, self.title = sender, title

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
        self._fitted = fit(self._columns, self._needs, self.room.width, self._absent)
        super().redraw()

    def _click_title(self, x: int) -> None:
        start = 0
        for column, width in self._fitted:
            if start <= x < start + width:
                self.post_message(self.Titled(self, column.title))
            start += width + GAP

    def _item_line(self, items: Sequence[Item]) -> Row:
        (item,) = items
        gap = Segment(" " * GAP, self.look.style["plain"])
        marked = item.key is not None and item.key in self.marked
        row: list[Segment] = []
        for n, (column, width) in enumerate(self._fitted):
            mark = (Segment(MARK.ljust(GAP), self.look.style["warn"]),)
            row += (*column.draw(item, width), *(mark if marked and n == 0 else (gap,)))
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
