"""What tables and tiles share: a title line, items, a cursor that follows its item, the wheel."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic

from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.geometry import Size
from textual.message import Message

from tpusmi.tui.draw.columns import Item
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Look, Row

WHEEL_ROWS = 3


class ItemList(Lines, Generic[Item]):
    """Lines of items, of which as many are drawn as fit. A subclass draws the title and a line."""

    class Moved(Message):
        """The user moved the cursor to another item."""

        def __init__(self, sender: object) -> None:
            super().__init__()
            self.sender = sender

    class Opened(Message):
        """The user double-clicked an item."""

        def __init__(self, sender: object) -> None:
            super().__init__()
            self.sender = sender

    def __init__(self, look: Look, id: str) -> None:
        super().__init__(look, id=id)
        self._items: Sequence[Item] = ()
        self._top = 0
        """The first line of items that is drawn."""
        self.cursor: Hashable | None = None
        """The key of the item under the cursor; None while the cursor is elsewhere."""
        self._drawn_cursor: Hashable | None = None
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

    def _click_title(self, x: int) -> None:
        """Called for a click on the title line."""

    # -- items

    @property
    def items(self) -> Sequence[Item]:
        """The items in the order shown."""
        return self._items

    @property
    def page(self) -> int:
        """Items that are visible at once."""
        return self._height * self.across

    @property
    def index(self) -> int | None:
        """Where the cursor is."""
        return next((i for i, item in enumerate(self._items) if item.key == self.cursor), None)

    @property
    def _height(self) -> int:
        return max(1, self.room.height - 1)

    @property
    def _line_count(self) -> int:
        """Lines of all items, visible or not."""
        return -(-len(self._items) // self.across)

    def _take(self, items: Sequence[Item]) -> None:
        """Draw these items. A cursor that was visible, or has been moved, stays visible."""
        follow = self.cursor != self._drawn_cursor or self._is_visible(self.index)
        self._items = items
        if follow and (index := self.index) is not None:
            self._bring_to_view(index)
        self.redraw()

    def _is_visible(self, index: int | None) -> bool:
        return index is not None and self._top <= index // self.across < self._top + self._height

    def _bring_to_view(self, index: int) -> None:
        line = index // self.across
        self._top = min(max(self._top, line - self._height + 1), line)

    # -- moving

    def move(self, count: int) -> None:
        """Move the cursor by that many items, or the view of a list without a cursor."""
        if self.cursor is None:
            self.scroll_rows(count)
        elif self._items:
            to = min(max((self.index or 0) + count, 0), len(self._items) - 1)
            self.move_to(to, up=count < 0)

    def move_to(self, index: int, *, up: bool = False) -> None:
        """Move the cursor to that item, or to the next one that has a key."""
        below, above = [*range(index, len(self._items))], [*range(index, -1, -1)]
        order = [*above, *below] if up else [*below, *above]
        index = next((i for i in order if self._items[i].key is not None), index)
        self.cursor = self._items[index].key
        self._bring_to_view(index)
        self.redraw()
        self.post_message(self.Moved(self))

    def scroll_rows(self, rows: int) -> None:
        """Move the view and leave the cursor."""
        self._top += rows
        self.redraw()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.scroll_rows(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.scroll_rows(-WHEEL_ROWS)

    def on_click(self, event: Click) -> None:
        index = (self._top + event.y - 1) * self.across + self._column_at(event.x)
        if event.y == 0:
            self._click_title(event.x)
        elif index < len(self._items):
            self.move_to(index)
            if event.chain == 2:  # a third click opens nothing more
                self.post_message(self.Opened(self))

    # -- drawing

    def on_resize(self, event: Resize) -> None:
        if self.cursor is not None and (index := self.index) is not None:
            self._bring_to_view(index)
        self.redraw()

    def redraw(self) -> None:
        """Draw what is visible."""
        if not self.room.width:
            return
        across, self._drawn_cursor = self.across, self.cursor
        self._top = min(max(self._top, 0), max(0, self._line_count - self._height))
        starts = range(self._top * across, len(self._items), across)[: self._height]
        lines = [self._item_line(self._items[n : n + across]) for n in starts]
        self.show([self._title_line(), *lines])

    def _position(self) -> str:
        """`9-16/256`, or nothing where all items are visible."""
        if self._line_count <= self._height:
            return ""
        last = min(len(self._items), (self._top + self._height) * self.across)
        return f"{self._top * self.across + 1}-{last}/{len(self._items)}"
