"""Tables of styled cells within a width: the rest is left out or shortened. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tpusmi.report import words
from tpusmi.report.profile.styled import Line, cut_middle, padded, width_of
from tpusmi.report.text_grid import fitting

GAP = 2
Cell = tuple[str, str]
"""Text and style."""


class TableColumn(NamedTuple):
    """A column. Without room the one of the highest rank is left out."""

    title: str
    rank: int = 0
    right: bool = True
    least: int = 0
    """How narrow a column of text may become; 0 is as wide as its widest cell."""
    spare: int = 0


def table(
    columns: Sequence[TableColumn],
    rows: Sequence[Sequence[Cell]],
    width: int,
    indent: int = 1,
    keep_all: bool = False,
) -> list[Line]:
    """Titles and rows. Columns that have nothing but unknown values are left out."""
    used = [n for n in range(len(columns)) if keep_all or _says_something(rows, n)]
    columns = [columns[n] for n in used]
    rows = [[row[n] for n in used] for row in rows]
    if not rows or not columns:
        return []
    widths = [
        max(width_of(c.title), *(width_of(row[n][0]) for row in rows))
        for n, c in enumerate(columns)
    ]
    needs = [min(w, c.least) if c.least else w for w, c in zip(widths, columns, strict=True)]
    kept = fitting(columns, needs, width - indent, GAP)
    own = _room_shared([widths[n] for n in kept], [needs[n] for n in kept], width - indent)
    kept_columns = [columns[n] for n in kept]
    titles = [(c.title, "dim") for c in kept_columns]
    cells = [titles, *([row[n] for n in kept] for row in rows)]
    return [_line(kept_columns, line, own, indent) for line in cells]


def _says_something(rows: Sequence[Sequence[Cell]], number: int) -> bool:
    return any(row[number][0] not in ("", words.UNKNOWN) for row in rows)


def _room_shared(widths: Sequence[int], needs: Sequence[int], room: int) -> list[int]:
    """What each column gets: its need, and a fair part of what is left."""
    shared = [*needs]
    left = room - sum(needs) - GAP * (len(needs) - 1)
    while left > 0 and (short := [n for n, w in enumerate(widths) if shared[n] < w]):
        part = max(1, left // len(short))
        for n in short[:left]:
            more = min(part, widths[n] - shared[n])
            shared[n] += more
            left -= more
    return shared


def _line(
    columns: Sequence[TableColumn], cells: Sequence[Cell], widths: Sequence[int], indent: int
) -> Line:
    gaps = [" " * indent, *([" " * GAP] * (len(cells) - 1))]
    pieces = zip(columns, cells, widths, gaps, strict=True)
    return tuple(
        (gap + padded(cut_middle(text, width), width, column.right), style)
        for column, (text, style), width, gap in pieces
    )
