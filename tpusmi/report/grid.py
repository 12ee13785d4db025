"""Rows of text under titles, for pipes, logs and narrow terminals."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from tpusmi.report import words

BOLD, DIM, YELLOW, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[0m"

_ASCII = str.maketrans({"–": "-", "µ": "u", "…": "~"})

Row = tuple[str, ...]

_LEFT = {"DEV", "NODE", "KIND", "USER", "DEVICES", "PHASE", "COMMAND", "NETWORK", "OF"} | {
    *("TYPE", "PROGRAM", "RUNS", "CHIPS", "STALE", "S", "TTY")
}
_EXPENDABLE = (
    *("ARRAYS", "LIVE", "NODE", "PEAK", "CHIP", "COMPILES", "COUNT", "P90", "p95", "TYPE", "TTY"),
    *("RSS", "CPU", "AGE", "S", "STEP p50", "PHASE", "QUEUE", "MFU", "USER", "PROGRAM", "IDLE"),
    *("KIND", "MEAN", "P50", "BW"),
)
"""Left out one by one where a terminal is too narrow, the first one first."""
_LAST_LEAST = 12
"""So much is left of a last column that is text."""


class Sheet(NamedTuple):
    """What the table is printed on."""

    color: bool
    columns: int | None


def as_text(lines: Iterable[str], ascii_only: bool) -> str:
    """The lines as one text that ends in a newline."""
    text = "\n".join(lines) + "\n"
    if not ascii_only:
        return text
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def grid(
    titles: Row, rows: Sequence[Row], sheet: Sheet, dim: Collection[int] = ()
) -> Iterator[str]:
    """Columns as wide as their widest cell, numbers to the right, the last one ragged."""
    texts = [tuple(cell or words.UNKNOWN for cell in row) for row in [titles, *rows]]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    gap, kept = "  ", [*range(len(titles))]
    if sheet.columns is not None:
        gap, kept = _fit(titles, widths, sheet.columns)

    def line(cells: Row) -> str:
        parts = (
            cells[i].ljust(widths[i]) if titles[i] in _LEFT else cells[i].rjust(widths[i])
            for i in kept
        )
        return words.shortened(gap.join(parts).rstrip(), sheet.columns)

    yield painted(line(titles), BOLD, sheet.color)
    for i, cells in enumerate(texts[1:]):
        yield painted(line(cells), DIM, sheet.color and i in dim)


def _fit(titles: Row, widths: Sequence[int], room: int) -> tuple[str, list[int]]:
    """What stands between the columns, and which of them stay, so that they have room."""
    least = [*widths]
    if titles[-1] in _LEFT:
        least[-1] = min(widths[-1], _LAST_LEAST)
    kept = [*range(len(titles))]

    def fits(gap: str) -> bool:
        needed: int = sum(least[i] for i in kept) + len(gap) * (len(kept) - 1)
        return needed <= room

    if fits("  "):
        return "  ", kept
    for title in _EXPENDABLE:
        if title in titles and not fits(" "):
            kept.remove(titles.index(title))
    return " ", kept


def painted(text: str, style: str, color: bool) -> str:
    return f"{style}{text}{PLAIN}" if color else text
