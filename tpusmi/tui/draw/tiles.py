"""Small tiles side by side, one for each device, with a cursor that follows its device."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.segment import Segment

from tpusmi.tui.draw.columns import Item
from tpusmi.tui.draw.item_list import ItemList
from tpusmi.tui.draw.look import Look, Row


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
