"""The heat map as a widget: a cursor that moves in two dimensions, and its cell in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len

from tpusmi.report import color_scale, words
from tpusmi.tui.draw.heat_cells import HeatCell
from tpusmi.tui.draw.heat_layout import Group, HeatLayout, fitted
from tpusmi.tui.draw.heat_map import (
    NOTE_LEAST,
    WIDTHS,
    HeatStyle,
    Label,
    groups_of,
    line_of,
)
from tpusmi.tui.draw.item_list import ItemList
from tpusmi.tui.draw.look import Look, Row


class HeatMap(ItemList[HeatCell]):
    """Cells that shrink until all of them fit, or scroll where even the smallest do not."""

    CUTS_NAMES: ClassVar = False
    """Whether the legend has the beginning of a name that has no room. Else it has none of it."""

    def __init__(self, look: Look, id: str) -> None:
        super().__init__(look, id)
        self._style = HeatStyle(look)
        self._titles: Sequence[str] = ("",)
        self._marks: Sequence[str] = ()
        self._groups: list[Group] = []
        self._names: list[str] = []
        self._longest = 0
        self._layout: HeatLayout | None = None
        self._laid_out_for: object = None

    def show_cells(
        self,
        cells: Sequence[HeatCell],
        titles: Sequence[str],
        labels: Label | None = None,
        marks: Sequence[str] = (),
    ) -> None:
        """Show these cells, neighbors with the same label together. The legend has the first of
        the titles that leaves room for the `marks`: what each of them means.
        """
        self._titles, self._marks = titles, marks
        follows = self._follows  # by the layout of the cells that are shown until now
        groups, names = groups_of(cells, labels), [cell.name for cell in cells]
        if (groups, names) != (self._groups, self._names):
            self._groups, self._names, self._layout = groups, names, None
            self._longest = max(map(cell_len, names), default=0)
        self._take_following(cells, follows)

    @property
    def placed(self) -> HeatLayout:
        """Where the cells are: in the room that there is, with the colors that there are."""
        size, widths = self.room, self._style.widths
        if self._layout is None or (size, widths) != self._laid_out_for:
            self._laid_out_for = (size, widths)
            across, height = max(1, size.width), self._height
            self._layout = fitted(self._groups, self._names, across, height, widths)
        return self._layout

    @property
    def across(self) -> int:
        """Cells on a line, at most."""
        return self.placed.across * self.placed.per_line

    @property
    def page(self) -> int:
        """Lines that are visible at once: it moves by lines."""
        return self._height

    def move(self, count: int) -> None:
        """Move the cursor by that many lines, to the cell that is nearest on it."""
        index = self.index
        if self.cursor is None or index is None:
            self.scroll_rows(count)
            return
        line, x = self.placed.place(index)
        to = self.placed.nearest(min(max(line + count, 0), self._line_count - 1), x)
        if to is not None:
            self.move_to(to)

    def sideways(self, step: int) -> bool:
        """Move the cursor by that many cells, on to the next line at the end of one."""
        if self.cursor is None or not self.items:
            return False
        index = self.index
        self.move_to(0 if index is None else min(max(index + step, 0), len(self.items) - 1))
        return True

    @property
    def _line_count(self) -> int:
        return self.placed.line_count

    def _line_of(self, index: int) -> int:
        return self.placed.place(index)[0]

    def _index_at(self, line: int, x: int) -> int | None:
        return self.placed.index_at(line, x)

    def _line(self, number: int) -> Row:
        return line_of(self.look, self._style, self.placed, self.items, number, self.cursor)

    def _title_line(self) -> Row:
        index, position = self.index, [*filter(None, [self._position()])]
        width, cell_width = self.room.width, self.placed.cell_width
        style, titles, marks = self._style, self._titles, self._marks
        text = "" if index is None else in_words(self.items[index])
        # As wide for each cell, so that nothing moves behind it.
        whole = max(self._longest + len(" 100 %"), cell_len(text))
        left = style.note_room(titles[-1], width, [*position, *marks], cell_width)
        room = min(whole, left) if self.CUTS_NAMES and left >= NOTE_LEAST else whole
        notes = [*([self._filled(text, room)] if text else []), *position]
        return style.legend(titles, width, notes=notes, marks=marks, cell_width=cell_width)

    def _filled(self, text: str, width: int) -> str:
        """In exactly that width: of a longer one the beginning of its name, and the device."""
        if cell_len(text) > width and (host := text.partition(" ")[0]):
            end = text[len(host) :]
            text = self.look.fitted(host, max(1, width - cell_len(end))) + end
        return text + " " * (width - cell_len(text))

    def _position(self) -> str:
        """`lines 9-16/52`, or nothing where all of them are visible."""
        count, height = self._line_count, self._height
        if count <= height:
            return ""
        return f"lines {self._top + 1}-{min(count, self._top + height)}/{count}"


def in_words(cell: HeatCell) -> str:
    """`tpu:7 72 %`, `tpu:7 72 % (old)`, `tpu:7 –`."""
    ratio = color_scale.real(cell.ratio)
    number = words.percent(None if ratio is None else 100 * ratio)
    return f"{cell.name} {number}{' (old)' if cell.is_old and ratio is not None else ''}"


def heat_lines(names: Sequence[str], width: int) -> int:
    """Lines that so many cells fill if each has room for its number, the legend included."""
    if not names:
        return 0
    return 1 + fitted([Group("", len(names))], names, width, len(names), WIDTHS).line_count
