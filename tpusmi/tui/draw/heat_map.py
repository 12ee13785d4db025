"""A heat map: cells of color on one scale, with their numbers where there is room, and a legend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tpusmi.report import color_scale, words
from tpusmi.tui.draw.heat_cells import HeatCell
from tpusmi.tui.draw.heat_layout import Group, HeatLayout
from tpusmi.tui.draw.look import Look, Row, width_of
from tpusmi.tui.draw.themes import FEW_COLORS, TRUE_COLORS

Label = Callable[[HeatCell], str]
"""The name of what a cell belongs to, such as its host. Cells of one are neighbors."""
WIDTHS = (4, 3, 2, 1)
"""Columns of a cell."""
LETTER_WIDTHS = (4, 2, 1)
"""The same without colors behind the numbers, which need gaps then."""
NUMBER_LEAST = 3
"""Columns of a cell with a number: digits of neighbors must not touch."""
OLD, CURSOR = "o", "+"
"""In a narrow cell: an old value, and the cursor."""
CACHE_MOST = 8192
NOTE_LEAST = 20
"""With fewer columns in the legend, the selected cell is not named."""
LEGEND_STEPS = 10
BLACK_NUMBER, WHITE_NUMBER = 16, 231
"""Black and white in the cube of the 256 colors, which no palette changes."""


class HeatStyle:
    """Draws cells, and keeps what it has drawn: thousands of cells look like some others."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._cells: dict[tuple[object, ...], Row] = {}
        self._drawn_for: object = None

    @property
    def has_scale(self) -> bool:
        """True if there are colors enough for the scale; else cells have letters."""
        return self._look.color_count > FEW_COLORS

    @property
    def widths(self) -> Sequence[int]:
        """The columns that a cell may have, largest first."""
        return WIDTHS if self.has_scale else LETTER_WIDTHS

    def cell(self, cell: HeatCell, width: int, *, selected: bool = False) -> Row:
        """The cell in that many columns: its color, and the number where it fits."""
        if self._drawn_for is not self._look.style or len(self._cells) > CACHE_MOST:
            self._drawn_for = self._look.style
            self._cells.clear()
        ratio = color_scale.real(cell.ratio)
        number = None if ratio is None else color_scale.percent(ratio)
        key = (number, cell.mark, cell.is_old, width, selected)
        row = self._cells.get(key)
        if row is None:
            row = self._cells[key] = self._drawn(cell, number, width, selected)
        return row

    def swatch(self, ratio: float) -> Style:
        """The color of that ratio behind readable text; without a scale, a color for the text."""
        if not self.has_scale:
            return self._look.style[f"heat{color_scale.level(ratio) // 2}"]
        if self._look.color_count < TRUE_COLORS:
            number = color_scale.palette_number(ratio)
            text = color_scale.text_on(color_scale.palette_rgb(number))
            own = BLACK_NUMBER if text == color_scale.BLACK else WHITE_NUMBER
            return Style(color=f"color({own})", bgcolor=f"color({number})")
        color = color_scale.rgb(ratio)
        text = color_scale.text_on(color)
        return Style(color=color_scale.hexadecimal(text), bgcolor=color_scale.hexadecimal(color))

    def legend(
        self,
        titles: Sequence[str],
        width: int,
        *,
        notes: Sequence[str] = (),
        marks: Sequence[str] = (),
        cell_width: int = WIDTHS[0],
    ) -> Row:
        """The title, the scale, the notes, what the marks mean, and the signs without a color:
        behind the first of the titles, the longest, that leaves room for all of it, else the last.
        Where not all of it fits, the marks come first.
        """
        look = self._look
        texts = [*notes, *marks, *_signs(cell_width)]
        more = [look.line((f"  {text}", "dim")) for text in texts]
        room = width - sum(map(width_of, more))
        heads = (
            (*look.line((look.fitted(title, min(len(title), width)), "head")), *scale)
            for title in titles
            for scale in (self._scale(cell_width, 2), self._scale(cell_width, 1))
        )
        row: Row = ()
        for row in heads:
            if width_of(row) <= room:
                break
        if width_of(row) > width:
            row = row[:1]
        left, kept = width - width_of(row), set()
        for n in sorted(range(len(more)), key=lambda n: texts[n] not in marks):
            if width_of(more[n]) <= left:
                left -= width_of(more[n])
                kept.add(n)
        parts = (piece for n in sorted(kept) for piece in more[n])
        return (*row, *parts, *look.cell("", left))

    def note_room(self, title: str, width: int, others: Sequence[str], cell_width: int) -> int:
        """Columns that are left for a note beside that title, the scale and the other texts; and
        beside the signs without a color, if that is enough for one.
        """
        gap = len("  ")
        left = width - len(title) - width_of(self._scale(cell_width, 1)) - gap
        left -= sum(gap + cell_len(text) for text in others)
        with_signs = left - sum(gap + cell_len(text) for text in _signs(cell_width))
        return with_signs if with_signs >= NOTE_LEAST else left

    def _scale(self, cell_width: int, columns: int) -> Row:
        """`0 ▒▒▒▒▒▒ 100 %`, as colors of that many columns, letters, or numbers in their colors."""
        look = self._look
        before, after = look.line(("  0 ", "plain")), look.line((" 100 %", "plain"))
        ratios = [(n + 0.5) / LEGEND_STEPS for n in range(LEGEND_STEPS)]
        if self.has_scale:
            return (*before, *(Segment(" " * columns, self.swatch(r)) for r in ratios), *after)
        if cell_width < LETTER_WIDTHS[0]:
            letters = (Segment(color_scale.letter(r), self.swatch(r)) for r in ratios)
            return (*before, *letters, *after)
        numbers = (Segment(f" {r * 100:.0f}", self.swatch(r)) for r in (0.0, 0.2, 0.4, 0.6, 0.8))
        return (*look.line((" ", "plain")), *numbers, *after)

    def _drawn(self, cell: HeatCell, number: str | None, width: int, selected: bool) -> Row:
        mark = self._look.fitted(cell.mark, 1) if cell.mark else ""
        if number is None:
            text = _beside(mark, self._look.fitted(words.UNKNOWN, 1), width)
            style = self._gray(mark)
        elif cell.is_old:
            text, style = _old(mark, number, width), self._gray(mark)
        else:
            text, style = self._known(cell, mark, number, width)
        if selected:
            style = self._selected
            text = text if text.strip() else CURSOR.ljust(width)
        return (Segment(text, style),)

    def _known(self, cell: HeatCell, mark: str, number: str, width: int) -> tuple[str, Style]:
        # The color is that of the number in the cell, so that equal cells look equal.
        ratio = 0.001 if number == "<1" else int(number) / 100
        style = self.swatch(ratio)
        if mark:
            style = style + Style(bold=True) if self.has_scale else self._look.style["bad"]
        if width >= NUMBER_LEAST:
            return _numbered(mark, number, width), style
        letter = " " if self.has_scale else color_scale.letter(ratio)
        return (mark or letter if width < 2 else letter + mark).ljust(width), style

    def _gray(self, mark: str) -> Style:
        return self._look.style["bad" if mark else "dim"]

    @property
    def _selected(self) -> Style:
        """No color of the scale: the terminal's own colors the other way around."""
        if self.has_scale:
            return Style(reverse=True, bold=True)
        return self._look.style["selected"]


def _signs(cell_width: int) -> tuple[str, str]:
    old = OLD if cell_width < WIDTHS[0] else "(n)"
    return f"{words.UNKNOWN} unknown", f"{old} old"


def _numbered(mark: str, number: str, width: int) -> str:
    """` 72 `, `!72 `, `!100`; in three columns ` 72`, or the mark alone where both do not fit."""
    if width >= WIDTHS[0]:
        room = width - 1 - (len(number) < width - 1)
        return f"{mark or ' '}{number.rjust(room)}".ljust(width)
    fits = len(mark) + len(number) <= width
    return mark + number.rjust(width - len(mark)) if fits else mark.center(width)


def _old(mark: str, number: str, width: int) -> str:
    """`(72)`, `x72 `; in a narrow cell the mark, or a letter that says that it is old."""
    if width < WIDTHS[0]:
        return _beside("", mark or OLD, width)
    in_parentheses = f"({number})"
    if mark or len(in_parentheses) > width:
        return _numbered(mark, number, width)
    return in_parentheses.rjust(width)


def _beside(mark: str, text: str, width: int) -> str:
    """The text where the last digit of a number would be, and the mark before it."""
    if width >= WIDTHS[0]:
        return f"{mark or ' '}{text.rjust(width - 2)} "
    if width == NUMBER_LEAST:
        return f"{mark or ' '}{text.rjust(width - 1)}"
    return (mark or text if width < 2 else text + mark).ljust(width)


def groups_of(cells: Sequence[HeatCell], labels: Label | None) -> list[Group]:
    """The neighbors with the same label."""
    if labels is None:
        return [Group("", len(cells))]
    return [Group(label, sum(1 for _ in some)) for label, some in groupby(cells, labels)]


def line_of(
    look: Look,
    style: HeatStyle,
    layout: HeatLayout,
    cells: Sequence[HeatCell],
    line: int,
    selected: object = None,
) -> Row:
    """One line of the map. Neighbors of one color are one piece: less to write to the terminal."""
    pieces: list[Segment] = []
    width, plain = layout.cell_width, look.style["plain"]
    for label, block in layout.blocks(line):
        if pieces:
            pieces.append(Segment(" " * layout.gap, plain))
        if layout.label_width:
            pieces += look.cell(label, layout.label_width - 1, "dim")
            pieces.append(Segment(" ", plain))
        for index in block:
            cell = cells[index]
            is_selected = selected is not None and cell.key == selected
            pieces += style.cell(cell, width, selected=is_selected)
        missing = layout.across - len(block)
        if missing:
            pieces.append(Segment(" " * (missing * width), plain))
    return joined(pieces)


def joined(pieces: Iterable[Segment]) -> Row:
    """The same with neighbors of one style as one piece."""
    row: list[Segment] = []
    texts: list[str] = []
    last: Style | None = None
    for text, style, _ in pieces:
        if style is not last and texts:
            row.append(Segment("".join(texts), last))
            texts = []
        last = style
        texts.append(text)
    if texts:
        row.append(Segment("".join(texts), last))
    return tuple(row)
