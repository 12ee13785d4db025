"""The glyphs and styles everything on the screen is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment

from tpusmi.report import words
from tpusmi.tui.draw.themes import MONO, TRUE_COLORS, default_colors, styles

SIMULATED = " SIMULATED "
"""Label of a simulated machine."""
Row = tuple[Segment, ...]
"""A line or a cell of it: pieces of text with a style each."""


class Glyphs(NamedTuple):
    """Every character that is not a letter, a digit or punctuation."""

    cut: str
    """Marks where a text was cut off."""
    bar: str
    half: str
    """The last cell of a bar, less than full."""
    track: str
    peak: str
    spark: str
    """Levels of a graph, lowest first."""
    down: str
    up: str
    dot: str
    times: str
    frame: str
    """Corners and sides of a box: top left, across, top right, down, bottom left, bottom right."""


UNICODE = Glyphs("…", "━", "╸", "─", "┃", "▁▂▃▄▅▆▇█", "▾", "▴", "·", "×", "╭─╮│╰╯")  # fmt: skip
ASCII = Glyphs("~", "#", "#", ".", "|", "_.:-=+*#", "v", "^", "|", "x", "+-+|++")  # fmt: skip

LEAST_LINE = 12
"""The least width of wrapped text."""

_PLAIN = str.maketrans(
    {
        "–": "-",
        "µ": "u",
        "…": "~",
        "←": "<",
        "→": ">",
        "↑": "^",
        "↓": "v",
        "×": "x",
        "·": "|",
        "┃": "|",
        "━": "#",
        "─": ".",
        "≥": ">",
    }
)


class Look:
    """How things look on this terminal."""

    def __init__(
        self,
        *,
        ascii: bool = False,
        color: bool = True,
        theme: str | None = None,
        colors: Mapping[str, str] | None = None,
        terminal_colors: int = TRUE_COLORS,
    ) -> None:
        self.glyphs = ASCII if ascii else UNICODE
        self._colors, self.has_colors = colors or {}, color
        self._terminal_colors = terminal_colors
        self.take_theme(theme)
        self.only_ascii = ascii

    def take_theme(self, theme: str | None) -> None:
        """Use another theme from now on, if there are colors at all."""
        theme = theme if self.has_colors else MONO
        self.style = styles(theme, self._colors)
        self.default_colors = default_colors(theme)
        """What gives a browser's terminal the colors that the theme is meant for."""
        self.color_count = 0 if theme == MONO else self._terminal_colors
        """How many colors there are: none, 16, 256, or all of them."""

    def cell(self, text: str, width: int, style: str = "plain", *, right: bool = False) -> Row:
        """The text in exactly `width` columns, cut with a mark when it is longer."""
        return (Segment(self.fitted(text, width, right=right), self.style[style]),)

    def fitted(self, text: str, width: int, *, right: bool = False) -> str:
        """The text padded or cut to exactly `width` columns of the terminal. Characters that
        cannot be printed become spaces: no text from outside reaches the terminal as commands.
        """
        if not text.isprintable():
            text = "".join(c if c.isprintable() else " " for c in text)
        if self.only_ascii and not text.isascii():
            text = text.translate(_PLAIN).encode("ascii", "replace").decode()
        length = len(text) if text.isascii() else cell_len(text)
        if length > width:
            return set_cell_size(text, width - 1) + self.glyphs.cut if width > 0 else ""
        return " " * (width - length) + text if right else text + " " * (width - length)

    def line(self, *parts: tuple[str, str]) -> Row:
        """A line of (text, style) parts."""
        return tuple(
            Segment(self.fitted(text, cell_len(text)), self.style[style])
            for text, style in parts
            if text
        )

    def joined(self, parts: Iterable[str]) -> str:
        """The parts with dots between them."""
        return f" {self.glyphs.dot} ".join(parts)

    def wrapped(self, text: str, width: int, style: str, mark: str = "") -> list[Row]:
        """The text wrapped between words to that width, with the mark before the first line."""
        first, *more = split(text, width - len(mark))
        lines = [self.line((mark, style), (first, style))]
        return [*lines, *(self.line((" " * len(mark), style), (rest, style)) for rest in more)]

    def bar(self, ratio: float, peak: float | None, width: int, style: str) -> Row:
        """A bar `width` columns wide, filled to `ratio`, with a mark at `peak`; both 0 to 1."""
        g = self.glyphs
        halves = round(min(max(ratio, 0.0), 1.0) * width * 2)
        filled = g.bar * (halves // 2) + g.half * (halves % 2)
        text = filled + g.track * (width - len(filled))
        mark = width if peak is None else min(int(peak * width), width - 1)
        if mark < len(filled) or mark >= width:
            return self._pieces((filled, style), (text[len(filled) :], "dim"))
        between, after = text[len(filled) : mark], text[mark + 1 :]
        return self._pieces((filled, style), (between, "dim"), (g.peak, style), (after, "dim"))

    def spark(self, values: Sequence[float | None], top: float, width: int) -> str:
        """A graph of values from 0 to `top`, one column each, newest last; blank where unknown."""
        levels = self.glyphs.spark
        scale = (len(levels) - 1) / top if top > 0 else 0.0
        drawn = "".join(
            " " if v is None else levels[min(max(round(v * scale), 0), len(levels) - 1)]
            for v in values[-width:]
        )
        return drawn.rjust(width)

    def _pieces(self, *parts: tuple[str, str]) -> Row:
        return tuple(Segment(text, self.style[style]) for text, style in parts if text)


def split(text: str, width: int) -> list[str]:
    """The text in lines of that width, split between words, or anywhere if a character is wide."""
    width = max(width, LEAST_LINE)
    if cell_len(text) > len(text):
        return chop_cells(text, width)
    return wrap(text, width, break_on_hyphens=False) or [""]


def fill_style(ratio: float) -> str:
    """The style of a bar filled to this ratio."""
    return {"low": "good", "near": "warn", "full": "bad"}[words.fullness(ratio)]


def width_of(row: Iterable[Segment]) -> int:
    """The width of a line or a cell in columns."""
    width = 0
    for text, _, _ in row:
        width += len(text) if text.isascii() else cell_len(text)
    return width
