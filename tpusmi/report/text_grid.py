"""Rows of text under titles, for pipes, logs and narrow terminals."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from tpusmi.report import words
from tpusmi.report.columns import ColumnSpec

BOLD, DIM, YELLOW, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[0m"
GREEN, CYAN, RED = "\x1b[32m", "\x1b[36m", "\x1b[1;31m"
"""Three of the terminal's own sixteen colors, as in the dashboard."""

_ASCII = str.maketrans(
    {"–": "-", "µ": "u", "…": "~", "≥": ">", "━": "#", "─": ".", "·": "|", "→": ">", "×": "x"}
)

Row = tuple[str, ...]

_LAST_LEAST = 12
"""Characters that are left of a last column that is text."""


class Sheet(NamedTuple):
    """What the table is printed on."""

    color: bool
    columns: int | None


def as_text(lines: Iterable[str], ascii_only: bool) -> str:
    """The lines as one text that ends in a newline."""
    text = "\n".join(lines) + "\n"
    return in_ascii(text) if ascii_only else text


def in_ascii(text: str) -> str:
    """The text for a terminal that shows ASCII only."""
    return ascii_signs(text).encode("ascii", "replace").decode("ascii")


def ascii_signs(text: str) -> str:
    """The text with our own signs in ASCII; letters of other alphabets stay."""
    return text.translate(_ASCII)


class Ranked(Protocol):
    """A column, as far as it decides which columns there is room for."""

    @property
    def rank(self) -> int: ...

    @property
    def spare(self) -> int: ...


def fitting(columns: Sequence[Ranked], needs: Sequence[int], room: int, gap: int) -> list[int]:
    """The places of the columns that fit into `room`, with a gap between two of them.

    `needs` is the width of each. Without room the column of the highest rank goes, and of equal
    ranks the first.
    """
    kept = [*range(len(columns))]
    while len(kept) > 1:
        first = max(kept, key=lambda n: columns[n].rank)
        if sum(needs[n] + gap for n in kept) - gap + columns[first].spare <= room:
            break
        kept.remove(first)
    return kept


Styles = Mapping[tuple[int, int], str]
"""Styles of cells, by the numbers of their row and column."""


def grid(
    columns: Sequence[ColumnSpec],
    rows: Sequence[Row],
    sheet: Sheet,
    dim: Collection[int] = (),
    styles: Styles = MappingProxyType({}),
) -> Iterator[str]:
    """Columns as wide as their widest cell; the last one is ragged. Rows in `dim` are dim."""
    titles = tuple(c.title for c in columns)
    texts = [tuple(cell or words.UNKNOWN for cell in row) for row in (titles, *rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    gap, kept = "  ", [*range(len(columns))]
    if sheet.columns is not None:
        gap, kept = _fit(columns, widths, sheet.columns)

    def line(cells: Row, row: int | None = None) -> str:
        parts = [
            cells[i].rjust(widths[i]) if columns[i].right else cells[i].ljust(widths[i])
            for i in kept
        ]
        text = gap.join(parts).rstrip()
        if row is None or not sheet.color or (sheet.columns and len(text) > sheet.columns):
            return words.shortened(text, sheet.columns)
        own = (styles.get((row, i), "") for i in kept)
        return gap.join(map(_in_style, parts, own)).rstrip()

    yield painted(line(titles), BOLD, sheet.color)
    for i, cells in enumerate(texts[1:]):
        yield painted(line(cells), DIM, sheet.color) if i in dim else line(cells, i)


def _in_style(part: str, style: str) -> str:
    """A cell in a style, without the blanks around its text."""
    text = part.strip()
    return part.replace(text, f"{style}{text}{PLAIN}", 1) if style and text else part


def _fit(columns: Sequence[ColumnSpec], widths: Sequence[int], room: int) -> tuple[str, list[int]]:
    """The gap between columns, and which of them there is room for."""
    needs = [*widths]
    if not columns[-1].right:
        needs[-1] = min(widths[-1], _LAST_LEAST)
    kept = fitting(columns, needs, room, gap=2)
    if len(kept) == len(columns):
        return "  ", kept
    return " ", fitting(columns, needs, room, gap=1)


def painted(text: str, style: str, color: bool) -> str:
    """The text in that style, where colors are wanted."""
    return f"{style}{text}{PLAIN}" if color else text
