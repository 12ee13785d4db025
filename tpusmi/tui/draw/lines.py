"""A widget that shows lines of text and repaints only those that changed; a frame, a framed box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from textual.app import ComposeResult
from textual.geometry import Region
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from tpusmi.tui.draw.look import Look, Row, width_of


class Lines(Widget):
    """Lines of text, cut with a mark at the widget's side and never wrapped.

    Textual's own widgets paint all of themselves when a cell changes. In tests/bench/tables.py,
    with 256 rows, a tick takes 70 ms of CPU in the DataTable of Textual 8.2.8, and 5 ms in `Grid`.
    """

    ALLOW_SELECT = False

    def __init__(self, look: Look, id: str | None = None) -> None:
        super().__init__(id=id)
        self.look = look
        self.drawn: Sequence[Row] = ()
        """The lines shown."""
        self._strips: dict[int, Strip] = {}

    def text(self) -> str:
        """The lines without their styles."""
        return "\n".join("".join(piece.text for piece in row) for row in self.drawn)

    def show(self, rows: Sequence[Row]) -> None:
        """Show these lines in place of the previous ones."""
        before, self.drawn = self.drawn, rows
        dirty = []
        width = self.size.width
        for y in range(max(len(before), len(rows))):
            old, new = _at(before, y), _at(rows, y)
            if old != new:
                self._strips.pop(y, None)
                dirty.append(Region(0, y, _last_change(old, new, width), 1))
        if dirty:
            self.refresh(*dirty)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines inside `crop`, for Textual's compositor."""
        width = self.size.width
        strips = [self._strip(y, width) for y in crop.line_range]
        if crop.x == 0 and crop.width == width:
            return strips
        return [strip.crop(crop.x, crop.right) for strip in strips]

    def _strip(self, y: int, width: int) -> Strip:
        strip = self._strips.get(y)
        if strip is None or strip.cell_length != width:
            row = cut(self.look, _at(self.drawn, y), width)
            strip = Strip(row).adjust_cell_length(width, self.look.style["plain"])
            self._strips[y] = strip
        return strip


def _at(rows: Sequence[Row], y: int) -> Row:
    return rows[y] if y < len(rows) else ()


def _last_change(old: Row, new: Row, width: int) -> int:
    """Columns to repaint, from the left: Textual writes a changed line from its start to here."""
    whole = width_of(new)
    if width_of(old) != whole:
        return width
    same = 0
    for a, b in zip(reversed(old), reversed(new), strict=False):
        if a != b:
            break
        same += 1
    return min(width, whole - width_of(new[len(new) - same :]))


def cut(look: Look, row: Row, width: int) -> Row:
    """The line in at most `width` columns, with a mark at its end if text is left out."""
    if width_of(row) <= width or width < 1:
        return row
    strip = Strip(row)
    if not strip.crop(width).text.strip():
        return row
    return (*strip.crop(0, width - 1), *look.line((look.glyphs.cut, "plain")))


def with_more(look: Look, rows: Sequence[Row], below: int, what: str = "lines") -> list[Row]:
    """The lines; if more follow, the last one says how many, of which `below` are below it."""
    if below <= 0 or not rows:
        return [*rows]
    text = f"{look.glyphs.down} {below + 1} more {what} (PgDn)"
    return [*rows[:-1], look.line((text, "dim"))]


MARGIN = 4
"""Columns of the frame: a side and a blank at the left and at the right."""
EDGES = 2
"""Lines of the frame."""


def framed(look: Look, lines: Sequence[Row], width: int, *, more: bool = False) -> list[Row]:
    """The lines in a frame `width` columns wide, cut with a mark at its side; `more` adds a note
    that more lines follow.
    """
    left, across, right, down, left_below, right_below = [*look.glyphs.frame]
    inner = max(0, width - 2)
    side = look.line((down, "title"))
    rows = [look.line((left + across * inner + right, "title"))]
    for line in lines:
        room = max(0, inner - 2)
        text = Strip((*look.line((" ", "plain")), *cut(look, line, room)))
        padded = text.adjust_cell_length(max(0, inner - 1))
        rows.append((*side, *padded, *look.line((" " * min(inner, 1), "plain")), *side))
    note = f" {look.glyphs.down} more " if more else ""
    below = (note + across).rjust(inner, across) if len(note) < inner else across * inner
    return [*rows, look.line((left_below + below + right_below, "title"))]


Answer = TypeVar("Answer")


class BoxScreen(ModalScreen[Answer]):
    """A box of lines over the page. A subclass draws it in `_draw`."""

    def __init__(self, look: Look, id: str) -> None:
        super().__init__()
        self._look, self._box = look, Lines(look, id=id)
        self._top = 0
        """The first line that is visible of those that scroll."""

    def compose(self) -> ComposeResult:
        yield self._box

    def on_resize(self) -> None:
        self._draw()

    def action_scroll(self, lines: int) -> None:
        """Move the text where the terminal is too small for all of it."""
        self._top += lines
        self._draw()

    def _draw(self) -> None:
        raise NotImplementedError

    def _show(self, lines: Sequence[Row], width: int, *, more: bool) -> None:
        """Show the lines in the frame; `more` adds a note that more lines follow."""
        self._box.styles.width, self._box.styles.height = width, len(lines) + EDGES
        self._box.show(framed(self._look, lines, width, more=more))
