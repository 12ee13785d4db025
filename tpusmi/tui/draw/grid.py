"""A table on the line API: steady columns, titles that stay, a cursor that follows its item."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Generic

from rich.cells import cell_len
from rich.segment import Segment
from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.message import Message

from tpusmi.tui.draw.columns import GAP, Column, Item, fit
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Look, Row

WHEEL_ROWS = 3
MARK = "*"
"""In the gap before the second column of a marked item: it takes no room of its own."""


class Grid(Lines, Generic[Item]):
    """Rows of items under a row of titles."""

    class Moved(Message):
        """The cursor is on another item, because a person moved it."""

        def __init__(self, grid: object) -> None:
            super().__init__()
            self.grid = grid

    class Opened(Message):
        """A person wants to see more of what is under the cursor."""

        def __init__(self, grid: object) -> None:
            super().__init__()
            self.grid = grid

    class Titled(Message):
        """A person has clicked on the title of a column."""

        def __init__(self, grid: object, title: str) -> None:
            super().__init__()
            self.grid, self.title = grid, title

    def __init__(self, look: Look, columns: Sequence[Column[Item]], id: str) -> None:
        super().__init__(look, id=id)
        self._columns = columns
        self._needs = [c.width for c in columns]
        self._absent = frozenset(c.title for c in columns if c.known is not None)
        self._fitted: Sequence[tuple[Column[Item], int]] = ()
        self._items: Sequence[Item] = ()
        self._top = 0
        self.cursor: Hashable | None = None
        """The key of the item under the cursor; None in a table without one."""
        self._drawn: Hashable | None = None
        """The key under the cursor when it was drawn last."""
        self.active = True
        """Keys move the cursor of this table, and not of another."""
        self.sorted_by: tuple[str, bool] | None = None
        """Title of the column the items are sorted by, and whether the largest is first."""
        self.marked: Collection[Hashable] = ()
        """Keys of items that are told from the others."""
        self.note = ""
        """Said at the right of the titles."""

    @property
    def items(self) -> Sequence[Item]:
        """The items in the order shown."""
        return self._items

    @property
    def page(self) -> int:
        """Items that are visible at once."""
        return max(1, self.size.height - 1)

    @property
    def index(self) -> int | None:
        """Where the cursor is."""
        return next((i for i, item in enumerate(self._items) if item.key == self.cursor), None)

    def show_items(self, items: Sequence[Item]) -> None:
        """Show these items. A cursor that was in sight, or that was put elsewhere, is in sight."""
        was_seen = self.cursor != self._drawn or self._sees(self.index)
        self._items = items
        for n, column in enumerate(self._columns):
            if column.text is not None:
                longest = max((cell_len(column.text(item)) for item in items), default=0)
                self._needs[n] = max(self._needs[n], min(longest, column.most))
            if column.title in self._absent and column.known is not None:
                # A column that came stays: the table does not jump when a job ends.
                self._absent -= {column.title} if any(map(column.known, items)) else set()
        if was_seen and (index := self.index) is not None:
            self._top = min(max(self._top, index - self.page + 1), index)
        self.redraw()

    def _sees(self, index: int | None) -> bool:
        return index is not None and self._top <= index < self._top + self.page

    def move(self, rows: int) -> None:
        """Move the cursor, or the view of a table without one."""
        if self.cursor is None:
            self.scroll_rows(rows)
        elif self._items:
            to = min(max((self.index or 0) + rows, 0), len(self._items) - 1)
            self.move_to(to, up=rows < 0)

    def move_to(self, index: int, *, up: bool = False) -> None:
        """Put the cursor on an item by its place, or on the next that it does not pass over."""
        below, above = [*range(index, len(self._items))], [*range(index, -1, -1)]
        order = [*above, *below] if up else [*below, *above]
        index = next((i for i in order if self._items[i].key is not None), index)
        self.cursor = self._items[index].key
        self._top = min(max(self._top, index - self.page + 1), index)
        self.redraw()
        self.post_message(self.Moved(self))

    def scroll_rows(self, rows: int) -> None:
        """Move the view and leave the cursor."""
        self._top += rows
        self.redraw()

    def redraw(self) -> None:
        """Draw what is visible."""
        if not self.size.width:
            return
        self._top = min(max(self._top, 0), max(0, len(self._items) - self.page))
        self._fitted = fit(self._columns, self._needs, self.size.width, self._absent)
        self._drawn = self.cursor
        shown = self._items[self._top : self._top + self.page]
        self.show([self._titles(), *(self._row(item) for item in shown)])

    def on_resize(self, event: Resize) -> None:
        if self.cursor is not None and (index := self.index) is not None:
            self._top = min(max(self._top, index - self.page + 1), index)
        self.redraw()

    def on_click(self, event: Click) -> None:
        index = self._top + event.y - 1
        if event.y == 0:
            self._click_title(event.x)
        elif index < len(self._items):
            self.move_to(index)
            if event.chain == 2:  # a third click opens nothing more
                self.post_message(self.Opened(self))

    def _click_title(self, x: int) -> None:
        start = 0
        for column, width in self._fitted:
            if start <= x < start + width:
                self.post_message(self.Titled(self, column.title))
            start += width + GAP

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.scroll_rows(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.scroll_rows(-WHEEL_ROWS)

    def _row(self, item: Item) -> Row:
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
            return self.look.cell(text, self.size.width, "selected" if self.active else "bold")
        return self.look.cell(text, self.size.width, "warn") if marked else tuple(row)

    def _titles(self) -> Row:
        where = "".join(f"  {remark}" for remark in self._remarks())[1:]
        room, text = max(0, self.size.width - len(where)), ""
        for column, width in self._fitted:
            title = self.look.fitted(self._title(column), width, right=column.right)
            is_whole = len(text) + len(title.rstrip()) <= room
            text += (title if is_whole else " " * width) + " " * GAP
        return self.look.cell(text[:room].ljust(room) + where, self.size.width, "head")

    def _remarks(self) -> Iterator[str]:
        """What the titles themselves do not say."""
        if self.note:
            yield self.note
        if self.sorted_by is not None and self.sorted_by[0] not in {
            c.title for c, _ in self._fitted
        }:
            yield f"by {self.sorted_by[0]}{self._arrow(self.sorted_by[1])}"
        if len(self._items) > self.page:
            last = min(self._top + self.page, len(self._items))
            yield f"{self._top + 1}-{last}/{len(self._items)}"

    def _title(self, column: Column[Item]) -> str:
        if self.sorted_by is None or self.sorted_by[0] != column.title:
            return column.title if column.heading is None else column.heading()
        return column.title + self._arrow(self.sorted_by[1])

    def _arrow(self, falls: bool) -> str:
        return self.look.glyphs.down if falls else self.look.glyphs.up
