"""What tables and tiles share: a title line, items, a cursor that follows its item. And tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from rich.segment import Segment
from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.geometry import Size
from textual.message import Message

from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Look, Row

WHEEL_ROWS = 3


class Keyed(Protocol):
    """What a row is about: a device, a process, a host."""

    @property
    def key(self) -> object:
        """Unlike that of any other row; None for a row that the cursor passes over."""


Item = TypeVar("Item", bound=Keyed)


class ItemList(Lines, Generic[Item]):
    """Lines of items, of which as many are drawn as fit. A subclass draws the title and a line."""

    @dataclass
    class Moved(Message):
        """The user moved the cursor of this list to another item."""

        sender: object

    class Opened(Message):
        """The user double-clicked an item."""

    def __init__(self, look: Look, id: str) -> None:
        super().__init__(look, id=id)
        self.items: Sequence[Item] = ()
        """The items in the order shown."""
        self._top = 0
        """The first line of items that is drawn."""
        self.cursor: object = None
        """The key of the item under the cursor; None while the cursor is elsewhere."""
        self._drawn_cursor: object = None
        """The key under the cursor when it was last drawn."""

    # -- for subclasses

    @property
    def room(self) -> Size:
        """Its size; before its first layout the one that it will get, so that the very first screen
        has its items.
        """
        height = self.styles.height
        if self.size.width or height is None or not self.is_attached:
            return self.size
        return Size(self.screen.size.width, int(height.value))

    @property
    def across(self) -> int:
        """Items on a line."""
        return 1

    def _title_line(self) -> Row:
        raise NotImplementedError

    def _item_line(self, items: Sequence[Item]) -> Row:
        raise NotImplementedError

    def _column_at(self, x: int) -> int:
        """Which item of a line is there."""
        return 0

    def _line_of(self, index: int) -> int:
        """The line of an item."""
        return index // self.across

    def _index_at(self, line: int, x: int) -> int | None:
        """The item at that column of a line; None where there is none."""
        index = line * self.across + self._column_at(x)
        return index if index < len(self.items) else None

    def _line(self, number: int) -> Row:
        """That line of items."""
        first = number * self.across
        return self._item_line(self.items[first : first + self.across])

    def _click_title(self, x: int) -> None:
        """Called for a click on the title line."""

    # -- items

    @property
    def page(self) -> int:
        """Items that are visible at once."""
        return self._height * self.across

    @property
    def index(self) -> int | None:
        """Where the cursor is."""
        return next((i for i, item in enumerate(self.items) if item.key == self.cursor), None)

    @property
    def _height(self) -> int:
        return max(1, self.room.height - 1)

    @property
    def _line_count(self) -> int:
        """Lines of all items, visible or not."""
        return -(-len(self.items) // self.across)

    def _take(self, items: Sequence[Item]) -> None:
        """Draw these items. A cursor that was visible, or has been moved, stays visible."""
        self._take_following(items, self._follows)

    @property
    def _follows(self) -> bool:
        """The view is where the cursor is, or will be."""
        return self.cursor != self._drawn_cursor or self._is_visible(self.index)

    def _take_following(self, items: Sequence[Item], follows: bool) -> None:
        self.items = items
        if follows and (index := self.index) is not None:
            self._bring_to_view(index)
        self.redraw()

    def _is_visible(self, index: int | None) -> bool:
        line = None if index is None else self._line_of(index)
        return line is not None and self._top <= line < self._top + self._height

    def _bring_to_view(self, index: int) -> None:
        line = self._line_of(index)
        self._top = min(max(self._top, line - self._height + 1), line)

    # -- moving

    def sideways(self, step: int) -> bool:
        """Move the cursor along its line; False where only up and down are moves."""
        return False

    def move(self, count: int) -> None:
        """Move the cursor by that many items, or the view of a list without a cursor."""
        if self.cursor is None:
            self.scroll_rows(count)
        elif self.items:
            to = min(max((self.index or 0) + count, 0), len(self.items) - 1)
            self.move_to(to, up=count < 0)

    def move_to(self, index: int, *, up: bool = False) -> None:
        """Move the cursor to that item, or to the next one that has a key."""
        below, above = [*range(index, len(self.items))], [*range(index, -1, -1)]
        order = [*above, *below] if up else [*below, *above]
        index = next((i for i in order if self.items[i].key is not None), index)
        self.cursor = self.items[index].key
        self._bring_to_view(index)
        self.redraw()
        self.post_message(self.Moved(self))

    def scroll_rows(self, rows: int) -> None:
        """Move the view and leave the cursor."""
        self._top += rows
        self.redraw()

    def scroll_pages(self, pages: int) -> None:
        """The same by that many screens."""
        self.scroll_rows(pages * self._height)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.scroll_rows(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.scroll_rows(-WHEEL_ROWS)

    def on_click(self, event: Click) -> None:
        index = self._index_at(self._top + event.y - 1, event.x)
        if event.y == 0:
            self._click_title(event.x)
        elif index is not None:
            self.move_to(index)
            if event.chain == 2:  # a third click opens nothing more
                self.post_message(self.Opened())

    # -- drawing

    def on_resize(self, event: Resize) -> None:
        if self.cursor is not None and (index := self.index) is not None:
            self._bring_to_view(index)
        self.redraw()

    def redraw(self) -> None:
        """Draw what is visible."""
        if not self.room.width:
            return
        self._drawn_cursor = self.cursor
        self._top = min(max(self._top, 0), max(0, self._line_count - self._height))
        numbers = range(self._top, min(self._top + self._height, self._line_count))
        self.show([self._title_line(), *map(self._line, numbers)])

    def _position(self) -> str:
        """`9-16/256`, or nothing where all items are visible."""
        if self._line_count <= self._height:
            return ""
        last = min(len(self.items), (self._top + self._height) * self.across)
        return f"{self._top * self.across + 1}-{last}/{len(self.items)}"


class Tiles(ItemList[Item]):
    """Tiles of one width under a line that says what they show."""

    def __init__(self, look: Look, id: str) -> None:
        super().__init__(look, id)
        self._tile_width = 1
        self._draw: Callable[[Item, int], Row] = lambda _, width: look.cell("", width)
        self._title: Callable[[int], Row] = lambda width: ()

    @property
    def across(self) -> int:
        return tiles_across(self.room.width, self._tile_width)

    def show_items(
        self,
        items: Sequence[Item],
        title: Callable[[int], Row],
        width: int,
        draw: Callable[[Item, int], Row],
    ) -> None:
        """Show these items in tiles of that width, below a title line."""
        self._title, self._tile_width, self._draw = title, width, draw
        self._take(items)

    def _column_at(self, x: int) -> int:
        return min(x // (self._tile_width + 1), self.across - 1)

    def _item_line(self, items: Sequence[Item]) -> Row:
        gap = Segment(" ", self.look.style["plain"])
        row: list[Segment] = []
        for item in items:
            tile = self._draw(item, self._tile_width)
            if item.key == self.cursor:
                text = "".join(piece.text for piece in tile)
                tile = self.look.cell(text, self._tile_width, "selected")
            row += (*tile, gap)
        return tuple(row[:-1])

    def _title_line(self) -> Row:
        title = self._title(self.room.width)
        if not (position := self._position()):
            return title
        text = "".join(piece.text for piece in title)
        room = max(0, self.room.width - len(position) - 1)
        end = f" {position}"
        return (*self.look.cell(text, room, "head"), *self.look.cell(end, len(end), "head"))


def tiles_across(width: int, tile_width: int) -> int:
    """How many tiles fit side by side, at least one."""
    return max(1, (width + 1) // (tile_width + 1))


def tile_lines(count: int, width: int, tile_width: int) -> int:
    """Lines that so many tiles fill, the title line included."""
    return 1 + -(-count // tiles_across(width, tile_width))
