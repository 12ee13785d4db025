"""Small tiles side by side, one for each device, with a cursor that follows its device."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic

from rich.segment import Segment
from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.message import Message

from tpusmi.tui.draw.columns import Item
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Look, Row

WHEEL_ROWS = 3


class Tiles(Lines, Generic[Item]):
    """Tiles of one width under a line that says what they show."""

    class Moved(Message):
        """The cursor is on another item, because a person moved it."""

    def __init__(self, look: Look, id: str) -> None:
        super().__init__(look, id=id)
        self._items: Sequence[Item] = ()
        self._top = 0
        self._tile = 1
        self._draw: Callable[[Item, int], Row] = lambda _, width: look.cell("", width)
        self._title: Callable[[int], Row] = lambda width: ()
        self._drawn: Hashable | None = None
        self.cursor: Hashable | None = None
        """The key of the item under the cursor; None when the cursor is elsewhere."""

    @property
    def items(self) -> Sequence[Item]:
        """The items in the order shown."""
        return self._items

    @property
    def page(self) -> int:
        """Items that are visible at once."""
        return self._lines * self.across

    @property
    def across(self) -> int:
        """Tiles on a line."""
        return self.across_of(self._tile)

    def across_of(self, tile: int) -> int:
        """How many tiles of that width are on a line."""
        return max(1, (self.size.width + 1) // (tile + 1))

    @property
    def _lines(self) -> int:
        return max(1, self.size.height - 1)

    def lines_for(self, count: int, width: int, tile: int) -> int:
        """How many lines so many tiles fill, the title included."""
        return 1 + -(-count // max(1, (width + 1) // (tile + 1)))

    def show_items(
        self,
        items: Sequence[Item],
        title: Callable[[int], Row],
        tile: int,
        draw: Callable[[Item, int], Row],
    ) -> None:
        """Show these items in tiles `tile` columns wide, under a title for the whole width."""
        was = self.cursor != self._drawn
        self._items, self._title, self._tile, self._draw = items, title, tile, draw
        if was and (index := self._index) is not None:
            self._bring(index)
        self._drawn = self.cursor
        self.redraw()

    @property
    def _index(self) -> int | None:
        return next((i for i, item in enumerate(self._items) if item.key == self.cursor), None)

    def _bring(self, index: int) -> None:
        """The line of that item comes into sight."""
        line = index // self.across
        self._top = min(max(self._top, line - self._lines + 1), line)

    def move(self, tiles: int) -> None:
        """Move the cursor so many tiles on."""
        if (at := self._index) is not None:
            self.move_to(min(max(at + tiles, 0), len(self._items) - 1))

    def move_to(self, index: int) -> None:
        """Put the cursor on an item by its place."""
        self.cursor = self._drawn = self._items[index].key
        self._bring(index)
        self.redraw()
        self.post_message(self.Moved())

    def scroll_rows(self, rows: int) -> None:
        """Move the view and leave the cursor."""
        self._top += rows
        self.redraw()

    def redraw(self) -> None:
        """Draw what is visible."""
        if not self.size.width:
            return
        across = self.across
        every = -(-len(self._items) // across)
        self._top = min(max(self._top, 0), max(0, every - self._lines))
        shown = range(self._top, min(self._top + self._lines, every))
        lines = [self._line(self._items[n * across : (n + 1) * across]) for n in shown]
        self.show([self._titled(every), *lines])

    def on_resize(self) -> None:
        self.redraw()

    def on_click(self, event: Click) -> None:
        across = self.across
        index = (self._top + event.y - 1) * across + min(event.x // (self._tile + 1), across - 1)
        if event.y > 0 and index < len(self._items):
            self.move_to(index)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.scroll_rows(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.scroll_rows(-WHEEL_ROWS)

    def _line(self, items: Sequence[Item]) -> Row:
        gap = Segment(" ", self.look.style["plain"])
        row: list[Segment] = []
        for item in items:
            tile = self._draw(item, self._tile)
            if item.key == self.cursor:
                text = "".join(piece.text for piece in tile)
                tile = self.look.cell(text, self._tile, "selected")
            row += (*tile, gap)
        return tuple(row[:-1])

    def _titled(self, every: int) -> Row:
        title = self._title(self.size.width)
        if every <= self._lines:
            return title
        first = self._top * self.across + 1
        last = min(len(self._items), (self._top + self._lines) * self.across)
        where = f" {first}-{last}/{len(self._items)}"
        text = "".join(piece.text for piece in title)
        room = max(0, self.size.width - len(where))
        return (*self.look.cell(text, room, "head"), *self.look.cell(where, len(where), "head"))
