"""Graphs side by side and below each other, over one time axis. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log

from tpusmi.tui.draw.look import Look, Row

GAP = 2
"""Blank columns between two graphs."""
LEAST_WIDTH = 34
"""Of one graph that has another beside it."""
BEST_SHAPE = 6.0
"""Columns for each line of a graph that looks right."""

Graph = Callable[[int, int], "list[Row]"]
"""Draws itself in so many columns and exactly so many lines."""


def columns_for(count: int, width: int, height: int, least: int = 1) -> int:
    """In how many columns so many graphs look best: no place stays empty, none is too flat, and
    none has fewer lines than `least` if that can be.
    """
    fitting = [
        n
        for n in range(1, count + 1)
        if count % n == 0 and (n == 1 or (width + GAP) // n - GAP >= LEAST_WIDTH)
    ]
    tall = [n for n in fitting if height // (count // n) >= least]
    return min(tall or fitting, key=lambda n: _oddness(count, n, width, height), default=1)


def in_ranks(
    look: Look, ranks: Sequence[Sequence[Graph]], axis: Graph, width: int, height: int
) -> list[Row]:
    """The graphs rank by rank in exactly that many lines, the first rank the widest. Under the last
    one is a time axis for each column.
    """
    across, gap = len(ranks[0]), look.cell("", GAP)
    each = (width + GAP) // across - GAP
    tall, more = divmod(height - 1, len(ranks))
    found: list[Row] = []
    for n, rank in enumerate(ranks):
        drawn = [graph(each, tall + (n < more)) for graph in rank]
        found += [_joined(line, gap) for line in zip(*drawn, strict=True)]
    return [*found, _joined(axis(each, 1) * across, gap)]


def _oddness(count: int, across: int, width: int, height: int) -> float:
    tall = max(1.0, height / (count // across))
    return abs(log(max(1, width) / across / tall / BEST_SHAPE))


def _joined(cells: Sequence[Row], gap: Row) -> Row:
    return tuple(piece for n, row in enumerate(cells) for piece in (*(gap if n else ()), *row))
